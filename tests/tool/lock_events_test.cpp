#include "tool/lock_events.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace holdfast::tool::lock_events_test {

using namespace std::chrono_literals;

namespace {

constexpr std::chrono::system_clock::time_point noon{1'700'000'000s};

participant person(const std::string& id, std::optional<std::chrono::milliseconds> lease = 30s) {
  participant p;
  p.short_id = id;
  p.host = "web-3";
  p.pid = 812;
  p.reason = "deploy";
  p.since = noon - 42s;
  p.expires_in = lease;
  return p;
}

name_info lock(std::vector<participant> holders, std::vector<participant> waiters = {}) {
  name_info n;
  n.name = "l";
  n.capacity = 1;
  n.holders = std::move(holders);
  n.waiters = std::move(waiters);
  return n;
}

/// "released a, granted b"
std::string told(const std::vector<lock_event>& events) {
  std::string all;
  for (const auto& e : events)
    all += (all.empty() ? "" : ", ") + std::string(to_string(e.kind)) + ' ' + e.who.short_id;
  return all;
}

std::string between(const name_info& before, const name_info& now,
                    std::chrono::nanoseconds since_last = 200ms) {
  leases_seen leases;
  leases.note({person("a"), person("b")});
  leases.note(before.holders);
  return told(events_between(before, now, since_last, leases));
}

}  // namespace

TEST(lock_events, an_unchanged_state_is_no_event) {
  const auto same = lock({person("a")}, {person("b")});
  EXPECT_EQ(between(same, same), "");
}

TEST(lock_events, a_new_holder_is_granted_and_a_former_holder_has_released) {
  EXPECT_EQ(between(lock({}), lock({person("a")})), "granted a");
  EXPECT_EQ(between(lock({person("a")}), lock({})), "released a");
}

TEST(lock_events, a_holder_whose_end_is_not_known_has_not_run_out) {
  const auto endless = person("a", std::nullopt);
  EXPECT_EQ(between(lock({endless}), lock({})), "released a");
  EXPECT_EQ(between(lock({endless}), lock({person("b")})), "hand-over b");
}

TEST(lock_events, a_holder_that_died_is_lost_once_and_holds_nothing) {
  auto dead = person("a");
  dead.died = true;
  EXPECT_EQ(between(lock({person("a")}), lock({dead})), "lost a");
  EXPECT_EQ(between(lock({dead}), lock({dead})), "");
  EXPECT_EQ(between(lock({dead}), lock({person("b")})), "granted b");
  EXPECT_EQ(told(events_at_start(lock({dead}, {person("b")}))), "waiting b");
  const auto lost = events_between(lock({person("a")}), lock({dead}), 200ms, {}).front();
  EXPECT_TRUE(event_text(lost, noon).ends_with("held 42s, died\n")) << event_text(lost, noon);
}

TEST(lock_events, one_holder_after_another_is_a_hand_over_and_the_waiter_has_not_left) {
  const auto events =
      events_between(lock({person("a")}, {person("b")}), lock({person("b")}), 200ms, {});
  ASSERT_EQ(told(events), "hand-over b");
  EXPECT_EQ(events.front().before.short_id, "a");
}

TEST(lock_events, a_holder_whose_lease_had_ended_is_reported_as_lost) {
  EXPECT_EQ(between(lock({person("a", 200ms)}), lock({})), "lost a");
  EXPECT_EQ(between(lock({person("a", 200ms)}), lock({person("b")})), "lost a, granted b");
  EXPECT_EQ(between(lock({person("a", 201ms)}), lock({})), "released a");
}

TEST(lock_events, a_holder_that_renewed_and_went_unseen_is_not_called_lost) {
  EXPECT_EQ(between(lock({person("a", 22s)}), lock({}), 40s), "released a");
  EXPECT_EQ(between(lock({person("a", 22s)}), lock({person("b")}), 40s), "hand-over b");
  EXPECT_EQ(between(lock({person("a", 14s)}), lock({}), 40s), "lost a") << "it was late";
}

TEST(lock_events, waiters_join_and_leave) {
  EXPECT_EQ(between(lock({}), lock({}, {person("a"), person("b")})), "joined a, joined b");
  EXPECT_EQ(between(lock({}, {person("a"), person("b")}), lock({}, {person("b")})), "left a");
}

TEST(lock_events, several_holders_of_permits_come_and_go_separately) {
  EXPECT_EQ(between(lock({person("a"), person("b")}), lock({person("b"), person("c")})),
            "released a, granted c");
}

TEST(lock_events, the_first_query_reports_holders_and_waiters) {
  EXPECT_EQ(told(events_at_start(lock({person("a")}, {person("b")}))), "holding a, waiting b");
}

TEST(lock_events, a_line_has_the_time_the_event_and_the_participant) {
  participant p = person("a");
  p.fence = 7;
  EXPECT_EQ(event_text({lock_event_kind::granted, p}, noon),
            "2023-11-14T22:13:20.000Z granted   web-3 pid 812 (deploy), fence 7\n");
  EXPECT_EQ(event_text({lock_event_kind::handover, p, person("b")}, noon),
            "2023-11-14T22:13:20.000Z hand-over web-3 pid 812 (deploy), held 42s -> web-3 pid 812 "
            "(deploy), fence 7\n");
  EXPECT_EQ(event_text({lock_event_kind::left, p}, noon),
            "2023-11-14T22:13:20.000Z left      web-3 pid 812 (deploy), waited 42s\n");
}

TEST(lock_events, text_of_other_programs_is_never_printed_raw) {
  participant p = person("a");
  p.host = "h\x1b[2J";
  p.reason = "r\x1b]0;x\a";
  p.program = "p\n";
  for (int kind = 0; kind < 8; ++kind) {
    const auto text = event_text({static_cast<lock_event_kind>(kind), p, p}, noon);
    EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), text.size() - 1) << text;
  }
}

}  // namespace holdfast::tool::lock_events_test
