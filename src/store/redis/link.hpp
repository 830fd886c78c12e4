#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <span>

#include "base/reconnect_pause.hpp"
#include "store/redis/awake.hpp"
#include "store/redis/futex.hpp"
#include "store/redis/handshake.hpp"

namespace holdfast::store::redis {

/// Encoded commands that are sent together.
struct message {
  std::string_view bytes;
  std::size_t replies = 1;
  /// The last command gets one more argument behind its others: until when, by the server's clock,
  /// the server may carry it out. A command that was delayed on its way must not take effect after
  /// its caller has given up. If earlier commands of this link may still be on their way, the
  /// argument is "until after", and from then on every command is too late whose `until` is `after`
  /// or earlier.
  /// The command must be a call of one of our scripts: no other reply is trusted to have the
  /// server's time.
  bool stamped = false;
  bool once = false;     ///< not sent again if the connection broke before its answer
  bool closing = false;  ///< goes behind the others, even if only some of them are sent again
};

/// How many replicas acknowledged the writes.
struct acknowledged {
  std::int64_t by = 0;      ///< the number that have them
  std::int64_t wanted = 0;  ///< the number that must have them
  std::string refusal{};    ///< what the server said, if it did not count them
  bool enough() const noexcept { return by >= wanted; }
};

/// The only connection over which all threads of a session talk to the server. It has no thread of
/// its own.
///
/// Threads put their requests into one buffer. The first of them writes it, including requests that
/// were added meanwhile. One of the threads that wait for replies reads for all of them; when it
/// has its own replies, the next thread goes on reading. So a single thread needs no thread switch,
/// and many threads share each system call.
///
/// After a connection breaks, the next thread that needs it reconnects, after pauses that grow as
/// long as no connection is of any use. Threads that come in a short pause wait for its end; in a
/// long one they fail. Requests that were in progress are sent once more, because every command may
/// be repeated. Requests that get no answer within command_timeout fail with outcome_unknown.
/// Thread-safe.
///
/// Without memory a request is not sent, or the connection breaks: an answer never reaches the
/// wrong request.
class link {
 public:
  explicit link(const redis_options& options) : options_(options) {}
  ~link();
  link(const link&) = delete;

  struct answer {
    std::vector<resp_value> replies;
    bool repeated = false;    ///< the first attempt may have been carried out as well
    std::uint64_t over = 0;   ///< the number of the connection that brought them
    acknowledged replicas{};  ///< if the request asked for them: see node
  };

  /// Sends all messages, and waits for their replies.
  result<answer> ask(std::span<const message> all, boot_time deadline);

  /// Learns the server's time from an answer that just arrived over that connection: another
  /// connection may lead to another server. saw_after learns the time after which a name's commands
  /// have to be carried out.
  void saw_time(std::int64_t now_at, std::uint64_t over) noexcept;
  void saw_after(std::int64_t after) noexcept;

  using listener = std::function<void(result<answer>)>;

  /// Sends one command for whose reply no thread waits. It precedes all later requests, and the
  /// next thread that reads also reads its answer. `then` is called once, with no mutex held.
  /// Returns false, and leaves `then` alone, if there is no connection now or too many commands are
  /// unanswered.
  bool post(const message& command, listener& then);

  /// The same, for a caller that reads the answers by itself. Returns false if another thread reads
  /// or writes here now, or if so many commands are unanswered that the caller might have to wait.
  bool post_now(const message& command, listener& then);
  /// The connection, while no thread reads; null without one. The pointer keeps it alive.
  std::shared_ptr<const connection> to_read();
  /// Reads the answers to posted commands that have arrived, without waiting.
  void collect();

  /// Returns when every command posted so far has been answered or has failed.
  void settle();

  /// Makes the first connection, and checks the server.
  status open();

  /// After READONLY and the like, which came over that connection: the next command uses a new
  /// one. Does nothing if there is a new one already.
  void renew_connection(failure why, std::uint64_t over);

 private:
  /// A thread that waits for replies; or, with `then`, a posted command, which belongs to posted_,
  /// and to to_tell_ when it is finished. Guarded by mutex_ while it is in in_flight_.
  struct ticket {
    std::vector<resp_value> replies;
    std::size_t wanted = 0;
    boot_time deadline{};
    std::int64_t carried_out_until = 0;  ///< by the server's clock; 0 if not stamped
    std::uint64_t over_connection = 0;
    bool over = false;
    std::optional<failure> wrong;
    wake_flag wake;
    listener then{};
    std::list<ticket>::iterator place{};  ///< in posted_
    ticket* next_woken = nullptr;
  };
  using lock = std::unique_lock<std::mutex>;
  enum : std::uint32_t { settled = 1, lead_on = 2 };
  enum class reading { glance, asleep, awake };

  result<answer> ask_once(std::span<const message> all, boot_time deadline);
  void put_out(const message& m, ticket& t);
  /// Puts out all of it, or, if it throws, nothing.
  void put_in_flight(std::span<const message> all, ticket& t);
  status ensure_connected(lock& l, boot_time deadline);
  void connect_now(lock& l);
  void flush(lock& l) noexcept;
  void wait_for(lock& l, ticket& mine) noexcept;
  void lead(lock& l, ticket& mine) noexcept;
  void pass_lead_on() noexcept;
  bool read_some(connection& c, reading how, std::vector<resp_value>& replies,
                 failure& problem) noexcept;
  bool read_now(connection& c, reading how, std::vector<resp_value>& replies, failure& problem);
  void hand_out(std::vector<resp_value>& replies, ticket*& finished) noexcept;
  void break_off(const failure& why) noexcept;
  template <class Why>
  void break_off_as(Why why) noexcept;
  void pause_before_next(failure why) noexcept;
  bool is_overdue() const noexcept;
  void fail_overdue() noexcept;
  static void wake_all(ticket*& finished, const ticket* but) noexcept;
  ticket* next_to_lead() const noexcept;
  void put(lock& l, const message& command, listener& then);
  void lay_by(ticket& posted) noexcept;
  void tell_posted() noexcept;

  const redis_options& options_;
  std::mutex mutex_;
  std::condition_variable connected_;
  std::shared_ptr<connection> connection_;
  std::uint64_t connections_ = 0;  ///< made so far, including this one
  bool connecting_ = false;
  bool flushing_ = false;
  bool leading_ = false;
  std::string out_;
  std::deque<ticket*> in_flight_;
  std::list<ticket> posted_;   ///< the posted ones in in_flight_
  std::list<ticket> to_tell_;  ///< posted and finished
  std::atomic<bool> something_to_tell_{false};
  /// How far, at least, the clock of this connection's server is ahead of ours, in microseconds.
  std::optional<std::int64_t> ahead_;
  std::atomic<std::int64_t> after_{0};   ///< the latest such time that other commands reported
  std::int64_t on_their_way_until_ = 0;  ///< of commands on connections that broke; under mutex_
  awake awake_;                          ///< used by the thread that reads
  // After an attempt that failed, or a connection that was of no use.
  bool useful_ = false;  ///< this connection has answered something
  std::optional<failure> last_problem_;
  base::reconnect_pause pause_;
};

}  // namespace holdfast::store::redis
