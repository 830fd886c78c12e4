#include "simulation/dialled.hpp"

#include <algorithm>
#include <utility>

namespace simulation {

// ---- the client's end

dialled::dialled(dialled_server& to, server& of, std::shared_ptr<connection> way)
    : to_(to),
      of_(of),
      way_(std::move(way)),
      greeting_(std::make_shared<exchange>()),
      as_connected_(way_->number),
      used_at_(of.world_.now()) {
  way_->on_fail = [this] { wake(); };
  greeting_->tells = [this] { wake(); };
}

dialled::~dialled() {
  for (const auto& e : way_->open) {
    e->over = true;
    e->tells = nullptr;
  }
  greeting_->over = true;
  greeting_->tells = nullptr;
  way_->on_fail = nullptr;
  way_->on_gap = nullptr;
  way_->closed = true;
  auto& machine = *to_.machines_.at(way_->of);
  machine.disturbed_at = std::max(machine.disturbed_at, way_->disturbed_at);
  // Requests that were sent before arrive before.
  const nanos when = std::max(
      {of_.world_.now() + of_.way(), way_->last_arrival + 1, way_->away_until, machine.away_until});
  of_.world_.at(when, [&to = to_, n = number_] { to.leave(n); });
  of_.connections_.erase(way_->peer);
}

bool dialled::traced() const noexcept { return of_.trace_.on(); }

void dialled::wait_here(fiber& who) { readers_.push_back(&who); }
void dialled::leave_here(const fiber& who) noexcept { std::erase(readers_, &who); }

void dialled::wake() {
  for (fiber* const who : readers_) of_.world_.wake(*who);
}

void dialled::begin(const std::shared_ptr<exchange>& e) {
  if (broken()) return;
  to_.found_broken_.erase(world::self());
  used_at_ = now();
  e->tells = [this] {
    used_at_ = now();
    wake();
  };
  way_->open.push_back(e);
  if (fiber* const me = world::self()) ++me->commands;
  of_.send(way_, e);
}

// A request that finds its connection broken takes another connection at once.
void dialled::found_broken() {
  auto& last = to_.found_broken_[world::self()];
  const bool at_once = last.number != 0 && now() <= last.at + millisecond;
  if (at_once && last.number != number_ && to_.has_a_pool() &&
      to_.long_before(used_at_, last.at, user())) {
    to_.violated("no idle connection is used after one was found broken",
                 "P" + std::to_string(user().number) + " used connection " +
                     std::to_string(number_) + " after " + std::to_string(last.number));
  }
  last = {now(), number_};
}

bool dialled::wait_for(const exchange& e, nanos until) {
  world& w = of_.world_;
  while (!e.over && !broken() && w.now() < until) {
    wait_here(*world::self());
    (void)w.block(until, this);
    leave_here(*world::self());
  }
  return e.over && !e.failed;
}

// ---- the server

void dialled_server::know(process& of) {
  auto& machine = machines_[&of];
  if (!machine) machine = of_.connect_to(of);
}

bool dialled_server::long_before(nanos used, nanos when, const process& by) const noexcept {
  const nanos latest = when - 2 * second;
  return used < latest && by.steady_since < latest && by.paused_until < latest;
}

void dialled_server::violated(const char* rule, std::string what) const {
  if (of_.on_violation) of_.on_violation(rule, std::move(what));
}

void dialled_server::pause() { of_.world_.sleep(100 * millisecond); }

std::shared_ptr<connection> dialled_server::new_way(process& of) {
  auto way = of_.connect_to(of);
  way->away_until = machines_.at(&of)->away_until;
  return way;
}

void dialled_server::connect(const std::shared_ptr<dialled>& c) {
  c->number_ = ++connections_made_;
  found_broken_.erase(world::self());
  auto& e = *c->greeting_;
  e.label = "connects";
  world& w = of_.world_;
  if (w.now() < c->way_->away_until) {
    w.at(w.now() + w.random().between(50 * microsecond, millisecond), [c] {
      c->greeting_->failed = holdfast::failure{holdfast::errc::unavailable, "refused"};
      c->greeting_->over = true;
      c->wake();
    });
    return;
  }
  e.carry_out = [this, weak = std::weak_ptr(c)] {
    if (const auto here = weak.lock()) greet(here);
  };
  c->way_->open.push_back(c->greeting_);
  of_.send(c->way_, c->greeting_);
}

}  // namespace simulation
