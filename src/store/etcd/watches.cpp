#include "store/etcd/watches.hpp"

#include <etcd/etcd.pb.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "store/etcd/members.hpp"

namespace holdfast::store::etcd {

struct watches::hub {
  explicit hub(channel& c) : to(c) {}

  channel& to;
  std::mutex mutex;
  std::condition_variable changed;
  struct watched {
    alarm call;
    const stream* on = nullptr;
    bool begun = false;
  };
  std::map<std::int64_t, watched> alarms;
  std::int64_t last_id = 0;
  std::shared_ptr<stream> now;  ///< null: no stream is open
  int open = 0;                 ///< streams that gRPC still uses
  std::string refused_token;    ///< to be replaced before the next stream opens
  bool closing = false;

  /// Removes the alarm and calls it, unless that was done before.
  void call(std::int64_t id);
  void call_all();
  /// Calls the alarms of the watches on that stream.
  void call_all_of(const stream* ended);
  /// Gives up a stream to that member, unless something has arrived over it since then.
  void leave(std::size_t member, boot_time since) noexcept;
};

/// One stream, from its opening to its end. Keeps itself alive until gRPC no longer uses it.
class watches::stream final : public grpc::ClientBidiReactor<message, message>,
                              public std::enable_shared_from_this<stream> {
 public:
  explicit stream(std::shared_ptr<hub> of) : of_(std::move(of)) {}

  // The hold allows requests from other threads than gRPC's, until the stream breaks.
  void open(const std::string& token) {
    self_ = shared_from_this();
    auto& members = of_->to.inner();
    member_ = members.now_with();
    token_ = token;
    if (!token.empty()) context_.AddMetadata("token", token);
    context_.AddMetadata("hasleader", "true");  // ends the stream when the member loses its leader
    members.stub(member_).PrepareBidiStreamingCall(&context_, method::watch, {}, this);
    AddHold();
    StartRead(&heard_);
    StartCall();
  }

  // With the hub's mutex locked.
  void say(wire::WatchRequest what) {
    if (broken_) return;
    outbox_.push_back(std::move(what));
    if (outbox_.size() == 1) StartWrite(&outbox_.front());
  }
  void enough(std::int64_t id) noexcept try {
    wire::WatchRequest request;
    request.mutable_cancel_request()->set_watch_id(id);
    say(std::move(request));
  } catch (...) {
    return;  // no memory: cancelled when the watch reports its next event
  }
  void cancel() { context_.TryCancel(); }
  const std::string& token() const noexcept { return token_; }
  /// With the hub's mutex locked. The server checks the stream's token at each watch: only another
  /// stream has another token.
  void end_with_its_token() {
    if (broken_ || token_.empty()) return;
    refused_ = true;
    give_up();
  }
  /// With the hub's mutex locked. The alarms of its watches are called when gRPC no longer uses the
  /// stream.
  void give_up() {
    if (broken_) return;
    broken_ = true;
    if (of_->now.get() == this) of_->now.reset();
    cancel();
  }
  std::size_t member() const noexcept { return member_; }
  /// With the hub's mutex locked.
  bool has_heard_since(boot_time when) const noexcept { return heard_at_ >= when; }

 private:
  void OnWriteDone(bool ok) override {
    const std::lock_guard guard{of_->mutex};
    if (!ok) return;
    outbox_.pop_front();
    if (!outbox_.empty() && !broken_) StartWrite(&outbox_.front());
  }

  void OnReadDone(bool ok) override {
    {
      const std::lock_guard guard{of_->mutex};
      heard_at_ = of_->to.options().clock->now();
      broken_ = broken_ || !ok;
      if (broken_ && of_->now.get() == this) of_->now.reset();
    }
    if (!ok) {
      RemoveHold();
      return;
    }
    if (heard_.created() && heard_.canceled()) {
      const std::lock_guard guard{of_->mutex};
      of_->refused_token = token_;
      end_with_its_token();
    }
    if (heard_.created()) begun(heard_.watch_id());
    // A watch that the server cancels was refused, or its revision was compacted away.
    const bool over = heard_.canceled() || heard_.compact_revision() != 0;
    if (over || heard_.events_size() > 0) of_->call(heard_.watch_id());
    // One event is enough; and the alarm may have been called for another reason before the watch
    // began.
    if (!over && (heard_.created() || heard_.events_size() > 0)) {
      const std::lock_guard guard{of_->mutex};
      if (!of_->alarms.contains(heard_.watch_id())) enough(heard_.watch_id());
    }
    heard_.Clear();
    StartRead(&heard_);
  }

  void begun(std::int64_t id) {
    const std::lock_guard guard{of_->mutex};
    if (const auto at = of_->alarms.find(id); at != of_->alarms.end()) at->second.begun = true;
    of_->changed.notify_all();
  }

  void OnDone(const grpc::Status&) override {
    if (!refused_) of_->to.inner().go_on_from(member_);
    of_->call_all_of(this);
    const auto of = of_;
    const auto last = std::move(self_);
    const std::lock_guard guard{of->mutex};
    --of->open;
    of->changed.notify_all();
  }

  const std::shared_ptr<hub> of_;
  std::shared_ptr<stream> self_;
  std::size_t member_ = 0;
  grpc::ClientContext context_;
  wire::WatchResponse heard_;
  std::deque<wire::WatchRequest> outbox_;
  boot_time heard_at_{};
  bool broken_ = false;
  std::string token_;
  bool refused_ = false;
};

void watches::hub::call(std::int64_t id) {
  std::unique_lock lock{mutex};
  const auto at = alarms.extract(id);
  lock.unlock();
  changed.notify_all();
  if (at) at.mapped().call();
}

void watches::hub::call_all() {
  std::unique_lock lock{mutex};
  const auto all = std::exchange(alarms, {});
  if (now) {
    for (const auto& [id, w] : all) now->enough(id);
  }
  changed.notify_all();
  lock.unlock();
  for (const auto& [id, w] : all) w.call();
}

void watches::hub::call_all_of(const stream* ended) {
  std::vector<alarm> calls;
  std::unique_lock lock{mutex};
  for (auto at = alarms.begin(); at != alarms.end();) {
    const auto here = at++;
    if (here->second.on == ended) calls.push_back(std::move(alarms.extract(here).mapped().call));
  }
  changed.notify_all();
  lock.unlock();
  for (const auto& call : calls) call();
}

// A slow member is not a silent one: otherwise all waiters would ask it again at once.
void watches::hub::leave(std::size_t member, boot_time since) noexcept {
  const std::lock_guard guard{mutex};
  const auto open_now = now;  // give_up() resets it
  if (!open_now || open_now->member() != member) return;
  if (!open_now->has_heard_since(since)) open_now->give_up();
}

// gRPC itself checks a silent member after fifteen seconds: until then its watches would report
// nothing, and each new watch would wait for it in vain.
watches::watches(channel& to) : hub_(std::make_shared<hub>(to)) {
  to.inner().on_silence([to_tell = std::weak_ptr<hub>(hub_)](std::size_t member, boot_time since) {
    if (const auto h = to_tell.lock()) h->leave(member, since);
  });
}

watches::~watches() {
  std::unique_lock lock{hub_->mutex};
  hub_->closing = true;
  hub_->alarms.clear();
  if (hub_->now) hub_->now->cancel();
  hub_->changed.wait(lock, [&] { return hub_->open == 0; });
}

std::int64_t watches::add(const std::string& key, const std::string& end, alarm call) {
  auto& on = *hub_->to.options().clock;
  const boot_time until = saturated_add(on.now(), hub_->to.options().command_timeout);
  std::unique_lock lock{hub_->mutex};
  const auto refused = std::exchange(hub_->refused_token, {});
  lock.unlock();
  if (!refused.empty()) hub_->to.inner().forget_token(refused);
  const auto token = hub_->to.inner().token(until);
  lock.lock();
  if (hub_->closing) return 0;
  // Some versions of etcd do not report an unknown token on a stream, and watch nothing. A read or
  // a write reports it.
  if (hub_->now && token && hub_->now->token() != *token) hub_->now->end_with_its_token();
  const auto id = ++hub_->last_id;
  if (!hub_->now) {
    hub_->now = std::make_shared<stream>(hub_);
    ++hub_->open;
    hub_->now->open(token ? *token : std::string());
  }
  wire::WatchRequest request;
  auto& create = *request.mutable_create_request();
  create.set_key(key);
  create.set_range_end(end);
  create.set_watch_id(id);
  hub_->alarms.emplace(id, hub::watched{std::move(call), hub_->now.get()});
  hub_->now->say(std::move(request));
  const auto member = hub_->now->member();
  const boot_time said = on.now();
  const auto waits = [&] {
    const auto at = hub_->alarms.find(id);
    return at != hub_->alarms.end() && !at->second.begun;
  };
  while (waits() && on.now() < until) on.wait_until(lock, hub_->changed, until);
  const bool silent = waits();
  lock.unlock();
  if (silent) {
    hub_->call(id);
    hub_->to.inner().leave_silent(member, said, until);
  }
  return id;
}

void watches::forget(std::int64_t id) {
  const std::lock_guard guard{hub_->mutex};
  if (hub_->alarms.erase(id) > 0 && hub_->now) hub_->now->enough(id);
}

void watches::call_all() { hub_->call_all(); }

}  // namespace holdfast::store::etcd
