#include "harness/shared_servers.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <stdexcept>
#include <system_error>

#include "harness/etcd_cluster.hpp"
#include "harness/least_rights.hpp"
#include "harness/mariadb_server.hpp"
#include "harness/memcached_server.hpp"
#include "harness/postgres_server.hpp"
#include "harness/redis_fleet.hpp"
#include "harness/redis_rights.hpp"
#include "harness/zookeeper_ensemble.hpp"

namespace harness {

namespace {

/// A busy machine must not look like a dead primary.
constexpr int never_replaced_ms = 60'000;

/// Enough connections for several test programs that hold a row's lock for a moment each.
struct pooled_postgres {
  postgres_server server;
  pgbouncer pooler{server, 20};
  std::string url() const { return pooler.url(); }
};

template <class Servers, class... Arguments>
servers launch(Arguments... arguments) {
  const auto all = std::make_shared<Servers>(arguments...);
  return {all, all->url()};
}

// Gives rights to the user "app", with which the conformance tests log in. The default user may do
// everything.
void give_rights(const redis_server& to, std::vector<std::string> more) {
  more.emplace_back("everywhere");
  give_documented_rights(to, more, conformance_prefix + std::string("*"));
}

int checked(int fd, const char* what) {
  if (fd < 0) throw std::system_error(errno, std::generic_category(), what);
  return fd;
}

// A program that reads our output would wait for us to end, and a signal that ends ctest must not
// end us at once.
void become_a_daemon() {
  ::setsid();
  const int nowhere = checked(::open("/dev/null", O_RDWR | O_CLOEXEC), "/dev/null");
  for (int fd = 0; fd < 3; ++fd) ::dup2(nowhere, fd);
}

/// Written under another name first, so that readers see a complete file.
int publish(const std::string& url, const std::string& file) {
  const std::string unfinished = file + ".new";
  std::ofstream(unfinished) << url << '\n';
  const int watch = checked(::inotify_init1(IN_CLOEXEC), "inotify");
  checked(::inotify_add_watch(watch, unfinished.c_str(), IN_DELETE_SELF), "inotify");
  std::filesystem::rename(unfinished, file);
  return watch;
}

// The child that runs the servers. It reports success by a byte, or ends without one.
[[noreturn]] void serve(const std::string& kind, const std::string& file, int caller, int ready) {
  {
    const auto mine = start_servers(kind);
    become_a_daemon();
    const int removed = publish(mine.url, file);
    if (::write(ready, "!", 1) != 1) ::_exit(1);
    pollfd ends[2] = {{caller, POLLIN, 0}, {removed, POLLIN, 0}};
    while (::poll(ends, 2, -1) < 0 && errno == EINTR) {
    }
  }
  ::_exit(0);
}

std::string read_first_line(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  if (!std::getline(in, line)) throw std::runtime_error("no servers are running: " + file);
  return line;
}

}  // namespace

servers start_servers(const std::string& kind) {
  if (kind == "redis") {
    const auto one = std::make_shared<redis_server>();
    give_rights(*one, {});
    return {one, one->url()};
  }
  if (kind == "redis_replicas") {
    const auto all = std::make_shared<redis_replicas>();
    for (const auto& s : all->servers()) give_rights(*s, {"with ack"});
    return {all, all->url()};
  }
  if (kind == "redis_sentinel") {
    const auto all = std::make_shared<redis_sentinels>(never_replaced_ms);
    for (const auto& s : all->servers().servers()) give_rights(*s, {"behind sentinels"});
    return {all, all->url()};
  }
  if (kind == "redis_cluster") {
    const auto all = std::make_shared<redis_cluster>(never_replaced_ms);
    for (const auto& s : all->nodes()) give_rights(*s, {"in a cluster"});
    return {all, all->url()};
  }
  if (kind == "etcd") {
    // Each session logs in, so the servers use the cheapest hash.
    const auto all = std::make_shared<etcd_cluster>(3, std::vector<std::string>{"--bcrypt-cost=4"});
    for (const auto& words : etcd_user_of_least_rights(conformance_prefix)) (void)all->ctl(words);
    return {all, "etcd://" + all->hosts()};
  }
  if (kind == "zookeeper") {
    const auto all = std::make_shared<zookeeper_ensemble>();
    return {all, "zookeeper://" + all->hosts()};
  }
  if (kind == "postgres") return launch<postgres_server>();
  if (kind == "postgres_pooled") return launch<pooled_postgres>();
  if (kind == "memcached") return launch<memcached_server>();
  if (kind == "mariadb") return launch<mariadb_server>();
  throw std::invalid_argument("no servers called " + kind);
}

void share_servers(const std::string& kind, const std::string& folder) {
  const std::string file = folder + "/" + kind;
  std::filesystem::create_directories(folder);
  std::filesystem::remove(file);
  const int caller =
      checked(static_cast<int>(::syscall(SYS_pidfd_open, ::getppid(), 0)), "pidfd_open");
  int ready[2];
  checked(::pipe2(ready, O_CLOEXEC), "pipe");
  if (checked(::fork(), "fork") == 0) {
    ::close(ready[0]);
    try {
      serve(kind, file, caller, ready[1]);
    } catch (const std::exception& e) {
      std::cerr << e.what() << std::endl;
      ::_exit(1);
    }
  }
  ::close(ready[1]);
  char byte = 0;
  if (::read(ready[0], &byte, 1) != 1) throw std::runtime_error(kind + " do not start");
}

std::string url_of_servers(const std::string& kind) {
  if (const char* const folder = std::getenv("HOLDFAST_TEST_SERVERS")) {
    return read_first_line(std::string(folder) + "/" + kind);
  }
  static std::map<std::string, servers> own;
  auto& mine = own[kind];
  if (!mine.running) mine = start_servers(kind);
  return mine.url;
}

}  // namespace harness
