#include "wait/readers.hpp"

#include "diagnose/trace.hpp"
#include "session/sleeper.hpp"
#include "wait/pending_acquire.hpp"

namespace holdfast::engine {

namespace {

acquire_params notify_when_wanted(acquire_params c) noexcept {
  c.notify_when_wanted = true;
  return c;
}

class pending_reader final : public pending_lease {
 public:
  pending_reader(async_request o, std::shared_ptr<reader_group> at, bool passes_writers)
      : pending_lease(std::move(o)),
        passes_writers_(passes_writers),
        visit_(std::move(at), *this) {}

 private:
  using way = reader_group::visit::way;

  next come_in() override {
    if (stop().stop_requested() && !visit_.is_in()) return end(stopped());
    switch (visit_.look(*config_, passes_writers_, session_.now() < time_.deadline())) {
      case way::joined:
        return won_in_local_queue(hold::joined(visit_.take_joined(), waited_.began));
      case way::waits:
        return retry_after(time_.deadline());
      case way::overloaded:
        return end(kept_out(local_queue::entry::overloaded, *config_, time_.is_try()));
      case way::asks:
        break;
    }
    waited_.past_local_queue = session_.now();
    return at_store();
  }

  // Lets the other readers join before any receiver runs, which may take long.
  void won(std::shared_ptr<session_impl> session) override {
    lease mine = begin_lease(std::move(session));
    visit_.share(hold::shared_behind(mine));
    tell(std::move(mine));
  }
  using pending_lease::won;

  void let_go() override {
    visit_.leave();
    pending_lease::let_go();
  }

  const bool passes_writers_;
  reader_group::visit visit_;
};

class pending_writer final : public pending_lease {
 public:
  pending_writer(async_request o, std::shared_ptr<reader_group> at)
      : pending_lease(std::move(o)), at_(std::move(at)) {}

 private:
  next come_in() override {
    if (!waits_) waits_.emplace(*at_);
    return pending_lease::come_in();
  }
  void won(std::shared_ptr<session_impl> session) override {
    waits_.reset();
    pending_lease::won(std::move(session));
  }
  using pending_lease::won;
  void let_go() override {
    waits_.reset();
    pending_lease::let_go();
  }

  const std::shared_ptr<reader_group> at_;
  std::optional<reader_group::writer> waits_;
};

}  // namespace

result<lease> read(const std::shared_ptr<session_impl>& session,
                   const std::shared_ptr<const lock_config>& s, const acquire_params& c,
                   const std::shared_ptr<reader_group>& at, bool passes_writers, wait_time wait,
                   std::stop_token stop) {
  using way = reader_group::visit::way;
  if (!reader_group::shares(*s)) return acquire(session, s, c, wait, std::move(stop));
  if (auto usable = session->usable(); !usable) return std::move(usable.error());
  const timed_call call(session->now(), wait);
  std::optional<trace> seen;
  if (s->traced) stop = seen.emplace(session, *s, c, wait, std::move(stop)).stop();
  if (stop.stop_requested()) return gave_up(*session, *s, call, trace::judged(asked_to_stop()));
  sleeper me(session->clock());
  const std::stop_callback on_stop{stop, [&] { me.wake(); }};
  reader_group::visit visit(at, me);
  while (true) {
    const bool may_wait = !stop.stop_requested() && session->now() < call.deadline();
    switch (visit.look(*s, passes_writers, may_wait)) {
      case way::joined: {
        lease mine = hold::joined(visit.take_joined(), call.began());
        if (seen) trace::got(mine);
        return mine;
      }
      case way::waits:
        me.sleep(call.deadline());
        continue;
      case way::overloaded:
        return gave_up(*session, *s, call,
                       kept_out(local_queue::entry::overloaded, *s, call.is_try()));
      case way::asks:
        break;
    }
    auto got = acquire(session, s, notify_when_wanted(c), call, stop);
    if (got) visit.share(hold::shared_behind(*got));
    return got;
  }
}

pending<lease> async_read(async_request o, std::shared_ptr<reader_group> at, bool passes_writers) {
  if (!reader_group::shares(*o.what)) return async_acquire(std::move(o));
  o.how = notify_when_wanted(o.how);
  return pending<lease>(
      std::make_shared<pending_reader>(std::move(o), std::move(at), passes_writers));
}

pending<lease> async_write(async_request o, std::shared_ptr<reader_group> at) {
  return pending<lease>(std::make_shared<pending_writer>(std::move(o), std::move(at)));
}

}  // namespace holdfast::engine
