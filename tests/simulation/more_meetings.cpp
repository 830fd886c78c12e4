#include <algorithm>

#include "simulation/arranging.hpp"

namespace simulation {

namespace {

// Nothing goes wrong but the events that the arrangement adds, and no thread is late.
void begin_anew(plan& p, nanos lease) {
  make_punctual(p);
  p.network = {};
  p.machine.preempt_permille = 0;
  for (auto& one : p.processes) make_plain(one, lease);
}

template <class F>
void add_thread(process_plan& one, std::uint64_t steps, F make) {
  thread_plan work;
  for (; steps > 0; --steps) work.steps.push_back(make());
  one.threads.push_back(std::move(work));
}

name_plan bucket_of(std::uint64_t tokens) {
  return {.kind = lock_kind::limiter,
          .capacity = 1,
          .burst = static_cast<std::uint32_t>(tokens),
          .per = 1000 * second};
}

// Hardly any token comes back: each token that passes beyond the bucket's size was given out twice.
void take_ahead(random_source& r, plan& p) {
  begin_anew(p, second);
  p.names = {bucket_of(4 + r.below(16))};
  p.names.front().local = 3;
  for (auto& one : p.processes) {
    for (auto threads = 1 + r.below(2); threads > 0; --threads) {
      add_thread(one, 6 + r.below(8), [&] {
        return step{.think = r.between(0, 20 * millisecond),
                    .weight = static_cast<std::uint32_t>(1 + r.below(3)),
                    .wait = 0,
                    .deed = 3};
      });
    }
  }
}

// A refund whose answer was lost: another caller takes the tokens before the refund is repeated.
void refund_twice(random_source& r, plan& p) {
  begin_anew(p, second);
  const auto burst = 2 + r.below(3);
  p.names = {bucket_of(burst)};
  p.network.lose_reply = static_cast<unsigned>(100 + r.below(300));
  p.command_timeout = r.between(100 * millisecond, 300 * millisecond);
  p.processes.resize(2, p.processes.front());
  const auto take = [&](unsigned deed) {
    return step{.think = r.between(0, 200 * millisecond),
                .weight = static_cast<std::uint32_t>(burst),
                .wait = 0,
                .hold = microsecond,
                .deed = deed};
  };
  add_thread(p.processes.front(), 3 + r.below(3), [&] { return take(0); });
  add_thread(p.processes.back(), 10 + r.below(10), [&] { return take(3); });
}

// Two rules whose tokens come at different times, and reservations that are given up.
void give_up_what_comes_later(random_source& r, plan& p) {
  begin_anew(p, second);
  p.names = {{.kind = lock_kind::limiter,
              .capacity = static_cast<std::uint32_t>(2 + r.below(4)),
              .burst = static_cast<std::uint32_t>(3 + r.below(4)),
              .per = r.between(200 * millisecond, 2 * second),
              .keys = 3}};
  p.processes.resize(1 + r.below(2), p.processes.front());
  for (auto& one : p.processes) {
    const auto make = [&] {
      step s{.think = r.one_in(3) ? r.between(0, second) : r.between(0, 30 * millisecond),
             .weight = static_cast<std::uint32_t>(1 + r.below(3)),
             .wait = r.between(second, 20 * second),
             .hold = r.between(0, 100) * microsecond,
             .deed = r.one_in(3) ? 3U : 4U};
      if (r.one_in(2)) s.back = step::end::destroy;
      return s;
    };
    for (auto threads = 1 + r.below(3); threads > 0; --threads)
      add_thread(one, 8 + r.below(12), make);
  }
}

// Hardly any token comes back: reservations behind or before others are given up, and exactly their
// tokens must be free again.
void give_up_before_others(random_source& r, plan& p) {
  begin_anew(p, second);
  p.names = {bucket_of(4 + r.below(16))};
  p.network.slowest_late = 0;
  p.processes.resize(1 + r.below(3), p.processes.front());
  const nanos moment = r.between(millisecond, 100 * millisecond);
  for (auto& one : p.processes) {
    for (auto threads = 1 + r.below(3); threads > 0; --threads) {
      add_thread(one, 3 + r.below(8), [&] {
        step s{.think = r.between(0, moment),
               .weight = static_cast<std::uint32_t>(1 + r.below(4)),
               .wait = 30 * 24 * 3600 * second,
               .hold = r.between(0, 2 * moment),
               .deed = 4};
        if (r.one_in(2)) s.how = step::style::callback;
        if (r.one_in(2)) s.back = step::end::destroy;
        return s;
      });
    }
  }
}

// The other participants come long after the lease of one that dropped out would be over.
void come_long_after_a_participant_dropped(random_source& r, plan& p) {
  const nanos lease = r.between(300 * millisecond, second);
  begin_anew(p, lease);
  p.processes.resize(2 + r.below(2), p.processes.front());
  p.names = {{.kind = lock_kind::barrier,
              .capacity = static_cast<std::uint32_t>(p.processes.size()),
              .at_once = r.one_in(2)}};
  for (std::size_t i = 0; i < p.processes.size(); ++i) {
    auto& one = p.processes[i];
    one.how = process_plan::meets::by_calls;
    const bool drops = i == 0;
    add_thread(one, drops ? 1 : 2, [&] {
      return step{.think = drops ? r.between(0, lease) : r.between(2 * lease, 5 * lease),
                  .how = r.one_in(2) ? step::style::callback : step::style::lease,
                  .wait = 20 * second,
                  .deed = drops ? 7U : 0U};
    });
  }
}

// A process is suspended for so long, with an arrival on its way, that the store forgets it.
void sleep_on_an_arrival(random_source& r, plan& p) {
  begin_anew(p, second);
  p.names = {{lock_kind::latch, static_cast<std::uint32_t>(40 + r.below(40))}};
  p.network.lose_reply = static_cast<unsigned>(100 + r.below(300));
  p.command_timeout = r.between(100 * millisecond, 500 * millisecond);
  p.processes.resize(2, p.processes.front());
  const nanos moment = r.between(2 * millisecond, 50 * millisecond);
  for (auto& one : p.processes) {
    for (auto threads = 1 + r.below(3); threads > 0; --threads) {
      add_thread(one, 2 + r.below(4),
                 [&] { return step{.think = r.between(0, moment), .weight = 1, .deed = 0}; });
    }
  }
  p.faults = {{.what = fault_plan::kind::pause,
               .at = r.between(0, 2 * moment),
               .length = r.between(70 * second, 200 * second)}};
}

// Holders of some of many permits ask how many are left.
void ask_how_many_are_left(random_source& r, plan& p) {
  begin_anew(p, second);
  p.names = {{lock_kind::semaphore, static_cast<std::uint32_t>(3 + r.below(5))}};
  for (auto& one : p.processes) {
    for (auto threads = 1 + r.below(2); threads > 0; --threads) {
      add_thread(one, 3 + r.below(4), [&] {
        return step{.think = r.between(0, 50 * millisecond),
                    .weight = static_cast<std::uint32_t>(1 + r.below(p.names.front().capacity)),
                    .hold = r.between(0, 50 * millisecond),
                    .looks = true};
      });
    }
  }
}

// A lease is shortened, and the answer takes longer than the rest of the lease; others wait.
void shorten_without_an_answer(random_source& r, plan& p) {
  begin_anew(p, r.between(second, 3 * second));
  const nanos lease = p.longest_lease();
  p.names = {{r.one_in(2) ? lock_kind::mutex : lock_kind::fair}};
  p.network.slow_reply = static_cast<unsigned>(50 + r.below(250));
  p.network.slowest_late = r.between(lease / 2, lease);
  p.command_timeout = 3 * lease;
  p.processes.resize(2, p.processes.front());
  for (auto& one : p.processes) {
    one.renew = r.one_in(4);
    add_thread(one, 3 + r.below(3), [&] {
      step s{.think = r.between(0, lease / 8), .hold = r.between(0, lease / 2)};
      if (!r.one_in(3)) s.what = step::inside::shorten;
      return s;
    });
  }
}

}  // namespace

bool arrange_more_meetings(random_source& r, plan& p) {
  switch (p.about) {
    case theme::rates:
      if (p.seed >= reserving_seeds && r.one_in(2)) return give_up_before_others(r, p), true;
      switch (r.below(3)) {
        case 0:
          return take_ahead(r, p), true;
        case 1:
          return refund_twice(r, p), true;
        default:
          return give_up_what_comes_later(r, p), true;
      }
    case theme::barriers:
      return come_long_after_a_participant_dropped(r, p), true;
    case theme::meetings:
      if (p.store == store_kind::contenders || r.one_in(2)) return false;
      return sleep_on_an_arrival(r, p), true;
    case theme::locks:
      if (r.one_in(2)) return ask_how_many_are_left(r, p), true;
      return shorten_without_an_answer(r, p), true;
    default:
      return false;
  }
}

}  // namespace simulation
