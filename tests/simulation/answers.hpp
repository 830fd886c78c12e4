#pragma once

#include <chrono>
#include <cstdint>
#include <holdfast/admission.hpp>
#include <holdfast/redlock.hpp>
#include <holdfast/session.hpp>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "simulation/judge.hpp"
#include "simulation/plan.hpp"

/// Judges that need no more than the plan and the answer to one call.
namespace simulation {

/// Threads that use a semaphore, by the number of permits that they name; or that use the name as
/// another kind.
class sizes_in_use {
 public:
  static constexpr std::uint32_t another_kind = 1U << 31;
  void uses(std::size_t name, std::uint32_t size, bool so, nanos now);
  /// Whether a thread that names another number has used the name since then.
  bool differ(std::size_t name, std::uint32_t size, nanos since) const;
  /// Whether a thread has used the name as another kind than this one since then.
  bool clash(std::size_t name, std::uint32_t size, nanos since) const;

 private:
  struct use {
    int threads = 0;
    nanos last = -1000 * second;  ///< when the last thread left
  };
  template <class Differs>
  bool any(std::size_t name, nanos since, Differs differs) const;

  std::map<std::pair<std::size_t, std::uint32_t>, use> all_;
};

/// A session closed, and left this at the store. So many of its messages were lost meanwhile.
void judge_what_was_lost(judge& to, const plan& p, std::uint32_t lost, const std::string& left);
/// A call of a redlock, made by that process from `asked` to `now`, ended with `unavailable`.
/// `wait` was its limit; zero: a try, which gives each node its own time.
void judge_nodes(judge& to, const plan& p, const std::string& name, nanos asked, nanos now,
                 std::size_t process, nanos wait);
/// A wait for a lock, which asks the store by itself, ended with `unavailable` at its limit.
void judge_silence(judge& to, const plan& p, const std::string& name, nanos asked, nanos now);
/// A wait for tokens that were due within `longest` was refused. No other thread asked meanwhile.
void judge_wait_for_tokens(judge& to, const plan& p, const std::string& name, nanos took,
                           nanos longest);
/// A take that says that it took ended after `took`; its tokens were due after `due`.
void judge_take(judge& to, const std::string& name, nanos took, nanos due);
/// What a refused admission says, where no message is late.
void judge_reason(judge& to, const std::string& name, const holdfast::admitted& refused);
/// What is shown of a name that is held, in a run without faults; `permits`: of a semaphore.
void judge_what_is_shown(judge& to, const plan& p, const std::string& name, std::uint32_t permits,
                         const holdfast::name_info& shows);
/// Of any lock, in a run without faults.
void judge_holders_shown(judge& to, const holdfast::name_info& shows);
/// How a bucket is listed, or that it is not; it had these numbers of tokens before and afterwards.
void judge_bucket(judge& to, const std::string& name, const holdfast::rate_bucket* listed,
                  std::uint64_t burst, std::uint64_t before, std::uint64_t after);
/// So many threads of a process have waited for a moment; `most`: its max_waiters.
void judge_crowd(judge& to, const std::string& name, int process, std::size_t wait,
                 std::size_t most);
/// A lease had so much time left before and after it was asked for its state.
void judge_time(judge& to, const std::string& name, std::chrono::nanoseconds before,
                holdfast::lease_state so, std::chrono::nanoseconds after);
/// n tokens were given back, and no other call asked a bucket that had these numbers of tokens
/// before and afterwards.
void judge_given_back(judge& to, const std::string& name, std::uint64_t before, std::uint64_t n,
                      std::uint64_t burst, std::uint64_t after);
/// The votes of a redlock that was acquired a moment ago, in a run without faults.
void judge_votes(judge& to, const std::string& name, const std::vector<holdfast::vote>& votes,
                 std::size_t nodes);
/// A redlock was released that had these votes; at some nodes its process still has something.
void judge_rest_of_a_redlock(judge& to, const std::string& what,
                             const std::vector<holdfast::vote>& had, const std::vector<bool>& left);
/// A redlock was lost.
void judge_lost_redlock(judge& to, const plan& p, const std::string& name);

}  // namespace simulation
