#include "store/etcd/watches.hpp"

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>

#include "store/etcd/etcd.pb.h"
#include "store/etcd/grpc.hpp"

namespace holdfast::store::etcd {

struct watches::hub {
  explicit hub(channel& c) : to(c) {}

  channel& to;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::int64_t, alarm> alarms;
  std::int64_t last_id = 0;
  std::shared_ptr<stream> now;  ///< null: none is open
  int open = 0;                 ///< streams that gRPC has not let go of
  bool closing = false;

  /// Takes it out, and calls it. False if it was called before.
  bool call(std::int64_t id);
  void call_all();
};

/// One stream, from its opening to its end. Keeps itself alive until gRPC is done with it.
class watches::stream final : public grpc::ClientBidiReactor<message, message>,
                              public std::enable_shared_from_this<stream> {
 public:
  explicit stream(std::shared_ptr<hub> of) : of_(std::move(of)) {}

  // The hold is for requests from other threads than gRPC's, until the stream breaks.
  void open(const std::string& token) {
    self_ = shared_from_this();
    auto& parts = of_->to.inner();
    member_ = parts.now_with();
    if (!token.empty()) context_.AddMetadata("token", token);
    context_.AddMetadata("hasleader", "true");  // ends when the member has lost its leader
    parts.stub(member_).PrepareBidiStreamingCall(&context_, method::watch, {}, this);
    AddHold();
    StartRead(&heard_);
    StartCall();
  }

  // Both with the hub's mutex locked.
  void say(wire::WatchRequest what) {
    if (broken_) return;
    outbox_.push_back(std::move(what));
    if (outbox_.size() == 1) StartWrite(&outbox_.front());
  }
  void cancel() { context_.TryCancel(); }

 private:
  void OnWriteDone(bool ok) override {
    const std::lock_guard guard{of_->mutex};
    if (!ok) return;
    outbox_.pop_front();
    if (!outbox_.empty() && !broken_) StartWrite(&outbox_.front());
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      {
        const std::lock_guard guard{of_->mutex};
        broken_ = true;
        if (of_->now.get() == this) of_->now.reset();
      }
      RemoveHold();
      return;
    }
    // One that is cancelled by the server was refused, or asks for what was compacted away.
    const bool over = heard_.canceled() || heard_.compact_revision() != 0;
    if ((over || heard_.events_size() > 0) && of_->call(heard_.watch_id()) && !over) {
      wire::WatchRequest enough;
      enough.mutable_cancel_request()->set_watch_id(heard_.watch_id());
      const std::lock_guard guard{of_->mutex};
      say(std::move(enough));
    }
    heard_.Clear();
    StartRead(&heard_);
  }

  void OnDone(const grpc::Status&) override {
    of_->to.inner().go_on_from(member_);
    of_->call_all();
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
  bool broken_ = false;
};

bool watches::hub::call(std::int64_t id) {
  std::unique_lock lock{mutex};
  const auto at = alarms.extract(id);
  lock.unlock();
  if (at) at.mapped()();
  return !at.empty();
}

void watches::hub::call_all() {
  std::unique_lock lock{mutex};
  const auto all = std::exchange(alarms, {});
  lock.unlock();
  for (const auto& [id, call] : all) call();
}

watches::watches(channel& to) : hub_(std::make_shared<hub>(to)) {}

watches::~watches() {
  std::unique_lock lock{hub_->mutex};
  hub_->closing = true;
  hub_->alarms.clear();
  if (hub_->now) hub_->now->cancel();
  hub_->changed.wait(lock, [&] { return hub_->open == 0; });
}

void watches::add(const std::string& key, const std::string& end, std::int64_t revision,
                  alarm call) {
  const auto& o = hub_->to.options();
  const auto token = hub_->to.inner().token(saturated_add(o.clock->now(), o.command_timeout));
  std::unique_lock lock{hub_->mutex};
  if (hub_->closing) return;
  if (!token) {
    lock.unlock();
    return call();
  }
  const auto id = ++hub_->last_id;
  hub_->alarms.emplace(id, std::move(call));
  if (!hub_->now) {
    hub_->now = std::make_shared<stream>(hub_);
    ++hub_->open;
    hub_->now->open(*token);
  }
  wire::WatchRequest request;
  auto& create = *request.mutable_create_request();
  create.set_key(key);
  create.set_range_end(end);
  create.set_start_revision(revision);
  create.set_watch_id(id);
  hub_->now->say(std::move(request));
}

void watches::call_all() { hub_->call_all(); }

}  // namespace holdfast::store::etcd
