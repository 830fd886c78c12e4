#pragma once

#include <zookeeper/zookeeper.h>

#include <condition_variable>
#include <functional>
#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "store/zookeeper/options.hpp"
#include "store/zookeeper/session_time.hpp"
#include "store/zookeeper/silent_peer.hpp"

namespace holdfast::store::zookeeper {

/// The server processed the request, whatever the result; the leader did, if the request was for
/// the leader.
bool leader_answered(int rc);

/// The server's answer to one request.
struct answer {
  int rc = ZOPERATIONTIMEOUT;
  std::string text;                ///< data, or the path of the new node
  std::vector<std::string> names;  ///< children
  struct Stat stat{};
};

/// Requests that are sent together. The client's threads store the answers without waiting; an
/// answer that arrives after wait() has given up is dropped.
class requests : public std::enable_shared_from_this<requests> {
 public:
  explicit requests(std::size_t count) : answers_(count), missing_(count) {}

  /// The context of the i-th completion, which owns it once the request was sent.
  struct token {
    std::shared_ptr<requests> of;
    std::size_t index;
  };
  std::unique_ptr<token> expect(std::size_t i);
  /// To be called with the result of sending.
  static void sent(std::unique_ptr<token> t, int rc) noexcept;
  /// Space for the results of a multi request, and for the path that it created.
  static constexpr std::size_t max_steps = 4;
  zoo_op_result_t* results() { return results_; }
  std::span<char> path_made() { return path_made_; }

  std::vector<answer> wait(clock& on, boot_time until);
  /// Sets the time when the requests are sent, and where each answer is noted; to be called before
  /// the first one is sent.
  void note_answers(std::shared_ptr<session_time> in, boot_time sent);

  // Called by the client's threads, which are C and know no exceptions.
  static void on_void(int rc, const void* data) noexcept;
  static void on_stat(int rc, const struct Stat* stat, const void* data) noexcept;
  static void on_data(int rc, const char* value, int size, const struct Stat* s,
                      const void* data) noexcept;
  static void on_names(int rc, const String_vector* names, const void* data) noexcept;
  static void on_text(int rc, const char* text, const void* data) noexcept;
  static void on_text_stat(int rc, const char* text, const struct Stat* stat,
                           const void* data) noexcept;
  static void on_made(int rc, const void* data) noexcept;

 private:
  void put(std::size_t i, answer a) noexcept;
  template <class Fill>
  static void answered(int rc, const struct Stat* stat, const void* data, Fill fill) noexcept;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<answer> answers_;
  zoo_op_result_t results_[max_steps] = {};
  char path_made_[2048] = {};
  std::size_t missing_;
  std::shared_ptr<session_time> time_;
  boot_time sent_{};
};

/// One session with the ensemble. The client has its own threads, which reconnect and keep the
/// session; callbacks on them must not wait. A thread of this class sends a request if no other
/// thread does.
class connection {
 public:
  using alarm = std::function<void()>;

  static result<std::shared_ptr<connection>> open(const zookeeper_options& o);
  ~connection();
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  /// The handle is null after the end of the session: the client is closed then, because its thread
  /// checks a thousand times a second whether it is to end. The handle does not change while this
  /// lock exists.
  std::shared_lock<std::shared_mutex> keep() const { return std::shared_lock(in_use_); }
  zhandle_t* handle() const noexcept { return handle_; }

  /// Blocks until the first connection is made.
  status wait_connected(boot_time until);
  /// The server has ended the session, or refused the user: the session will not work again.
  bool over() const;
  /// How long it has been without a server, since it was connected first.
  std::chrono::nanoseconds away_for() const;
  bool refused() const;
  /// What answered is no ZooKeeper, or one that only reads.
  std::optional<failure> foreign() const;

  /// Notes that these requests are sent now. Returns the argument for proved().
  boot_time asks(requests& all, boot_time now);
  /// The leader has answered a request that counts from that time.
  void proved(boot_time counts_from) noexcept { time_->proved(counts_from); }
  boot_time safe_until() const noexcept { return time_->safe_until(); }
  /// The session's number at the servers; 0 before it is connected.
  std::uint64_t session() const noexcept;
  std::chrono::nanoseconds safe_span() const noexcept { return time_->safe_span(); }
  std::string id() const;

  /// To be called when requests had no answer in command_timeout. If nothing at all has arrived
  /// from the member since, makes the client go on with another member: by itself it would only do
  /// so when the holds have been lost.
  void leave_if_silent() noexcept;

  /// Returns the context for a request that sets a watch. `call` is called once, when the node has
  /// changed or the session is over.
  void* watch(alarm call);
  void unwatch(void* context);
  static void on_watch(zhandle_t*, int type, int state, const char* path, void* context);

 private:
  explicit connection(const zookeeper_options& o)
      : options_(o),
        sockets_of_others_(sockets_of_others()),
        time_(std::make_shared<session_time>(*o.clock, o.session)) {}
  static void on_session(zhandle_t* handle, int type, int state, const char* path, void* context);
  static void on_auth(int rc, const void* data);
  void changed(int state, zhandle_t* to_close);
  bool is_over() const noexcept { return expired_ || refused_ || foreign_; }
  void call_all();
  void close();
  void speak();
  void speak_once(std::weak_ptr<requests>& unanswered);
  /// A second session, begun to see whether the servers refuse only this one.
  struct second {
    std::shared_ptr<connection> session{};
    std::optional<boot_time> accepted_at{};
  };
  void end_if_refused(second& other) noexcept;
  void give_up(std::chrono::nanoseconds session);
  bool is_ending() const;

  const zookeeper_options options_;
  const std::vector<ino_t> sockets_of_others_;
  const std::shared_ptr<session_time> time_;
  mutable std::shared_mutex in_use_;
  zhandle_t* handle_ = nullptr;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool connected_ = false;
  std::optional<boot_time> away_since_;
  bool expired_ = false;
  bool refused_ = false;
  bool foreign_ = false;
  std::uint64_t session_ = 0;
  peer_address member_;
  std::map<std::uintptr_t, alarm> alarms_;
  bool ending_ = false;
  bool closing_ = false;  ///< by the client's own thread
  std::thread speaks_;
};

/// The failure for a result code, with advice. `writes`: the request may have been carried out.
failure explain(int rc, const zookeeper_options& o, bool writes);

}  // namespace holdfast::store::zookeeper
