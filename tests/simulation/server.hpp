#pragma once

#include <deque>
#include <holdfast/clock.hpp>
#include <holdfast/store/state_store.hpp>
#include <holdfast/store/store.hpp>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "simulation/back_end.hpp"
#include "simulation/phases.hpp"
#include "simulation/trace.hpp"
#include "simulation/world.hpp"

/// One store server, which carries out commands with the real family and kernels, and the network
/// between it and its clients.
namespace simulation {

/// How a network treats messages. Each value is per mille, for each message.
struct network_traits {
  nanos fastest = 30 * microsecond;
  nanos slowest = 300 * microsecond;
  unsigned lose_request = 0;
  unsigned lose_reply = 0;
  unsigned slow_request = 0;  ///< up to `slowest_late`
  unsigned slow_reply = 0;
  unsigned slow_notification = 0;
  unsigned break_listener = 0;  ///< rows: before a notification arrives over it
  unsigned fail_done = 0;       ///< sessions: a successful try is answered as cancelled
  unsigned fail_changed = 0;    ///< the same for a change of the mode
  /// Requests that the server answers with an error, while their connection stays: it has not
  /// carried them out; or it says that it does not know whether it has.
  unsigned refuse = 0;
  unsigned leave_open = 0;
  nanos slowest_late = 3 * second;
  nanos until = INT64_MAX;  ///< when it becomes well: then it loses and delays nothing any more
  /// A message that was on its way when a connection broke arrives nevertheless.
  bool delivers_late = true;
  /// Each request takes its own way, as to members of a cluster.
  bool unordered = false;
  /// Scripts: each request says until when the server may carry it out, as those of the library's
  /// driver do, and the server refuses it later.
  bool refuses_late = false;

  bool answers_all() const noexcept { return refuse == 0 && leave_open == 0; }
};

struct server_traits {
  bool notifications = true;
  bool sees_death = false;
  /// `records`: records under the state family. `lines`: sessions, queues and watches, as ZooKeeper
  /// and etcd have them. `slots`: slots, as in memcached or another program's layout. `scripts`:
  /// the library's Redis scripts. `postgres_rows`, `mariadb_rows`: rows, under the library's own
  /// drivers. `items`: memcached under its own driver. `advisory`: PostgreSQL's session locks.
  /// `redisson`: the layout that dialect=redisson shares with other programs, by its own scripts.
  enum class what {
    records,
    lines,
    slots,
    scripts,
    postgres_rows,
    mariadb_rows,
    items,
    advisory,
    redisson
  };
  what keeps = what::records;
  nanos outlasts = 0;  ///< slots: an expired slot disappears up to this much later
  nanos session_timeout = 3 * second;
  bool repeats = false;  ///< lines: an entry has its owner's name, so its driver repeats a request
  bool wall_only_grows = false;
  int drift_per_mille = 0;  ///< the rate of its clock against the true time; the margin allows 10
  nanos ahead = 0;          ///< the lead of its clock over the true time
  nanos command_timeout = 2 * second;
};

/// A client's request and its answer, on their way.
struct exchange {
  std::string label;
  std::function<void()> carry_out;  ///< at the server
  std::uint64_t sequence = 0;
  bool over = false;        ///< the client has its answer, or has given up
  bool never_late = false;  ///< not carried out once it is over
  bool asks = true;         ///< requests a lock or the like: no renewal, no release
  bool takes_time = false;  ///< at the server, which replies when it is done
  bool lose_reply = false;
  bool lost = false;  ///< the request or its answer
  std::optional<holdfast::failure> failed;
  /// Scripts, by the server's clock: until when it may be carried out, and until when the server
  /// carries out no earlier ones any more; zero: no limit.
  std::int64_t until = 0, none_before = 0;
  nanos answer_by = never;           ///< its client waits no longer
  std::int64_t arrived_at = 0;       ///< by the server's clock
  std::optional<std::int64_t> late;  ///< refused: what the server said of the name's earlier ones
  fiber* waiting = nullptr;
  std::function<void()> tells;  ///< notifies the thread that waits at its connection
  std::function<void()> then;   ///< of a request whose answer nobody waits for
};

/// One session's two ways to the server: one for requests and one for notifications. Shared with
/// the messages on their way.
struct connection {
  process* of = nullptr;
  std::string peer;
  bool closed = false;
  std::uint64_t number = 0;  ///< of the present connection: older ones are broken
  std::uint64_t sent = 0;
  std::uint64_t carried_out = 0;  ///< the last request, or the one in progress
  std::uint64_t void_before = 0;  ///< requests up to this one have no effect any more
  nanos away_until = 0;           ///< a new connection cannot be made before
  nanos last_arrival = 0;         ///< keeps requests in order
  nanos last_reply = 0;           ///< keeps replies in order
  nanos last_notification = 0;
  nanos disturbed_at = -1;
  nanos late_at = -1;  ///< when a request was carried out whose client had given up
  /// What its client knows of the server's clock, and of requests that may still be on their way.
  std::optional<std::int64_t> server_ahead;
  std::int64_t on_their_way_until = 0, known_after = 0;
  std::uint64_t notification_number = 0;
  bool notification_up = true;
  std::uint64_t gaps = 0;
  std::deque<holdfast::store::notification> inbox;
  bool interrupted = false;
  fiber* reader = nullptr;
  std::vector<std::shared_ptr<exchange>> open;   ///< sent, and not over
  std::vector<std::shared_ptr<exchange>> later;  ///< over, and `then` has not been called yet
  std::map<std::string, int, std::less<>> watched;
  std::function<void()> on_gap;   ///< notifications may have been lost
  std::function<void()> on_fail;  ///< the connection is broken

  void wake_reader(world& w) const {
    if (reader != nullptr) w.wake(*reader);
  }
};

class server {
 public:
  server(world& w, trace& to, std::string name, const server_traits& is, const network_traits& net);
  ~server();

  /// A session of that process. The server must outlive it.
  std::unique_ptr<holdfast::store::session_store> connect(process& of);

  // ---- faults
  void stop(nanos until, bool forgets);
  void freeze(nanos until);
  /// A standby takes over, and until then the former primary goes on beside it.
  void divide(nanos until);
  /// It stops, and comes back with a backup.
  void restore(nanos until);
  void cut(const process& of, nanos until);
  void process_died(const process& of);
  /// Notifies that connection when another process has died, even if it has died already.
  void watch(const std::shared_ptr<connection>& by, std::string_view peer);
  /// Whether a session of that process would still be notified of a death.
  bool watches_others(const process& of) const noexcept;
  /// An operator takes the name away from its holders.
  void evict(std::string_view name);
  /// Until then the server has no room for more, or accepts no writes at all.
  void refuse_writes(nanos until, bool full);
  /// Until then the server lets nobody change the row of that name.
  void refuse_row(std::string name, nanos until);
  /// The server drops an entry, as a cache does.
  void lose_a_key(nanos until);
  void set_clock(nanos by);
  /// The same; its effects end at `until`.
  void step_clock(nanos by, nanos until);
  void end_of_faults() noexcept;

  holdfast::store::moment time() const noexcept;
  const std::string& name() const noexcept { return name_; }
  std::uint64_t commands() const noexcept { return commands_; }
  /// When data was lost last.
  nanos forgot_at() const noexcept { return forgot_at_; }
  /// When all data was lost last.
  nanos forgot_all_at() const noexcept { return forgot_all_at_; }
  /// The last moment at which something went wrong with this store or on the way to it, as far as
  /// this process can tell.
  nanos disturbed_at(const process& of) const noexcept;
  /// How many sessions of that process are open.
  std::ptrdiff_t sessions_of(const process& of) const noexcept;
  /// Whether a thread of that process waits for an answer that does not come.
  bool keeps_waiting(const process& of) const noexcept;
  /// When the server last carried out a request that no thread of that process waited for any more;
  /// a negative time if never.
  nanos late_at(const process& of) const noexcept;
  /// When a thread of that process last sent a request for the lock of that name, where records are
  /// kept; a negative time if never.
  nanos asked_at(int process, const std::string& name) const noexcept {
    const auto at = asked_.find({process, name});
    return at == asked_.end() ? -1 : at->second;
  }
  /// When the server last granted that owner something that may outlive its session; a negative
  /// time if never.
  nanos given_at(const holdfast::store::owner_id& to) const noexcept;
  /// The names in use, as the server sees them.
  std::vector<std::string> names();
  std::string describe(std::string_view name);
  /// What a latch of that name has left there, where that is known.
  std::optional<std::uint32_t> left_at_latch(std::string_view name) {
    return back_->left_at_latch(name);
  }
  std::map<std::string, std::int64_t> wait_at_latch(std::string_view name) {
    return back_->wait_at_latch(name);
  }
  /// How many wait for the latch, by process, as far as the server shows them.
  std::map<int, std::size_t> waiters_at_latch(std::string_view name);
  /// The data that the server keeps for ever.
  std::string for_ever() { return back_->for_ever(); }
  std::string ends_too_early() { return back_->ends_too_early(); }
  std::string left_of_queues() { return back_->left_of_queues(); }
  std::string idle_in_transaction(nanos longest) { return back_->idle_in_transaction(longest); }
  /// How many of each process are told when the name becomes free, where the store counts them.
  std::map<int, std::size_t> listeners(std::string_view name);
  /// The server has just come back, perhaps with older data. A waiter in it may be gone, and its
  /// queue entry stays for as long as another thread of its session waits.
  void has_old_places(std::string_view name);
  /// The number of holders and waiters, by process, without those of old entries.
  std::map<int, std::size_t> users(std::string_view name);
  /// The holders of the name of which the server says how long they last, each until then.
  std::map<holdfast::store::owner_id, nanos> held_until(std::string_view name);
  /// Whether that owner holds the name, as far as the server shows it.
  bool has(std::string_view name, const holdfast::store::owner_id& owner);
  /// Whether the name is held, or has just been granted.
  bool has_user(std::string_view name);
  /// Whether the first waiter of that name fits beside the holders, as far as the server shows it.
  bool lets_one_wait_for_what_is_free(std::string_view name) {
    return back_->lets_one_wait_for_what_is_free(name);
  }
  /// Whether that process holds the name by a grant that it got certainly after `since`, as far as
  /// the server shows it. Not if the server's clock was set.
  bool has_granted_since(std::string_view name, int process, nanos since);
  /// Until when, in true time, the process's hold of the name counts; nothing if it has none.
  std::optional<nanos> counts_until(std::string_view name, int process);
  /// Called when the server ends a connection that holds what was granted at that time;
  /// `was_silent` if the reason is the client's silence.
  std::function<void(std::int64_t granted_at, bool was_silent)> on_end_of_a_holder{};
  /// Called when a client uses its connections in a forbidden way.
  std::function<void(const char* rule, std::string what)> on_violation{};
  /// Called when the server notifies an owner of its grant.
  std::function<void(const holdfast::store::notification& n)> on_news{};
  /// `by` is shown the effect of each command on the barrier of that name. It must outlive the
  /// server.
  void is_looked_at(std::string name, phase_book& by) { looked_at_[std::move(name)] = &by; }

 private:
  friend class requester;
  friend class client;
  friend class consensus;
  friend class consensus_client;
  friend class slots;
  friend class redisson_server;
  friend class redisson_client;
  friend class slot_client;
  friend class dialled;
  friend class dialled_server;
  friend class sql_server;
  friend class memcached_server;
  class records;
  class state_back_end;
  class script_back_end;

  std::shared_ptr<connection> connect_to(process& of);
  void send(const std::shared_ptr<connection>& by, std::shared_ptr<exchange> what);
  /// Says in the request until when it may be carried out.
  void stamp(const connection& by, exchange& what) const;
  bool carry_out_in_time(const std::shared_ptr<connection>& by, exchange& what);
  /// Whether the server answers with an error; it may carry the request out all the same.
  bool answers_with_an_error(connection& by, exchange& what);
  void arrive(const std::shared_ptr<connection>& by, const std::shared_ptr<exchange>& what,
              bool lose_reply);
  void reply(const std::shared_ptr<connection>& by, const std::shared_ptr<exchange>& what);
  void answer(const std::shared_ptr<connection>& by, const std::shared_ptr<exchange>& what);
  void fail(connection& at, std::string why, nanos away_until);
  bool tell(const holdfast::store::notification& n);
  bool departed(std::string_view peer) const;
  int number_of(std::string_view peer) const;
  void all_meet(trouble t, nanos until);
  /// Why the server refuses such a write now.
  std::optional<holdfast::failure> refused(bool needs_room) const;
  holdfast::result<holdfast::store::permits_reply> carry_out(
      const holdfast::store::named_command& c);
  holdfast::store::permits_record barrier_of(std::string_view name);
  holdfast::store::permits_record record_of(std::string_view name) const;
  holdfast::store::countdown_record countdown_of(std::string_view name) const;
  std::vector<std::string> peers_in_latch(std::string_view name) const;
  std::optional<std::uint32_t> latch_of(std::string_view name) const;
  /// Of a record of locks.
  static bool first_one_fits(const holdfast::store::permits_record& r);
  void show(std::span<const holdfast::store::named_command> carried_out,
            std::span<const holdfast::result<holdfast::store::permits_reply>> replies);
  nanos lasts(std::int64_t expires_at) const noexcept {
    return (expires_at - time().now_at) * microsecond;
  }
  nanos way();
  /// Whether a trouble of the network happens now that happens to so many of a thousand messages.
  bool happens(unsigned permille) {
    return world_.now() < net_.until && world_.random().permille(permille);
  }
  void tell_departed(const std::shared_ptr<connection>& to, std::string_view peer);
  void disturbed(connection& at, nanos takes = 0) noexcept;
  /// Sends a notification: delivered late, or not at all while the way is cut.
  void post(const std::shared_ptr<connection>& to, std::function<void()> arrives);

  world& world_;
  trace& trace_;
  std::string name_;
  server_traits is_;
  network_traits net_;
  std::map<std::string, std::string, std::less<>> records_;
  std::map<std::string, std::shared_ptr<connection>, std::less<>> connections_;
  std::unique_ptr<holdfast::store::session_store> family_;
  std::unique_ptr<back_end> back_;
  std::map<std::string, phase_book*, std::less<>> looked_at_;
  std::map<holdfast::store::owner_id, nanos> given_;
  std::map<std::pair<int, std::string>, nanos> asked_;
  std::set<holdfast::store::owner_id> old_places_;
  std::uint64_t commands_ = 0;
  exchange* carried_out_ = nullptr;  ///< at this moment
  int sessions_ = 0;
  nanos down_until_ = 0;
  nanos frozen_until_ = 0;
  nanos full_until_ = 0;
  nanos read_only_until_ = 0;
  std::string refused_row_;
  nanos row_refused_until_ = 0;
  nanos clock_is_ahead_ = 0;
  nanos forgot_at_ = -1;
  nanos forgot_all_at_ = -1;
  nanos disturbed_at_ = -1;
};

/// For families that run at the client: the clock of the running process.
holdfast::clock& clock_of_processes();

/// The client's end of a connection: sends requests, waits and gives up. Used by its fibers.
class requester {
 public:
  requester(server& of, std::shared_ptr<connection> by) : of_(of), by_(std::move(by)) {}

 protected:
  ~requester() = default;

  template <class Reply, class F>
  holdfast::result<Reply> ask(std::string what_for, F carry_out, bool never_late = false,
                              bool asks = true) {
    auto reply = std::make_shared<std::optional<holdfast::result<Reply>>>();
    auto what = std::make_shared<exchange>();
    what->label = std::move(what_for);
    what->never_late = never_late;
    what->answer_by = std::exchange(answer_by_, never);
    what->asks = asks;
    what->carry_out = [reply, carry_out = std::move(carry_out)] { *reply = carry_out(); };
    begin(what);
    await(*what);
    call_back();
    if (what->failed) return *what->failed;
    return std::move(**reply);
  }
  void begin(const std::shared_ptr<exchange>& what);
  void await(exchange& what);
  void call_back();
  bool traced() const noexcept { return of_.trace_.on(); }

  server& of_;
  std::shared_ptr<connection> by_;
  nanos answer_by_ = never;  ///< of the next request
};

}  // namespace simulation
