#include "c/handles.hpp"

#include <pthread.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

namespace holdfast::c_abi {

namespace {

struct registry {
  std::mutex mutex;
  std::unordered_map<std::uintptr_t, std::shared_ptr<handle>> handles;
  std::uintptr_t last = 0;
  unsigned forks = 0;
};

// The mutex is locked around a fork(): otherwise another thread might hold it at that moment, and
// the child would wait for it for ever.
registry& all() {
  static registry* const made = [] {
    auto* const r = new registry;
    static registry* known = nullptr;
    known = r;
    (void)::pthread_atfork([] { known->mutex.lock(); }, [] { known->mutex.unlock(); },
                           [] {
                             ++known->forks;
                             known->mutex.unlock();
                           });
    return r;
  }();
  return *made;
}

std::uintptr_t number_of(const void* key) { return reinterpret_cast<std::uintptr_t>(key); }

}  // namespace

handle::handle() noexcept : born_(all().forks) {}

bool handle::of_the_parent() const noexcept { return born_ != all().forks; }

void* enter(std::shared_ptr<handle> what) {
  registry& r = all();
  const std::lock_guard guard{r.mutex};
  // Below 2^53, so that languages whose numbers are doubles can represent it exactly.
  const auto key = r.last + 1;
  r.handles.emplace(key, std::move(what));
  r.last = key;
  return reinterpret_cast<void*>(key);
}

std::shared_ptr<handle> look_up(const void* key) {
  registry& r = all();
  const std::lock_guard guard{r.mutex};
  const auto found = r.handles.find(number_of(key));
  if (found == r.handles.end()) return nullptr;
  if (found->second->of_the_parent()) {
    refuse(errc::forked, "the handle is of the parent process: open a new session in the child");
  }
  return found->second;
}

std::shared_ptr<handle> take_out(const void* key) {
  auto found = look_up(key);
  if (!found) return nullptr;
  registry& r = all();
  const std::lock_guard guard{r.mutex};
  return r.handles.erase(number_of(key)) == 1 ? found : nullptr;
}

std::vector<std::shared_ptr<handle>> take_all_out() {
  registry& r = all();
  const std::lock_guard guard{r.mutex};
  std::vector<std::shared_ptr<handle>> found;
  found.reserve(r.handles.size());
  std::erase_if(r.handles, [&](auto& known) {
    const bool ours = !known.second->of_the_parent();
    if (ours) found.push_back(std::move(known.second));
    return ours;
  });
  return found;
}

void refuse(errc code, const std::string& what) { throw_failure(failure{code, what}); }

void refuse_handle(const char* what, const void* key) {
  if (key == nullptr) refuse(errc::invalid_argument, std::string(what) + " is NULL");
  refuse(errc::invalid_argument,
         std::string(what) + ": the handle is closed already, or has another type");
}

}  // namespace holdfast::c_abi
