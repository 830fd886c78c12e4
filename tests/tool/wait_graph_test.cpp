#include "tool/wait_graph.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tool/json.hpp"

namespace holdfast::tool::wait_graph_test {

using namespace std::chrono_literals;

namespace {

constexpr std::chrono::system_clock::time_point noon{1'700'000'000s};

participant process(std::uint32_t pid, std::uint32_t weight = 1) {
  participant p;
  p.short_id = "id" + std::to_string(pid);
  p.host = "h";
  p.pid = pid;
  p.program = "job";
  p.weight = weight;
  p.since = noon - 3s;
  return p;
}

name_info name(const std::string& called, std::vector<participant> holders,
               std::vector<participant> waiters, std::uint32_t capacity = 1) {
  name_info n;
  n.name = called;
  n.kind = "mutex";
  n.capacity = capacity;
  n.holders = std::move(holders);
  n.waiters = std::move(waiters);
  return n;
}

const pids_above nobody_above = [](const graph_process&) { return std::vector<std::uint32_t>{}; };

wait_graph graph_of(const std::vector<name_info>& names) {
  return make_wait_graph(names, nobody_above);
}

std::vector<std::vector<std::uint32_t>> rings_of(const wait_graph& g) {
  std::vector<std::vector<std::uint32_t>> rings;
  for (const auto& ring : g.rings) {
    rings.emplace_back();
    for (const std::size_t p : ring) rings.back().push_back(g.processes[p].pid);
  }
  return rings;
}

using rings = std::vector<std::vector<std::uint32_t>>;

std::vector<participant> processes(std::uint32_t from, std::uint32_t count) {
  std::vector<participant> all;
  for (std::uint32_t pid = from; pid < from + count; ++pid) all.push_back(process(pid));
  return all;
}

}  // namespace

TEST(wait_graph, every_waiter_waits_for_every_holder) {
  const auto g = graph_of({name("a", {process(1)}, {process(2), process(3)})});
  EXPECT_EQ(graph_text(g, noon),
            "  h:2 (job) waits for h:1 (job): a, for 3s\n"
            "  h:3 (job) waits for h:1 (job): a, for 3s\n");
  EXPECT_TRUE(g.rings.empty());
}

TEST(wait_graph, two_processes_with_each_others_locks_are_a_ring) {
  const auto g = graph_of(
      {name("a", {process(1)}, {process(2)}), name("b", {process(2)}, {process(1), process(3)})});
  EXPECT_EQ(rings_of(g), (rings{{2, 1}}));
  const auto text = graph_text(g, noon);
  EXPECT_NE(text.find("* h:2 (job) waits for h:1 (job): a"), std::string::npos) << text;
  EXPECT_NE(text.find("* h:1 (job) waits for h:2 (job): b"), std::string::npos) << text;
  EXPECT_NE(text.find("  h:3 (job) waits for h:2 (job): b"), std::string::npos) << text;
  EXPECT_NE(text.find("ring: h:2 (job) -> h:1 (job) -> h:2 (job)"), std::string::npos) << text;
}

TEST(wait_graph, a_longer_ring_and_one_beside_it_are_both_found) {
  const auto g =
      graph_of({name("a", {process(1)}, {process(2)}), name("b", {process(2)}, {process(3)}),
                name("c", {process(3)}, {process(1)}), name("d", {process(8)}, {process(9)}),
                name("e", {process(9)}, {process(8)})});
  EXPECT_EQ(rings_of(g), (rings{{2, 1, 3}, {9, 8}}));
}

TEST(wait_graph, a_chain_of_waits_is_no_ring) {
  EXPECT_TRUE(
      graph_of({name("a", {process(1)}, {process(2)}), name("b", {process(2)}, {process(3)})})
          .rings.empty());
}

TEST(wait_graph, a_process_that_died_neither_waits_nor_keeps_others_waiting) {
  participant dead = process(1);
  dead.died = true;
  const auto g = graph_of({name("a", {dead}, {process(2)}), name("b", {process(2)}, {dead})});
  EXPECT_TRUE(g.waits.empty());
  EXPECT_TRUE(g.rings.empty());
  const auto beside = graph_of({name("a", {process(3)}, {dead, process(2)})});
  EXPECT_EQ(beside.waits.size(), 1U);
}

TEST(wait_graph, two_threads_of_a_process_at_one_lock_are_no_ring) {
  const auto g = graph_of({name("a", {process(1)}, {process(1)})});
  EXPECT_EQ(g.waits.size(), 1u);
  EXPECT_TRUE(g.rings.empty());
}

TEST(wait_graph, two_threads_of_a_process_are_one_member_of_a_ring) {
  const auto g = graph_of({name("a", {process(1)}, {process(1), process(2)}),
                           name("b", {process(2)}, {process(1), process(2)})});
  EXPECT_EQ(rings_of(g), (rings{{1, 2}}));
  for (const graph_wait& w : g.waits) EXPECT_EQ(w.in_ring, w.from != w.to);
}

TEST(wait_graph, one_of_several_permits_can_come_from_another_and_closes_no_ring) {
  const auto one_of_two = graph_of({name("s", {process(1), process(3)}, {process(2)}, 2),
                                    name("b", {process(2)}, {process(1)})});
  EXPECT_TRUE(one_of_two.rings.empty());
  EXPECT_NE(graph_text(one_of_two, noon).find("h:2 (job) may wait for h:1"), std::string::npos);
  const auto both = graph_of({name("s", {process(1), process(3)}, {process(2, 2)}, 2),
                              name("b", {process(2)}, {process(1)})});
  EXPECT_EQ(rings_of(both), (rings{{2, 1}}));
}

TEST(wait_graph, a_run_waits_for_its_command) {
  participant outer = process(1);
  outer.program = "holdfast";
  const std::vector<name_info> names{name("a", {outer}, {process(20)}),
                                     name("b", {process(20)}, {process(10)})};
  const auto started = [](const graph_process& p) {
    return p.pid == 10 ? std::vector<std::uint32_t>{5, 1} : std::vector<std::uint32_t>{};
  };
  const auto g = make_wait_graph(names, started);
  EXPECT_EQ(g.rings.size(), 1u);
  EXPECT_NE(
      graph_text(g, noon).find("* h:1 (holdfast) waits for h:10 (job): the end of its command"),
      std::string::npos);
  EXPECT_TRUE(graph_of(names).rings.empty());
}

TEST(wait_graph, participants_without_a_process_are_distinguished_by_their_ids) {
  participant a, b;
  a.short_id = "aaaa";
  b.short_id = "bbbb";
  EXPECT_EQ(graph_text(graph_of({name("l", {a}, {b})}), noon),
            "  owner bbbb waits for owner aaaa: l\n");
}

TEST(wait_graph, dot_and_json_mark_the_ring_and_quote_texts_of_others) {
  const auto g = graph_of({name("a\"];evil[\"\\", {process(1)}, {process(2)}),
                           name("b\x1b[2J", {process(2)}, {process(1)})});
  const auto dot = graph_dot(g);
  EXPECT_NE(dot.find("p0 -> p1 [label=\"a\\\"];evil[\\\"\\\\\", color=red, penwidth=2];"),
            std::string::npos)
      << dot;
  EXPECT_EQ(dot.find('\x1b'), std::string::npos);
  EXPECT_EQ(graph_text(g, noon).find('\x1b'), std::string::npos);
  const auto j = nlohmann::json::parse(graph_json(g, "sqlite:x", noon));
  EXPECT_EQ(j["waits"][0]["lock"], "a\"];evil[\"\\");
  EXPECT_EQ(j["waits"][0]["in_ring"], true);
  EXPECT_EQ(j["rings"], nlohmann::json::parse("[[0,1]]"));
  EXPECT_EQ(j["processes"][0]["pid"], 2);
}

TEST(wait_graph, of_a_crowd_it_grows_with_the_waiters_and_counts_the_waits_left_out) {
  const std::uint32_t waiters = 2000, holders = 500;
  const auto g = graph_of({name("s", processes(1, holders), processes(1001, waiters), holders)});
  EXPECT_EQ(g.processes.size(), waiters + holders);
  EXPECT_LE(g.waits.size(), waiters + 1000);
  EXPECT_EQ(g.waits.size() + g.left_out, waiters * holders);
  std::vector<bool> waits(g.processes.size());
  for (const graph_wait& w : g.waits) waits[w.from] = true;
  EXPECT_EQ(std::count(waits.begin(), waits.end(), true), std::ptrdiff_t{waiters})
      << "each of them is there";
  const std::string others = std::to_string(g.left_out) + " more waits";
  EXPECT_NE(graph_text(g, noon).find(others), std::string::npos);
  EXPECT_NE(graph_dot(g).find(others), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(graph_json(g, "sqlite:x", noon))["waits_left_out"], g.left_out);
}

TEST(wait_graph, of_a_few_nothing_is_left_out) {
  const auto g = graph_of({name("s", processes(1, 20), processes(1001, 50), 20)});
  EXPECT_EQ(g.waits.size(), 1000u);
  EXPECT_EQ(g.left_out, 0u);
  EXPECT_EQ(graph_text(g, noon).find("more waits"), std::string::npos);
  EXPECT_EQ(graph_dot(g).find("more waits"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(graph_json(g, "sqlite:x", noon))["waits_left_out"], 0);
}

TEST(wait_graph, a_ring_in_a_crowd_is_found_and_all_its_waits_are_shown) {
  const std::uint32_t readers = 500;
  std::vector<participant> writers;
  for (std::uint32_t pid = 1001; pid < 3001; ++pid) writers.push_back(process(pid, readers));
  const auto g = graph_of({name("shared", processes(1, readers), writers, readers),
                           name("a", {process(2999)}, {process(400)})});
  EXPECT_EQ(rings_of(g), (rings{{400, 2999}}));
  std::size_t marked = 0;
  for (const graph_wait& w : g.waits) {
    if (!w.in_ring) continue;
    ++marked;
    const auto pids = std::pair(g.processes[w.from].pid, g.processes[w.to].pid);
    EXPECT_TRUE(pids == std::pair(400u, 2999u) || pids == std::pair(2999u, 400u));
  }
  EXPECT_EQ(marked, 2u);
  EXPECT_EQ(g.waits.size() + g.left_out, writers.size() * readers + 1);
}

TEST(wait_graph, a_long_chain_behind_a_ring_is_followed_once) {
  // Each process waits for the one before it: a ring at the head, and no way back for the others.
  std::vector<name_info> names{name("head", {process(1)}, {process(2)})};
  const std::uint32_t length = 100'000;
  for (std::uint32_t pid = 1; pid < length; ++pid)
    names.push_back(name("l" + std::to_string(pid), {process(pid + 1)}, {process(pid)}));
  const auto g = graph_of(names);
  EXPECT_EQ(g.rings.size(), 1u);
}

}  // namespace holdfast::tool::wait_graph_test
