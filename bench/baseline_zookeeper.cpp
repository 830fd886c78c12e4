// Only if ZooKeeper's client was found at build time.
#ifdef HOLDFAST_BENCH_ZOOKEEPER
#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <stdexcept>

#include "bench/subject.hpp"

// The recipe of ZooKeeper's documentation, as people write it over the C client: an ephemeral
// sequential node, the children, a watch on the one before. It handles no lost replies, no session
// that ends, no deadline.
namespace bench {
namespace {

bool is_zookeeper(std::string_view url) { return scheme_of(url) == "zookeeper"; }

void say_nothing(const char*) {}

void demand(int rc, const char* what) {
  if (rc != ZOK) throw std::runtime_error{std::string{what} + ": " + zerror(rc)};
}

/// An event that happens once, on the client's thread.
class bell {
 public:
  void ring() {
    const std::lock_guard guard{mutex_};
    rung_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return rung_; });
    rung_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool rung_ = false;
};

class recipe_grip final : public handle {
 public:
  recipe_grip(zhandle_t* zk, unsigned lock)
      : zk_{zk}, parent_{"/floor-" + std::to_string(lock)}, prefix_{parent_ + "/lock-"} {
    (void)zoo_create(zk_, parent_.c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT, nullptr, 0);
  }

  void lock() override {
    demand(zoo_create(zk_, prefix_.c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL_SEQUENTIAL,
                      mine_.data(), static_cast<int>(mine_.size())),
           "create");
    while (true) {
      const auto before = predecessor();
      if (before.empty()) return;
      const int rc =
          zoo_wexists(zk_, (parent_ + "/" + before).c_str(), &on_change, &gone_, nullptr);
      if (rc != ZNONODE) {
        demand(rc, "exists");
        gone_.wait();
      }
    }
  }
  void unlock() override { demand(zoo_delete(zk_, mine_.data(), -1), "delete"); }

 private:
  static void on_change(zhandle_t*, int type, int, const char*, void* context) {
    if (type != ZOO_SESSION_EVENT) static_cast<bell*>(context)->ring();
  }
  std::string predecessor() const {
    String_vector found{};
    demand(zoo_get_children(zk_, parent_.c_str(), 0, &found), "children");
    const std::string_view own = std::string_view{mine_.data()}.substr(parent_.size() + 1);
    std::string before;
    for (int i = 0; i < found.count; ++i) {
      const std::string_view other{found.data[i]};
      if (other < own && other > before) before = other;
    }
    deallocate_String_vector(&found);
    return before;
  }

  zhandle_t* zk_;
  const std::string parent_, prefix_;
  std::array<char, 256> mine_{};
  bell gone_;
};

class recipe_locks final : public subject {
 public:
  explicit recipe_locks(const place& at) {
    const std::string rest = at.url.substr(at.url.find("//") + 2);
    const std::string hosts = rest.substr(0, rest.find_first_of("/?"));
    zk_ = zookeeper_init2(hosts.c_str(), &on_session, 30'000, nullptr, &ready_, 0, &say_nothing);
    if (zk_ == nullptr) throw std::runtime_error{"no connection to " + at.url};
    ready_.wait();
  }
  ~recipe_locks() override { zookeeper_close(zk_); }
  std::unique_ptr<handle> grip(unsigned lock) override {
    return std::make_unique<recipe_grip>(zk_, lock);
  }

 private:
  static void on_session(zhandle_t*, int, int state, const char*, void* context) {
    if (state == ZOO_CONNECTED_STATE) static_cast<bell*>(context)->ring();
  }
  bell ready_;
  zhandle_t* zk_;
};

std::unique_ptr<subject> open_recipe(const place& at) { return std::make_unique<recipe_locks>(at); }

}  // namespace

const subject_kind zookeeper_recipe_baseline{
    .name = "zookeeper_recipe",
    .counts_operations = false,
    .fits = is_zookeeper,
    .across_processes = always,
    .prepare = nothing,
    .open = open_recipe,
};

}  // namespace bench

#endif
