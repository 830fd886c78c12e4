#pragma once

#include <hiredis/hiredis.h>

#include <holdfast/session.hpp>
#include <memory>
#include <stdexcept>
#include <string>

#include "bench/subject.hpp"

namespace bench {

using redis_reply =
    std::unique_ptr<redisReply, decltype([](redisReply* r) { freeReplyObject(r); })>;

/// A blocking connection, for one thread.
class hiredis {
 public:
  explicit hiredis(const std::string& url) : context_(open(url)) {
    if (context_ == nullptr || context_->err != 0)
      throw std::runtime_error{"no connection to " + holdfast::without_secrets(url)};
  }
  ~hiredis() { redisFree(context_); }
  hiredis(const hiredis&) = delete;
  hiredis& operator=(const hiredis&) = delete;

  template <class... Words>
  redis_reply ask(const char* format, Words... words) {
    return checked(redis_reply{static_cast<redisReply*>(redisCommand(context_, format, words...))});
  }
  /// Only sends the command: next() reads its reply.
  template <class... Words>
  void send(const char* format, Words... words) {
    redisAppendCommand(context_, format, words...);
    for (int all = 0; all == 0;) {
      if (redisBufferWrite(context_, &all) != REDIS_OK) throw std::runtime_error{context_->errstr};
    }
  }
  /// The server's processor time so far.
  double server_cpu_seconds() {
    const auto reply = ask("INFO cpu");
    const std::string all(reply->str, reply->len);
    double seconds = 0;
    for (const std::string key : {"used_cpu_sys:", "used_cpu_user:"}) {
      if (const auto at = all.find(key); at != all.npos)
        seconds += std::stod(all.substr(at + key.size()));
    }
    return seconds;
  }
  redis_reply next() {
    void* r = nullptr;
    redisGetReply(context_, &r);
    return checked(redis_reply{static_cast<redisReply*>(r)});
  }

 private:
  static redisContext* open(const std::string& url) {
    std::string rest = url.substr(url.find("//") + 2);
    rest = rest.substr(0, rest.find('?'));
    if (scheme_of(url) == "redis+unix") return redisConnectUnix(rest.c_str());
    rest = rest.substr(0, rest.find('/'));
    const auto colon = rest.rfind(':');
    const int port = colon == rest.npos ? 6379 : std::stoi(rest.substr(colon + 1));
    return redisConnect(rest.substr(0, colon).c_str(), port);
  }
  redis_reply checked(redis_reply r) const {
    if (!r || r->type == REDIS_REPLY_ERROR) throw std::runtime_error{r ? r->str : context_->errstr};
    return r;
  }

  redisContext* context_;
};

}  // namespace bench
