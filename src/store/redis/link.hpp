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
#include "store/redis/futex.hpp"
#include "store/redis/handshake.hpp"

namespace holdfast::store::redis {

/// Commands, already encoded, that go together.
struct message {
  std::string_view bytes;
  std::size_t replies = 1;
  /// The last command is told one word more, behind its others: until when the server may carry it
  /// out, by its own clock. A command that something on the way has kept back must not take effect
  /// when nobody waits for it any more. Where earlier ones of this link may be on their way still,
  /// the word says so too: "until after", and whatever has to be carried out until `after` or
  /// earlier is too late from then on.
  /// It is a call of one of our scripts: nothing else is believed about the server's time.
  bool stamped = false;
  bool once = false;     ///< is not sent again if the connection broke under way
  bool closing = false;  ///< goes behind the others, also if only some of them are sent again
};

/// What the replicas said to what was written.
struct acknowledged {
  std::int64_t by = 0;      ///< so many have it
  std::int64_t wanted = 0;  ///< so many were to have it
  bool enough() const noexcept { return by >= wanted; }
};

/// The one connection over which all threads of a session talk to the server, and no thread of its
/// own.
///
/// Threads put their requests into one buffer. The first of them writes, also for those that came
/// meanwhile. One of the threads that wait for replies reads, for all; when it has its own, the
/// next one goes on. So a thread that is alone pays no thread switch, and many share each system
/// call.
///
/// A connection that breaks is made again by the next who needs it, after pauses that grow as long
/// as none is of any use: those who come in a short pause wait for its end, in a long one they
/// fail. What was under way then is asked once more, because every command may be repeated; what
/// cannot be answered in command_timeout fails with outcome_unknown. Thread-safe.
///
/// Without memory a question is not put out, or the connection breaks: no answer is ever another's.
class link {
 public:
  explicit link(const redis_options& options) : options_(options) {}
  ~link();
  link(const link&) = delete;

  struct answer {
    std::vector<resp_value> replies;
    bool repeated = false;    ///< the first attempt may have been carried out as well
    std::uint64_t over = 0;   ///< which of this link's connections, counted
    acknowledged replicas{};  ///< where they were asked: see node
  };

  /// Sends all, and waits for their replies.
  result<answer> ask(std::span<const message> all, boot_time deadline);

  /// The server's time, from an answer that has just come over that connection: another one may
  /// lead to another server. And what a name's commands have to be carried out after.
  void saw_time(std::int64_t now_at, std::uint64_t over) noexcept;
  void saw_after(std::int64_t after) noexcept;

  using listener = std::function<void(result<answer>)>;

  /// Sends one command for whose reply nobody waits: it comes in front of all that are asked later,
  /// and the next thread that reads reads its answer, too. `then` is called once, with no mutex
  /// held. False, and `then` is left alone, if there is no connection now or too much is
  /// unanswered.
  bool post(const message& command, listener& then);

  /// The same, for a caller that reads the answers by itself: no if another thread reads or writes
  /// here now, or if so much is unanswered that it might have to wait.
  bool post_now(const message& command, listener& then);
  /// Of the connection, while nobody reads; null without. It lasts as long as it is held.
  std::shared_ptr<const connection> to_read();
  /// Reads what is there of answers to what was posted, and does not wait.
  void collect();

  /// Returns when what was posted so far has been answered, or has failed.
  void settle();

  /// The first connection, with a look at the server.
  status open();

  /// After READONLY and the like: the next command goes over a new connection.
  void renew_connection(failure why);

 private:
  /// A thread that waits for replies; or, with `then`, what was posted, which belongs to posted_,
  /// and to to_tell_ when it is over. Guarded by mutex_ while it is in in_flight_.
  struct ticket {
    std::vector<resp_value> replies;
    std::size_t wanted = 0;
    boot_time deadline{};
    std::int64_t carried_out_until = 0;  ///< by the server's clock; 0 if it was not told
    std::uint64_t over_connection = 0;
    bool over = false;
    std::optional<failure> wrong;
    wake_flag wake;
    listener then{};
    std::list<ticket>::iterator place{};  ///< of what was posted
    ticket* next_woken = nullptr;
  };
  using lock = std::unique_lock<std::mutex>;
  enum : std::uint32_t { settled = 1, lead_on = 2 };
  enum class reading { glance, asleep, awake };

  result<answer> ask_once(std::span<const message> all, boot_time deadline);
  void put_out(const message& m, ticket& t);
  /// All of it, or, if it throws, nothing.
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
  io_result read_awake(transport& from, std::span<char> into);
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
  std::uint64_t connections_ = 0;  ///< made so far, this one included
  bool connecting_ = false;
  bool flushing_ = false;
  bool leading_ = false;
  std::string out_;
  std::deque<ticket*> in_flight_;
  std::list<ticket> posted_;   ///< of them
  std::list<ticket> to_tell_;  ///< posted, and over
  std::atomic<bool> something_to_tell_{false};
  /// The clock of this connection's server is that far ahead of ours, in microseconds, at least.
  std::optional<std::int64_t> ahead_;
  std::atomic<std::int64_t> after_{0};   ///< what others say has to be over
  std::int64_t on_their_way_until_ = 0;  ///< commands of connections that broke; under mutex_
  // Of the thread that reads.
  unsigned in_vain_ = 0;     ///< times in a row that it stayed awake for nothing
  unsigned not_before_ = 0;  ///< so many reads until it tries again
  // After a connection that could not be made, or was of no use.
  bool useful_ = false;  ///< this connection has answered something
  std::optional<failure> last_problem_;
  base::reconnect_pause pause_;
};

}  // namespace holdfast::store::redis
