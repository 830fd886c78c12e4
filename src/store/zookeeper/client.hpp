#pragma once

#include <zookeeper/zookeeper.h>

#include <condition_variable>
#include <functional>
#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "store/zookeeper/options.hpp"
#include "store/zookeeper/session_time.hpp"
#include "store/zookeeper/silent_peer.hpp"

namespace holdfast::store::zookeeper {

/// The server looked at it, whatever came of it: the leader, if it was a request for the leader.
bool leader_answered(int rc);

/// What the server answered to one request.
struct answer {
  int rc = ZOPERATIONTIMEOUT;
  std::string text;                ///< data, or the path that was made
  std::vector<std::string> names;  ///< children
  struct Stat stat{};
};

/// Requests that are on their way together. The client's threads put the answers in and go on at
/// once; an answer that comes after wait() gave up goes nowhere.
class requests : public std::enable_shared_from_this<requests> {
 public:
  explicit requests(std::size_t count) : answers_(count), missing_(count) {}

  /// What a completion has to be given, for the i-th: its own from when it was sent.
  struct token {
    std::shared_ptr<requests> of;
    std::size_t index;
  };
  std::unique_ptr<token> expect(std::size_t i);
  /// The result says whether it was.
  static void sent(std::unique_ptr<token> t, int rc) noexcept;
  /// Room for the results of a multi request, and for the path that it made.
  static constexpr std::size_t max_steps = 4;
  zoo_op_result_t* results() { return results_; }
  std::span<char> path_made() { return path_made_; }

  std::vector<answer> wait(clock& on, boot_time until);
  /// They are sent at that time, and each answer is noted there; before the first is sent.
  void note_answers(std::shared_ptr<session_time> in, boot_time sent);

  // Of the client's threads, which are C and know no exceptions.
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

/// One session with the ensemble. The client has threads of its own, which reconnect and keep the
/// session; what is called on them must not wait. A thread of ours asks something if nobody does.
class connection {
 public:
  using alarm = std::function<void()>;

  static result<std::shared_ptr<connection>> open(const zookeeper_options& o);
  ~connection();
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  /// Null from the end of the session on: then the client is closed, because its thread looks a
  /// thousand times a second whether it is to end. As long as the lock lives, it stays as it is.
  std::shared_lock<std::shared_mutex> keep() const { return std::shared_lock(in_use_); }
  zhandle_t* handle() const noexcept { return handle_; }

  /// Blocks until it is connected for the first time.
  status wait_connected(boot_time until);
  /// The server has ended the session, or refused the user: it will not work again.
  bool over() const;
  bool refused() const;

  /// These requests go out now. Returns what to tell proved().
  boot_time asks(requests& all, boot_time now);
  /// The leader has answered what counts from then.
  void proved(boot_time counts_from) noexcept { time_->proved(counts_from); }
  boot_time safe_until() const noexcept { return time_->safe_until(); }
  /// The number by which the servers know it; 0 before it is connected.
  std::uint64_t session() const noexcept;
  std::chrono::nanoseconds safe_span() const noexcept { return time_->safe_span(); }
  std::string id() const;

  /// Requests had no answer in command_timeout. If nothing at all has come from the member since,
  /// the client is made to go on with another one: by itself it would when the holds have been
  /// lost.
  void leave_if_silent() noexcept;

  /// For a request that sets a watch: what to give as its context. Called once, when the node has
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
  void call_all();
  void close();
  void speak();
  void speak_once(std::weak_ptr<requests>& unanswered);

  const zookeeper_options options_;
  const std::vector<ino_t> sockets_of_others_;
  const std::shared_ptr<session_time> time_;
  mutable std::shared_mutex in_use_;
  zhandle_t* handle_ = nullptr;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool connected_ = false;
  bool expired_ = false;
  bool refused_ = false;
  std::uint64_t session_ = 0;
  peer_address member_;
  std::map<std::uintptr_t, alarm> alarms_;
  bool ending_ = false;
  bool closing_ = false;  ///< by the client's own thread
  std::thread speaks_;
};

/// What a result code means, and what to do about it. `writes`: it may have been carried out.
failure explain(int rc, const zookeeper_options& o, bool writes);

}  // namespace holdfast::store::zookeeper
