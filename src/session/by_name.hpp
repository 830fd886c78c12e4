#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace holdfast::engine {

/// One object for each name, which exists while it is used. Thread-safe.
template <class Thing>
class by_name {
 public:
  template <class... Args>
  std::shared_ptr<Thing> at(const std::string& name, Args&... args) {
    const std::lock_guard guard{mutex_};
    auto& entry = things_[name];
    auto found = entry.lock();
    if (!found) entry = found = std::make_shared<Thing>(args...);
    if (things_.size() >= sweep_at_) {
      std::erase_if(things_, [](const auto& of) { return of.second.expired(); });
      sweep_at_ = std::max<std::size_t>(64, things_.size() * 2);
    }
    return found;
  }

  /// Null if the object is not in use.
  std::shared_ptr<Thing> find(const std::string& name) {
    const std::lock_guard guard{mutex_};
    const auto entry = things_.find(name);
    return entry == things_.end() ? nullptr : entry->second.lock();
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<Thing>> things_;
  std::size_t sweep_at_ = 64;
};

}  // namespace holdfast::engine
