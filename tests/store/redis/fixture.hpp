#pragma once

#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>
#include <mutex>
#include <string>
#include <vector>

#include "harness/eventually.hpp"
#include "harness/failing.hpp"
#include "harness/redis_rights.hpp"
#include "harness/redis_server.hpp"

namespace redis_test {

using harness::contains;
using harness::give_documented_rights;
using harness::outcome_of;
using outcome = harness::failing;

/// Keeps the events.
class listener final : public holdfast::observer {
 public:
  void on_event(const holdfast::event& e) override {
    const std::lock_guard guard{mutex_};
    kinds_.push_back(e.kind);
    details_ += std::string(e.detail) + '\n';
  }
  bool saw(holdfast::event_kind kind) const {
    const std::lock_guard guard{mutex_};
    for (const auto k : kinds_) {
      if (k == kind) return true;
    }
    return false;
  }
  std::string details() const {
    const std::lock_guard guard{mutex_};
    return details_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<holdfast::event_kind> kinds_;
  std::string details_;
};

/// How many commands the server has carried out since RESETSTAT: all, or those of one kind.
inline long long calls(const harness::redis_server& server, const std::string& of = {}) {
  const std::string info = server.ask({"INFO", "commandstats"});
  const std::string what = of.empty() ? "calls=" : "cmdstat_" + of + ":calls=";
  long long sum = 0;
  for (auto at = info.find(what); at != info.npos; at = info.find(what, at + 1))
    sum += std::stoll(info.substr(at + what.size()));
  return sum;
}

/// The number of holdfast sessions that listen at a server.
inline std::size_t listening_at(const harness::redis_server& s) {
  const auto clients = s.ask({"CLIENT", "LIST", "TYPE", "pubsub"});
  std::size_t ours = 0;
  for (auto at = clients.find("name=holdfast"); at != clients.npos;
       at = clients.find("name=holdfast", at + 1)) {
    ++ours;
  }
  return ours;
}

}  // namespace redis_test
