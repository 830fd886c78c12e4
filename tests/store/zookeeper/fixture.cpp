#include "store/zookeeper/fixture.hpp"

#include <zookeeper/zookeeper.h>

#include <atomic>
#include <random>
#include <stdexcept>

#include "harness/eventually.hpp"

namespace zookeeper_test {

namespace {

void ignore(zhandle_t*, int, int, const char*, void*) {}
void say_nothing(const char*) {}

void demand(int rc, const std::string& what) {
  if (rc != ZOK) throw std::runtime_error(what + ": " + zerror(rc));
}

}  // namespace

tree::tree(const std::string& hosts, const std::string& login)
    : handle_(zookeeper_init2(hosts.c_str(), &ignore, 10'000, nullptr, nullptr, 0, &say_nothing)) {
  if (handle_ == nullptr) throw std::runtime_error("no ZooKeeper handle");
  if (!login.empty()) {
    demand(zoo_add_auth(handle_, "digest", login.data(), static_cast<int>(login.size()), nullptr,
                        nullptr),
           "login");
  }
  harness::eventually("a connection", [&] { return zoo_state(handle_) == ZOO_CONNECTED_STATE; });
}

tree::~tree() { zookeeper_close(handle_); }

// A member's data may be old; after a request that the leader has to see it is not.
void tree::catch_up() const { (void)zoo_delete(handle_, "/there-is-no-such-node", -1); }

std::vector<std::string> tree::children(const std::string& path) const {
  catch_up();
  String_vector found{};
  const int rc = zoo_get_children(handle_, path.c_str(), 0, &found);
  if (rc == ZNONODE) return {};
  demand(rc, "children of " + path);
  std::vector<std::string> names(found.data, found.data + found.count);
  deallocate_String_vector(&found);
  return names;
}

bool tree::has(const std::string& path) const {
  struct Stat stat{};
  return zoo_exists(handle_, path.c_str(), 0, &stat) == ZOK;
}

std::string tree::data(const std::string& path) const {
  char text[4096];
  int size = sizeof text;
  demand(zoo_get(handle_, path.c_str(), 0, text, &size, nullptr), "data of " + path);
  return {text, static_cast<std::size_t>(std::max(size, 0))};
}

void tree::make(const std::string& path, bool only_mine) const {
  const ACL_vector* const acl = only_mine ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
  demand(zoo_create(handle_, path.c_str(), "", 0, acl, ZOO_PERSISTENT, nullptr, 0), path);
}

void tree::remove(const std::string& path) const {
  demand(zoo_delete(handle_, path.c_str(), -1), path);
}

// The server removes empty containers at the same time.
void tree::remove_all(const std::string& path) const {
  for (const auto& child : children(path)) remove_all(path + "/" + child);
  const int rc = zoo_delete(handle_, path.c_str(), -1);
  if (rc != ZNONODE) demand(rc, path);
}

bool tree::write_if(const std::string& guard, const std::string& path,
                    const std::string& data) const {
  zoo_op_t steps[2];
  zoo_op_result_t results[2];
  zoo_check_op_init(&steps[0], guard.c_str(), -1);
  zoo_set_op_init(&steps[1], path.c_str(), data.data(), static_cast<int>(data.size()), -1, nullptr);
  const int rc = zoo_multi(handle_, 2, steps, results);
  if (rc != ZOK && rc != ZNONODE) demand(rc, "multi");
  return rc == ZOK;
}

const harness::zookeeper_ensemble& calm_ensemble() {
  static const harness::zookeeper_ensemble all;
  return all;
}

std::string fresh_base() {
  static std::atomic<int> number{0};
  return "/base-" + std::to_string(std::random_device()()) + "-" + std::to_string(++number);
}

}  // namespace zookeeper_test
