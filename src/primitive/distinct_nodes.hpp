#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "quorum/quorum.hpp"
#include "wait/async_forms.hpp"

namespace holdfast::primitive {

/// Detects a store that is in a quorum twice, and would vote twice. It compares the sessions and
/// the run ids of the stores. The run ids are requested with the first acquisition; with later ones
/// from the nodes that did not answer. Thread-safe.
class distinct_nodes {
 public:
  explicit distinct_nodes(std::shared_ptr<const engine::quorum> of)
      : quorum_(std::move(of)), known_(std::make_shared<known>(quorum_->nodes.size())) {}

  /// Checks that no session occurs twice. No round trip.
  status check_sessions() const {
    const auto& nodes = quorum_->nodes;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (nodes[i]->session() == nodes[j]->session()) return twice(j, i);
      }
    }
    return done{};
  }

  /// Requests the missing ids. The verdict needs one answer from each node. The first acquisition
  /// sets the time by which they have to answer (a node's usual time limit); later acquisitions
  /// wait no longer than that, and no acquisition waits beyond its own deadline. Returns that time.
  /// `heard` is called, from any thread, when all have answered.
  boot_time ask(boot_time deadline, std::function<void()> heard) {
    std::unique_lock lock{known_->mutex};
    const boot_time now = quorum_->now();
    const bool first = !std::exchange(asked_before_, true);
    if (first) heard_by_ = saturated_add(now, quorum_->patience);
    const boot_time until = std::min(heard_by_, deadline);
    if (known_->to_be_heard > 0 && now < until) {
      known_->to_be_told.push_back(std::move(heard));
    }
    lock.unlock();
    for (std::size_t i = 0; i < quorum_->nodes.size(); ++i) ask(i, first);
    return until;
  }
  bool all_heard() const {
    const std::lock_guard guard{known_->mutex};
    return known_->to_be_heard == 0;
  }
  status verdict() const {
    const std::lock_guard guard{known_->mutex};
    for (std::size_t i = 0; i < known_->ids.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (!known_->ids[i].empty() && known_->ids[i] == known_->ids[j]) return twice(j, i);
      }
    }
    return done{};
  }

 private:
  struct known {
    explicit known(std::size_t n) : ids(n), asking(n), heard(n), to_be_heard(n) {}
    /// A node without an id is asked again by a later acquisition.
    void answered(std::size_t i, std::string id) noexcept {
      std::unique_lock lock{mutex};
      ids[i] = std::move(id);
      asking[i] = false;
      if (!heard[i]) --to_be_heard;
      heard[i] = true;
      if (to_be_heard > 0) return;
      const auto told = std::exchange(to_be_told, {});
      lock.unlock();
      for (const auto& one : told) one();
    }
    std::mutex mutex;
    std::vector<std::string> ids;
    std::vector<bool> asking;
    std::vector<bool> heard;  ///< answered at least once, even if with a failure
    std::size_t to_be_heard;
    std::vector<std::function<void()>> to_be_told;  ///< called when all have answered
  };

  void ask(std::size_t i, bool first_time) {
    const auto& node = *quorum_->nodes[i];
    {
      const std::lock_guard guard{known_->mutex};
      if (!known_->ids[i].empty() || known_->asking[i]) return;
      if (!first_time && !node.worth_asking(quorum_->now(), quorum_->patience)) return;
      known_->asking[i] = true;
    }
    try {
      begin(node, i);
    } catch (...) {  // no memory: no answer will come
      known_->answered(i, {});
      throw;
    }
  }

  void begin(const engine::quorum_node& node, std::size_t i) {
    const auto id = std::make_shared<std::string>();
    auto* const session = node.session().get();
    engine::async_do(node.session(), [session, id]() -> status {
      auto who = session->identify();
      if (!who) return std::move(who.error());
      *id = std::move(who->run_id);
      return done{};
    }).start([id, i, known = known_](const status&) { known->answered(i, std::move(*id)); });
  }

  failure twice(std::size_t i, std::size_t j) const {
    return {errc::invalid_argument, "sessions " + std::to_string(i + 1) + " and " +
                                        std::to_string(j + 1) +
                                        " are of one store, which would vote twice: give each "
                                        "node of the quorum a store of its own"};
  }

  const std::shared_ptr<const engine::quorum> quorum_;
  const std::shared_ptr<known> known_;
  bool asked_before_ = false;
  boot_time heard_by_{};  ///< no acquisition waits for the nodes beyond that
};

}  // namespace holdfast::primitive
