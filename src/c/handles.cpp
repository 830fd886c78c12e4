#include "c/handles.hpp"

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <holdfast/clock.hpp>
#include <mutex>
#include <string>
#include <unordered_map>

namespace holdfast::c_abi {

struct calls {
  std::stop_source closed;
  unsigned under_way = 0;
  std::condition_variable ended;
};

namespace {

/// A wait that was stopped ends sooner, unless a store hangs that has long time-outs.
constexpr std::chrono::seconds longest_wait_for_calls{10};
/// A signal handler may interrupt a call, and end the program.
thread_local unsigned calls_of_this_thread = 0;
thread_local unsigned visits_of_this_thread = 0;

struct registry {
  std::mutex mutex;
  std::unordered_map<std::uintptr_t, std::shared_ptr<handle>> handles;
  std::uintptr_t last = 0;
  unsigned forks = 0;
  std::condition_variable left;  ///< a visit has ended
  std::shared_ptr<c_abi::calls> calls{};

  const std::shared_ptr<c_abi::calls>& present_calls() {
    if (!calls) calls = std::make_shared<c_abi::calls>();
    return calls;
  }
};

// The mutex is locked around a fork(): otherwise another thread might hold it at that moment, and
// the child would wait for it for ever. The child leaves the calls of the parent's threads alone:
// their callbacks are on stacks that its own threads will use.
registry& all() {
  static registry* const made = [] {
    auto* const r = new registry;
    static registry* known = nullptr;
    known = r;
    (void)::pthread_atfork([] { known->mutex.lock(); }, [] { known->mutex.unlock(); },
                           [] {
                             ++known->forks;
                             known->calls.reset();
                             // Threads of the parent may be waiting for the other one.
                             std::construct_at(&known->left);
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

namespace {

/// To be called with the mutex held.
std::shared_ptr<handle> found_in(const registry& r, const void* key) {
  const auto found = r.handles.find(number_of(key));
  if (found == r.handles.end()) return nullptr;
  if (found->second->of_the_parent()) {
    refuse(errc::forked, "the handle is of the parent process: open a new session in the child");
  }
  return found->second;
}

}  // namespace

std::shared_ptr<handle> look_up(const void* key, const std::function<bool(handle&)>& fits) {
  registry& r = all();
  const std::lock_guard guard{r.mutex};
  auto found = found_in(r, key);
  if (found && !fits(*found)) found.reset();
  return found;
}

visit::visit(const void* key) : key_(key) {
  if (key == nullptr) return;
  registry& r = all();
  const std::lock_guard guard{r.mutex};
  at_ = found_in(r, key);
  if (!at_) return;
  ++at_->visits_;
  ++visits_of_this_thread;
}

// The registry still owns the object, or the thread that closes it.
visit::~visit() {
  if (!at_) return;
  registry& r = all();
  const std::lock_guard guard{r.mutex};
  --visits_of_this_thread;
  --at_->visits_;
  at_.reset();
  r.left.notify_all();
}

void handle::close() noexcept {
  on_close();
  registry& r = all();
  std::unique_lock guard{r.mutex};
  r.left.wait(guard, [&] { return visits_ <= visits_of_this_thread; });
}

std::shared_ptr<handle> take_out(const void* key) {
  registry& r = all();
  const std::lock_guard guard{r.mutex};
  auto found = found_in(r, key);
  if (found) r.handles.erase(number_of(key));
  return found;
}

std::vector<std::shared_ptr<handle>> take_out(closing which) {
  registry& r = all();
  const std::lock_guard guard{r.mutex};
  std::vector<std::shared_ptr<handle>> found;
  found.reserve(r.handles.size());
  if (which == closing::all) r.calls.reset();
  std::erase_if(r.handles, [&](auto& known) {
    const handle& one = *known.second;
    const bool goes = !one.of_the_parent() && (which == closing::all || one.closes_first());
    if (goes) found.push_back(std::move(known.second));
    return goes;
  });
  return found;
}

call_under_way::call_under_way(in where) : where_(where) {
  registry& r = all();
  const std::lock_guard guard{r.mutex};
  const bool releases = where_ == in::a_release;
  // There are calls already: one of them has acquired the lease.
  all_ = releases ? r.calls : r.present_calls();
  counts_ = all_ && (releases || !all_->closed.stop_requested());
  if (!counts_) return;
  ++all_->under_way;
  if (where_ != in::a_queue) ++calls_of_this_thread;
}

call_under_way::~call_under_way() {
  if (!counts_) return;
  if (where_ != in::a_queue) --calls_of_this_thread;
  registry& r = all();
  const std::lock_guard guard{r.mutex};
  --all_->under_way;
  all_->ended.notify_all();
}

std::stop_token call_under_way::closed() const { return all_->closed.get_token(); }

end_of_calls::end_of_calls()
    : all_([] {
        registry& r = all();
        const std::lock_guard guard{r.mutex};
        return r.present_calls();
      }()),
      until_(saturated_add(boot_clock::now(), longest_wait_for_calls)) {
  all_->closed.request_stop();
  await();
}

void end_of_calls::await() const {
  std::unique_lock guard{all().mutex};
  while (all_->under_way > calls_of_this_thread && boot_clock::now() < until_)
    real_clock().wait_until(guard, all_->ended, until_);
}

void refuse(errc code, const std::string& what) { throw_failure(failure{code, what}); }

void refuse_handle(const char* what, const void* key) {
  if (key == nullptr)
    refuse(errc::invalid_argument, std::string(what) + " is NULL (Python, Node: it is closed)");
  refuse(errc::invalid_argument,
         std::string(what) + ": the handle is closed already, or has another type");
}

}  // namespace holdfast::c_abi
