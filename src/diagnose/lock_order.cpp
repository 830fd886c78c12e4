#include "diagnose/lock_order.hpp"

#include <pthread.h>
#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "lease/own_holds.hpp"
#include "session/store_client.hpp"

namespace holdfast::engine {

namespace {

/// A name on a store.
using stored_name = std::pair<std::string, std::string>;

/// Names may be made of numbers without end.
constexpr std::size_t max_pairs = 10'000;

std::string text_of(const std::optional<std::source_location>& at) {
  if (!at) return "somewhere";
  return std::string(at->file_name()) + ':' + std::to_string(at->line());
}

/// Somebody had the one and took the other.
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

/// What was taken after what. A pair that closes a ring is told and not entered, so there are none.
class order_seen {
 public:
  /// The way back, if there is one that was not told before; what comes after what in it.
  std::vector<step> note(step taken) {
    const std::lock_guard guard{mutex_};
    const auto known = after_.find(taken.first);
    if (known != after_.end() && known->second.contains(taken.second)) return {};
    std::pair pair{taken.first, taken.second};
    if (pairs_ >= max_pairs || told_.contains(pair)) return {};
    auto back = way(taken.second, taken.first);  // once for each pair: it looks at many
    if (back.empty()) {
      after_[taken.first].emplace(taken.second, std::move(taken));
    } else {
      told_.insert(std::move(pair));
    }
    ++pairs_;
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

  std::mutex mutex_;
  std::map<stored_name, std::map<stored_name, step>> after_;
  std::set<std::pair<stored_name, stored_name>> told_;
  std::size_t pairs_ = 0;
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
  event e;
  e.kind = event_kind::lock_order;
  e.name = name;
  e.code = errc::deadlock;
  e.detail = detail;
  session.tell(e);
}

}  // namespace

void note_lock_order(store_client& session, const std::string& name) {
  const stored_name wanted{session.url(), name};
  for (const own_hold& own : own_holds()) {
    const stored_name had{own.url, own.name};
    if (had == wanted) continue;
    const step taken{had, wanted, text_of(own.taken_at), text_of(current_call_site())};
    if (const auto back = of_process().note(taken); !back.empty()) tell(session, name, taken, back);
  }
}

}  // namespace holdfast::engine
