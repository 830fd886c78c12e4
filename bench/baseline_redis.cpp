// Only if another client of Redis was found at build time.
#ifdef HOLDFAST_BENCH_REDIS
#include <chrono>
#include <memory>
#include <random>
#include <stdexcept>
#include <thread>

#include "bench/hiredis.hpp"
#include "bench/subject.hpp"

// The lock that people write by hand over hiredis: a loop that retries every millisecond; and, as
// the least that a hand-over can cost, a release that publishes to listeners.
namespace bench {
namespace {

bool is_redis(std::string_view url) {
  return scheme_of(url) == "redis" || scheme_of(url) == "redis+unix";
}

constexpr const char* compare_and_delete =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
constexpr const char* delete_and_publish =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) "
    "redis.call('PUBLISH', KEYS[1], '1') end return 0";

std::string random_token() {
  return std::to_string(std::random_device{}()) + std::to_string(std::random_device{}());
}

class grip_base : public handle {
 public:
  grip_base(const std::string& url, std::string key, const char* script)
      : db_{url},
        key_{std::move(key)},
        token_{random_token()},
        sha_{db_.ask("SCRIPT LOAD %s", script)->str} {}
  void unlock() override {
    db_.ask("EVALSHA %s 1 %s %s", sha_.c_str(), key_.c_str(), token_.c_str());
  }

 protected:
  bool taken() {
    return db_.ask("SET %s %s NX PX 30000", key_.c_str(), token_.c_str())->type ==
           REDIS_REPLY_STATUS;
  }
  hiredis db_;
  std::string key_;
  std::string token_;
  std::string sha_;
};

class loop_grip final : public grip_base {
 public:
  loop_grip(const std::string& url, unsigned lock)
      : grip_base{url, "floor-loop-" + std::to_string(lock), compare_and_delete} {}
  void lock() override {
    while (!taken()) std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
};

class push_grip final : public grip_base {
 public:
  push_grip(const std::string& url, unsigned lock)
      : grip_base{url, "floor-push-" + std::to_string(lock), delete_and_publish}, inbox_{url} {
    inbox_.ask("SUBSCRIBE %s", key_.c_str());
  }
  void lock() override {
    while (!taken()) inbox_.next();
  }

 private:
  hiredis inbox_;
};

}  // namespace

std::int64_t store_cpu_ns(std::string_view url) {
  if (!is_redis(url)) return 0;
  return static_cast<std::int64_t>(hiredis{std::string{url}}.server_cpu_seconds() * 1e9);
}

const subject_kind redis_loop_baseline{
    .name = "loop",
    .counts_operations = false,
    .fits = is_redis,
    .across_processes = always,
    .prepare = nothing,
    .open = open_locks<loop_grip>,
};

const subject_kind redis_push_baseline{
    .name = "push",
    .counts_operations = false,
    .fits = is_redis,
    .across_processes = always,
    .prepare = nothing,
    .open = open_locks<push_grip>,
};

}  // namespace bench

#endif
