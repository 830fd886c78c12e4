#include "store/memory/memory.hpp"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <holdfast/store/micros.hpp>
#include <holdfast/store/queue_inbox.hpp>
#include <map>
#include <mutex>
#include <unordered_map>

namespace holdfast::store::memory {

namespace {

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

/// The state that sessions of the same name share.
struct space {
  std::mutex mutex;
  std::unordered_map<std::string, std::string> records;
  std::map<std::string, std::weak_ptr<queue_inbox>, std::less<>> inboxes;
  std::size_t walked_to = 0;
  std::int64_t sessions = 0;
  const std::uint64_t number = next_number();
  // The wall clock when the space was created. After that only the session's clock counts, so that
  // fences grow even if the machine's time is changed.
  const std::chrono::microseconds wall_at_start =
      std::chrono::duration_cast<std::chrono::microseconds>(
          std::chrono::system_clock::now().time_since_epoch());
  boot_time made_at{};
};

struct registry {
  std::mutex mutex;
  std::unordered_map<std::string, std::weak_ptr<space>> spaces;
};

// The child of a fork() starts with an empty registry: the parent's holds are not the child's, and
// a mutex may have been locked by a thread that the child does not have.
registry& current_registry() {
  static registry* current = nullptr;
  static const int once = [] {
    current = new registry;
    return pthread_atfork(nullptr, nullptr, [] { current = new registry; });
  }();
  (void)once;
  return *current;
}

std::shared_ptr<space> space_called(const std::string& name, clock& on) {
  auto& [mutex, spaces] = current_registry();
  const std::lock_guard guard{mutex};
  std::erase_if(spaces, [](const auto& entry) { return entry.second.expired(); });
  std::shared_ptr<space> found = name.empty() ? nullptr : spaces[name].lock();
  if (!found) {
    found = std::shared_ptr<space>(new space);  // a weak pointer would keep make_shared's memory
    found->made_at = on.now();
    if (!name.empty()) spaces[name] = found;
  }
  return found;
}

class memory_store final : public state_store {
 public:
  memory_store(const std::string& name, clock& on)
      : clock_(on), space_(space_called(name, on)), url_("memory:" + name) {
    capabilities_.sees_death = true;  // of a session: all sessions are in this process
    capabilities_.several_processes = false;
    const std::lock_guard guard{space_->mutex};
    inbox_ = std::make_shared<queue_inbox>("m" + std::to_string(++space_->sessions), on);
    space_->inboxes.emplace(inbox_->peer(), inbox_);
  }

  ~memory_store() override {
    const std::lock_guard guard{space_->mutex};
    space_->inboxes.erase(inbox_->peer());
  }

  const capabilities& can() const noexcept override { return capabilities_; }
  const std::string& url() const noexcept override { return url_; }
  store::inbox& inbox() noexcept override { return *inbox_; }

  status transact(std::string_view name, transition& change) override {
    const std::lock_guard guard{space_->mutex};
    std::string& record = space_->records[std::string(name)];
    if (const std::string* const next = change.apply(record, now())) record = *next;
    if (record.empty()) space_->records.erase(std::string(name));
    return done{};
  }

  status transact_together(std::span<const step> steps, const judge& after) override {
    const std::lock_guard guard{space_->mutex};
    std::vector<std::pair<std::string, std::string>> before;
    for (const auto& [name, change] : steps) {
      std::string& record = space_->records[std::string(name)];
      before.emplace_back(name, record);
      if (const std::string* const next = change->apply(record, now())) record = *next;
      const verdict so = after(before.size() - 1);
      if (so == verdict::go_on) continue;
      if (so == verdict::keep) break;
      for (auto& [changed, text] : before) space_->records[changed] = std::move(text);
      break;
    }
    for (const auto& [name, text] : before) {
      if (space_->records[name].empty()) space_->records.erase(name);
    }
    return done{};
  }

  result<std::vector<entry>> entries() override {
    const std::lock_guard guard{space_->mutex};
    std::vector<entry> all;
    for (const auto& [name, record] : space_->records) all.push_back({name, record});
    return all;
  }

  result<std::vector<entry>> walk(std::string_view, std::size_t most) override {
    const std::lock_guard guard{space_->mutex};
    const auto& records = space_->records;
    std::vector<entry> some;
    for (std::size_t i = 0; i < records.bucket_count() && some.size() < most; ++i) {
      const std::size_t at = space_->walked_to++ % records.bucket_count();
      for (auto r = records.begin(at); r != records.end(at); ++r)
        some.push_back({r->first, r->second});
    }
    return some;
  }

  // Not identified by its name: each space without a name is a store of its own.
  result<store::identity> identify() override {
    return store::identity{std::to_string(space_->number), {}};
  }

  result<moment> time() override { return now(); }

  bool departed(std::string_view peer) override {
    const std::lock_guard guard{space_->mutex};
    return !space_->inboxes.contains(peer);
  }

  bool tell(const notification& to) override {
    std::shared_ptr<queue_inbox> there;
    {
      const std::lock_guard guard{space_->mutex};
      if (const auto at = space_->inboxes.find(to.peer); at != space_->inboxes.end()) {
        there = at->second.lock();
      }
    }
    if (!there) return false;
    there->put(to);
    return true;
  }

 private:
  moment now() const {
    const boot_time t = clock_.now();
    return {micros(t), space_->wall_at_start.count() + micros(t - space_->made_at), true};
  }

  clock& clock_;
  std::shared_ptr<space> space_;
  std::string url_;
  capabilities capabilities_;
  std::shared_ptr<queue_inbox> inbox_;
};

}  // namespace

std::unique_ptr<state_store> open_memory(const std::string& name, clock& on) {
  return std::make_unique<memory_store>(name, on);
}

}  // namespace holdfast::store::memory
