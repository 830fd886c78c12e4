#include "bench/measure.hpp"

#include <algorithm>
#include <cstring>
#include <holdfast/holdfast.hpp>
#include <optional>
#include <span>
#include <stdexcept>

#include "bench/processors.hpp"
#include "bench/workers.hpp"

namespace bench {
namespace {

constexpr std::chrono::milliseconds shortest_round{20};

void copy(char* to, std::size_t size, std::string_view from) {
  if (from.size() >= size) throw std::runtime_error{"too long: " + std::string{from}};
  std::memcpy(to, from.data(), from.size());  // the rest is zero
}

void set_up(shared_state& a, const plan& p, const workload& w, const subject_kind& s) {
  copy(a.workload, sizeof a.workload, w.name);
  copy(a.subject, sizeof a.subject, s.name);
  copy(a.folder, sizeof a.folder, p.at.folder.string());
  copy(a.url, sizeof a.url, p.at.url);
  a.processes = w.processes;
  a.threads = w.threads;
}

/// Every acquisition was counted once by its thread and once under the lock.
void check_exclusion(const shared_state& a) {
  std::uint64_t acquired = 0, inside = 0;
  for (unsigned i = 0; i < a.threads; ++i) acquired += a.participants[i].acquired;
  for (const auto n : a.inside) inside += n;
  if (acquired == inside) return;
  throw std::runtime_error{std::string{a.workload} + ", " + a.subject + ": of " +
                           std::to_string(acquired) + " acquisitions only " +
                           std::to_string(inside) + " were alone: it does not exclude"};
}

class shared_state_file {
 public:
  explicit shared_state_file(const place& at) : path_{at.folder / "area"} {}
  ~shared_state_file() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  shared_state_file(const shared_state_file&) = delete;
  shared_state_file& operator=(const shared_state_file&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

outcome run_once(const plan& p, const workload& w, const subject_kind& s) {
  const shared_state_file file{p.at};
  shared_state_mapping shared{file.path()};
  std::optional<own_processors> on;
  if (w.pinned) on.emplace(p.servers);
  set_up(*shared, p, w, s);
  {
    const workers all{shared, w.own_process};
    w.conduct(all, *shared, std::max(shortest_round, p.length / p.rounds));
  }
  check_exclusion(*shared);
  return w.sum_up(*shared);
}

double median(std::vector<double> v) {
  if (v.empty()) return -1;
  std::sort(v.begin(), v.end());
  const auto middle = v.size() / 2;
  return v.size() % 2 ? v[middle] : (v[middle - 1] + v[middle]) / 2;
}

using rounds = std::vector<outcome>;

double median_of(const rounds& all, double outcome::* number) {
  std::vector<double> v;
  for (const auto& o : all) v.push_back(o.*number);
  return median(std::move(v));
}

outcome median_of(const rounds& all) {
  outcome o;
  for (const auto number :
       {&outcome::ops_per_s, &outcome::p50_us, &outcome::p99_us, &outcome::min_share,
        &outcome::max_share, &outcome::store_ops_per_acquire, &outcome::efficiency,
        &outcome::cpu_percent, &outcome::store_ops_per_s, &outcome::acquired,
        &outcome::store_cpu_us, &outcome::bytes_each, &outcome::statements_each,
        &outcome::round_trips, &outcome::least_us}) {
    o.*number = median_of(all, number);
  }
  return o;
}

double outcome::* number_of(compared by) {
  switch (by) {
    case compared::ops_per_s:
      return &outcome::ops_per_s;
    case compared::p50_us:
      return &outcome::p50_us;
    case compared::cpu_percent:
      return &outcome::cpu_percent;
  }
  return &outcome::ops_per_s;
}

std::string_view name_of(compared by) {
  switch (by) {
    case compared::ops_per_s:
      return "ops_per_s";
    case compared::p50_us:
      return "p50_us";
    case compared::cpu_percent:
      return "cpu_percent";
  }
  return {};
}

// Whether it is the baseline beside a server: the lock that people write by hand, and for a
// hand-over the least that it can cost there. If there are two, the later one is closer.
bool is_server_baseline(const workload& w, std::string_view baseline) {
  const bool hand_over = w.host_baseline == "flock" && w.by == compared::p50_us;
  constexpr std::string_view least[] = {"push", "listen_notify", "postgres_advisory", "mariadb_row",
                                        "mariadb_user_lock"};
  constexpr std::string_view by_hand[] = {
      "loop", "add", "postgres_row", "postgres_advisory", "mariadb_row", "mariadb_user_lock"};
  using names = std::span<const std::string_view>;
  const auto meant = hand_over ? names(least) : names(by_hand);
  return std::find(meant.begin(), meant.end(), baseline) != meant.end();
}

void compare(row& ours, const workload& w, std::string_view baseline, double ratio) {
  if (ratio < 0) return;
  ours.ratio_of = name_of(w.by);
  ours.ratios.emplace_back(baseline, ratio);
  const bool is_ours = baseline == w.host_baseline || is_server_baseline(w, baseline) ||
                       baseline.ends_with("_recipe");
  if (is_ours) ours.baseline = baseline, ours.ratio = ratio;
}

}  // namespace

double ratio_of(const rounds& ours, const rounds& baseline, double outcome::* number) {
  std::vector<double> v;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (baseline[i].*number > 0) v.push_back(ours[i].*number / (baseline[i].*number));
  }
  return median(std::move(v));
}

row row_of(std::string_view workload, std::string_view subject, const rounds& all) {
  row r;
  r.workload = workload;
  r.subject = subject;
  r.median = median_of(all);
  r.rounds = static_cast<unsigned>(all.size());
  return r;
}

std::string why_not(const plan& p, const workload& w, const subject_kind& s) {
  if ((w.only_ours_on || w.needs[0]) && s.name != holdfast_subject.name)
    return "has nothing like it";
  if (w.only_ours_on && !w.only_ours_on(p.at.url)) return "is not what it is for";
  if (w.pinned && p.servers.empty()) return "has no process that --server names";
  if (w.pinned && processors_allowed() < 2) return "has to share one processor with its client";
  if (!s.fits(p.at.url)) return "is no floor for this store";
  if ((w.processes > 1 || w.starts_processes) && !s.across_processes(p.at)) {
    return "lives inside one process";
  }
  for (const auto needed : w.needs) {
    if (needed && !(holdfast::open(p.at.url).can().*needed)) return "has nothing to do it with";
  }
  if (w.variant.empty() || s.name != holdfast_subject.name) return {};
  const auto refused = refusal_of({p.at.folder, p.at.url, w.variant});
  return refused.empty() ? refused : "refuses it: " + refused;
}

std::vector<row> measure(const plan& p, const workload& w) {
  std::vector<const subject_kind*> who;
  for (const auto* s : p.subjects) {
    if (why_not(p, w, *s).empty()) who.push_back(s);
  }
  std::vector<rounds> results(who.size());
  const unsigned rounds_of_it = w.once ? 1 : p.rounds;
  for (unsigned round = 0; round < rounds_of_it; ++round) {
    for (std::size_t i = 0; i < who.size(); ++i) results[i].push_back(run_once(p, w, *who[i]));
  }
  std::vector<row> rows;
  for (std::size_t i = 0; i < who.size(); ++i) {
    rows.push_back(row_of(w.name, who[i]->name, results[i]));
    rows.back().counts_operations = who[i]->counts_operations;
  }
  if (!rows.empty() && rows[0].subject == holdfast_subject.name) {
    for (std::size_t i = 1; i < who.size(); ++i) {
      compare(rows[0], w, who[i]->name, ratio_of(results[0], results[i], number_of(w.by)));
    }
  }
  return rows;
}

}  // namespace bench
