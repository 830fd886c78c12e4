#pragma once

#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tool/faultproxy/relay.hpp"

namespace harness {

using holdfast::faultproxy::relay;
using holdfast::faultproxy::way;

/// A bad network on a free port of 127.0.0.1, run by a thread of its own. A fault is active when
/// the call that makes it returns.
class fault_proxy {
 public:
  /// Forwards to a port of this machine.
  explicit fault_proxy(int to);
  ~fault_proxy();
  fault_proxy(const fault_proxy&) = delete;

  int port() const { return port_; }

  /// Changes or reads the faults on the proxy's thread; see relay.hpp.
  template <class Act>
  auto with(Act act) {
    const auto job =
        std::make_shared<std::packaged_task<decltype(act(relay_))()>>([&] { return act(relay_); });
    post([job] { (*job)(); });
    return job->get_future().get();
  }
  void cut() {
    with([](relay& r) { r.cut(); });
  }
  void heal() {
    with([](relay& r) { r.heal(); });
  }
  relay::counts count() {
    return with([](relay& r) { return r.count(); });
  }

 private:
  void post(std::function<void()> job);
  void work();

  relay relay_;
  const int port_;
  const int wake_fd_;
  std::mutex mutex_;
  std::vector<std::function<void()>> jobs_;
  bool over_ = false;  ///< used by its own thread only
  std::thread thread_;
};

}  // namespace harness
