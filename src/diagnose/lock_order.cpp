#include "diagnose/lock_order.hpp"

#include <pthread.h>
#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "lease/own_holds.hpp"
#include "session/store_client.hpp"

namespace holdfast::engine {

namespace {

/// A name on a store.
using stored_name = std::pair<std::string, std::string>;
using stored_name_view = std::pair<std::string_view, std::string_view>;

/// Compares views as well, without making strings.
struct by_stored_name {
  using is_transparent = void;
  bool operator()(const stored_name_view& a, const stored_name_view& b) const { return a < b; }
};

/// Limits the memory: names may be made of ever new numbers.
constexpr std::size_t max_pairs = 10'000;

std::string text_of(const std::optional<std::source_location>& at) {
  if (!at) return "somewhere";
  return std::string(at->file_name()) + ':' + std::to_string(at->line());
}

/// A thread held `first` and took `second`.
struct step {
  stored_name first;
  stored_name second;
  std::string first_at;
  std::string second_at;

  std::string text() const {
    return '"' + second.second + "\" at " + second_at + " while it had \"" + first.second +
           "\" from " + first_at;
  }
};

/// The pairs of names taken one after the other. A pair that closes a ring is reported and not
/// entered, so there are no rings among the pairs.
class order_seen {
 public:
  /// True if no further pair is noted.
  bool is_full() const noexcept { return pairs_.load(std::memory_order_relaxed) >= max_pairs; }

  /// Fast, because a thread that holds many names calls it for each of them.
  bool knows(const stored_name_view& first, const stored_name_view& second) const {
    const std::lock_guard guard{mutex_};
    const auto known = after_.find(first);
    return known != after_.end() && known->second.contains(second);
  }

  /// Notes a pair. If the opposite order was seen, directly or through other names, returns its
  /// steps, unless this was reported before.
  std::vector<step> note(const step& taken) {
    const std::lock_guard guard{mutex_};
    const std::pair pair{taken.first, taken.second};
    if (is_full() || told_.contains(pair)) return {};
    // Only once for each pair, because the search is slow.
    auto back = way(taken.second, taken.first);
    const bool is_new = back.empty() ? after_[pair.first].emplace(pair.second, taken).second
                                     : told_.insert(pair).second;
    if (is_new) ++pairs_;
    return back;
  }

 private:
  std::vector<step> way(const stored_name& from, const stored_name& to) const {
    std::map<stored_name, const step*> reached{{from, nullptr}};
    std::vector<stored_name> look_at{from};
    for (std::size_t i = 0; i < look_at.size(); ++i) {
      const auto next = after_.find(look_at[i]);
      if (next == after_.end()) continue;
      for (const auto& [where, how] : next->second) {
        if (reached.emplace(where, &how).second) look_at.push_back(where);
      }
    }
    std::vector<step> all;
    if (!reached.contains(to)) return all;
    for (const step* s = reached[to]; s != nullptr; s = reached[s->first]) all.push_back(*s);
    std::reverse(all.begin(), all.end());
    return all;
  }

  mutable std::mutex mutex_;
  std::map<stored_name, std::map<stored_name, step, by_stored_name>, by_stored_name> after_;
  std::set<std::pair<stored_name, stored_name>> told_;
  std::atomic<std::size_t> pairs_{0};
};

// Never destroyed: threads may lock until the very end of the program. The child of a fork() starts
// with an empty one: the mutex may have been locked by a thread that the child does not have.
order_seen& of_process() {
  static order_seen* all = nullptr;
  static const int once = [] {
    all = new order_seen;
    return pthread_atfork(nullptr, nullptr, [] { all = new order_seen; });
  }();
  (void)once;
  return *all;
}

void tell(store_client& session, const std::string& name, const step& taken,
          const std::vector<step>& back) {
  std::string detail = "takes " + taken.text();
  for (const step& s : back) detail += "; before, a thread took " + s.text();
  detail +=
      ": threads that do so at the same time wait for each other; take them in one order "
      "everywhere, or together with multi_lock";
  session.tell(
      {.kind = event_kind::lock_order, .name = name, .code = errc::deadlock, .detail = detail});
}

}  // namespace

void note_lock_order(store_client& session, const std::string& name) {
  order_seen& seen = of_process();
  if (seen.is_full()) return;
  const stored_name_view wanted{session.url(), name};
  std::vector<step> unknown;
  each_own_hold([&](const own_hold& own) {
    const stored_name_view had{own.url, own.name};
    if (had == wanted || seen.knows(had, wanted)) return;
    unknown.push_back({stored_name(had), stored_name(wanted), text_of(own.taken_at),
                       text_of(current_call_site())});
  });
  // Reported afterwards, because an observer may lock something itself.
  for (const step& taken : unknown) {
    if (const auto back = seen.note(taken); !back.empty()) tell(session, name, taken, back);
  }
}

}  // namespace holdfast::engine
