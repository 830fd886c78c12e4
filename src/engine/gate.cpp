#include "engine/gate.hpp"

#include <algorithm>

#include "engine/acquire.hpp"

namespace holdfast::engine {

gate::entry gate::enter(acquisition& who, boot_time deadline, std::stop_token stop) {
  using at_gate = acquisition::at_gate;
  std::unique_lock lock{mutex_};
  if (!occupied_) {
    occupied_ = true;
    return entry::first;
  }
  if (clock_.now() >= deadline) return entry::timed_out;
  line_.push_back(&who);
  lock.unlock();
  const std::stop_callback on_stop{stop, [&] {
                                     const std::lock_guard guard{mutex_};
                                     who.gate_changed_.notify_one();
                                   }};
  lock.lock();
  while (who.at_gate_ == at_gate::waiting || who.at_gate_ == at_gate::chosen) {
    const bool chosen = who.at_gate_ == at_gate::chosen;
    const bool late = clock_.now() >= deadline;
    if (!chosen && (late || stop.stop_requested())) {
      std::erase(line_, &who);
      who.at_gate_ = at_gate::gone;
    } else {
      clock_.wait_until(lock, who.gate_changed_, chosen ? forever : deadline);
    }
  }
  const auto end = who.at_gate_;
  lock.unlock();  // before on_stop goes: it may have to wait for a callback that wants the mutex
  if (end == at_gate::gone) return stop.stop_requested() ? entry::cancelled : entry::timed_out;
  return end == at_gate::first ? entry::first : entry::asked;
}

void gate::leave() {
  const std::lock_guard guard{mutex_};
  if (line_.empty()) {
    occupied_ = false;
    return;
  }
  acquisition* const next = line_.front();
  line_.pop_front();
  next->at_gate_ = acquisition::at_gate::first;
  next->gate_changed_.notify_one();
}

acquisition* gate::take_next() {
  const std::lock_guard guard{mutex_};
  if (line_.empty()) return nullptr;
  acquisition* const next = line_.front();
  line_.pop_front();
  next->at_gate_ = acquisition::at_gate::chosen;
  return next;
}

void gate::hand_to(acquisition& next) {
  const std::lock_guard guard{mutex_};
  next.at_gate_ = acquisition::at_gate::asked;
  next.gate_changed_.notify_one();
}

std::size_t gate::waiting() {
  const std::lock_guard guard{mutex_};
  return line_.size();
}

std::shared_ptr<gate> gate_list::at(const std::string& name, clock& on) {
  const std::lock_guard guard{mutex_};
  auto& place = gates_[name];
  auto found = place.lock();
  if (!found) place = found = std::make_shared<gate>(on);
  if (gates_.size() >= sweep_at_) {
    std::erase_if(gates_, [](const auto& entry) { return entry.second.expired(); });
    sweep_at_ = std::max<std::size_t>(64, gates_.size() * 2);
  }
  return found;
}

}  // namespace holdfast::engine
