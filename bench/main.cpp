#include <stdlib.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <holdfast/error.hpp>
#include <holdfast/session.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/beside.hpp"
#include "bench/growth.hpp"
#include "bench/leader.hpp"
#include "bench/limits.hpp"
#include "bench/measure.hpp"
#include "bench/paired.hpp"
#include "bench/report.hpp"
#include "bench/several.hpp"
#include "bench/workers.hpp"

namespace bench {
namespace {

namespace fs = std::filesystem;
constexpr int usage = 64, failed = 1;

struct bad_usage : std::runtime_error {
  using runtime_error::runtime_error;
};

/// A folder beside the store's file, so that the baselines' files are on the same disk; removed at
/// the end.
class work_folder {
 public:
  explicit work_folder(const std::string& url) {
    auto name = (parent_for(url) / "holdfast-bench-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::system_error{errno, std::generic_category(), name};
    path_ = name;
  }
  ~work_folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  work_folder(const work_folder&) = delete;
  work_folder& operator=(const work_folder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  static fs::path parent_for(const std::string& url) {
    if (scheme_of(url) != "sqlite") return fs::temp_directory_path();
    const std::string rest = url.substr(url.find(':') + 1);
    const auto parent = fs::path{rest.substr(0, rest.find('?'))}.parent_path();
    return parent.empty() ? fs::current_path() : parent;
  }
  fs::path path_;
};

struct words {
  std::string store;
  std::vector<std::string> workloads, subjects, several;
  double seconds = 2;
  unsigned repeat = 5;
  std::vector<pid_t> servers;
  std::size_t most = 100'000;
  bool json = false, markdown = false, list = false, limits = false, growth = false, paired = false;

  void add_to(CLI::App& app) {
    app.get_formatter()->column_width(28);
    app.add_option("--store", store, "holdfast's store; default: an SQLite file of its own")
        ->type_name("URL");
    app.add_option("--workload", workloads, "which; default: all")
        ->delimiter(',')
        ->type_name("W1,…");
    app.add_option("--server", servers, "the store's processes on this machine, for W1-pinned")
        ->delimiter(',')
        ->type_name("PID,…");
    app.add_option("--subject", subjects, "which; default: holdfast and every floor for the store")
        ->delimiter(',')
        ->type_name("NAME,…");
    app.add_option("--seconds", seconds,
                   "for each subject in each workload, all rounds together; default 2")
        ->type_name("N")
        ->check(CLI::Range(0.01, 3600.0));
    app.add_option("--repeat", repeat, "rounds, of which the median counts; default 5")
        ->type_name("R")
        ->check(CLI::Range(1U, 1000U));
    auto* as_json = app.add_flag("--json", json, "one JSON object a line");
    app.add_flag("--markdown", markdown, "a Markdown table")->excludes(as_json);
    app.add_flag("--list", list, "the workloads and subjects");
    app.add_option("--several", several, "multi_lock and redlock instead, over these stores")
        ->delimiter(',')
        ->type_name("URL,…");
    auto* as_growth = app.add_flag("--growth", growth,
                                   "what an operation costs while there is ever more of something");
    app.add_option("--most", most, "for --growth, so many at most; default 100,000")
        ->type_name("N")
        ->check(CLI::Range(10U, 1'000'000U))
        ->needs(as_growth);
    app.add_flag("--limits", limits, "rate limits instead of locks; --store is a Redis server");
    auto* as_pair = app.add_flag(
        "--paired", paired, "W1 in short slices, in turns: two subjects that differ by little");
    for (const char* without :
         {"--workload", "--server", "--markdown", "--list", "--several", "--growth", "--limits"})
      as_pair->excludes(app.get_option(without));
  }

  form wanted_form() const { return json ? form::json : markdown ? form::markdown : form::table; }
};

template <class Kind, class Find>
std::vector<const Kind*> chosen(const std::vector<std::string>& names, std::span<const Kind> all,
                                Find find, const char* option) {
  std::vector<const Kind*> out;
  for (const auto& n : names) {
    if (!find(n)) throw bad_usage{std::string{option} + ": there is no '" + n + "'; see --list"};
  }
  for (const auto& one : all) {
    const bool asked = std::find(names.begin(), names.end(), one.name) != names.end();
    if (asked || names.empty()) out.push_back(&one);
  }
  return out;
}

plan plan_of(const words& w, const fs::path& folder) {
  plan p;
  p.at.folder = folder;
  p.at.url = w.store.empty() ? "sqlite:" + (folder / "holdfast.db").string() : w.store;
  p.workloads = chosen(w.workloads, all_workloads(), find_workload, "--workload");
  p.subjects = chosen(w.subjects, all_subjects(), find_subject, "--subject");
  p.length = std::chrono::milliseconds{static_cast<std::int64_t>(w.seconds * 1000)};
  p.rounds = w.repeat;
  p.servers = w.servers;
  return p;
}

void list_all() {
  for (const auto& w : all_workloads()) {
    std::printf("%-16.*s%.*s\n", static_cast<int>(w.name.size()), w.name.data(),
                static_cast<int>(w.about.size()), w.about.data());
  }
  std::printf("\nsubjects:");
  for (const auto& s : all_subjects())
    std::printf(" %.*s", static_cast<int>(s.name.size()), s.name.data());
  std::printf("\n");
}

void run(const plan& p, form f) {
  for (const auto* s : p.subjects) {
    if (s->fits(p.at.url)) s->prepare(p.at);
  }
  std::fputs(heading(f).c_str(), stdout);
  double hand_over = -1;
  for (const auto* w : p.workloads) {
    const auto reason = why_not(p, *w, holdfast_subject);
    if (!reason.empty()) {
      std::fprintf(stderr, "%s is left out: %s %s\n", std::string{w->name}.c_str(),
                   holdfast::without_secrets(p.at.url).c_str(), reason.c_str());
      continue;
    }
    for (auto& r : measure(p, *w)) {
      if (w == &w5 && r.subject == holdfast_subject.name) hand_over = r.median.p50_us;
      if (w == &resign && hand_over > 0) r.hand_overs = r.median.p50_us / hand_over;
      std::fputs(line(f, r).c_str(), stdout);
    }
    std::fflush(stdout);
  }
}

void run_limits(const words& w) {
  if (!scheme_of(w.store).starts_with("redis")) {
    throw bad_usage{"--limits compares with a script on Redis: give its URL with --store"};
  }
  const auto length = std::chrono::milliseconds{static_cast<std::int64_t>(w.seconds * 1000)};
  std::fputs(heading(w.wanted_form()).c_str(), stdout);
  for (const auto& r : measure_limits(w.store, length, w.repeat)) {
    std::fputs(line(w.wanted_form(), r).c_str(), stdout);
  }
}

void run_growth(const words& w, const std::string& url) {
  std::fputs(heading(w.wanted_form()).c_str(), stdout);
  measure_growth(url, w.most, [&](const row& r) {
    std::fputs(line(w.wanted_form(), r).c_str(), stdout);
    std::fflush(stdout);
  });
}

void run_paired(const words& w, const plan& p) {
  if (w.subjects.size() != 2) throw bad_usage{"--paired compares two subjects: name them"};
  for (const auto* s : p.subjects) {
    const auto reason = why_not(p, w1, *s);
    if (!reason.empty()) throw bad_usage{std::string{s->name} + " " + reason};
    s->prepare(p.at);
  }
  measure_paired(p.at, *find_subject(w.subjects[0]), *find_subject(w.subjects[1]), p.length);
}

int member_main(char** argv) {
  shared_state_mapping shared_state{argv[2]};
  return take_part(*shared_state, static_cast<unsigned>(std::stoul(argv[3])), std::stoi(argv[4]),
                   std::stoi(argv[5]));
}

int bench_main(int argc, char** argv) {
  CLI::App app{"Measures holdfast against what people would use in its place, in turns in one run.",
               "holdfast-bench"};
  words w;
  w.add_to(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return 0;
  } catch (const CLI::ParseError& e) {
    throw bad_usage{e.what()};
  }
  if (w.list) return list_all(), 0;
  if (w.limits) return run_limits(w), 0;
  if (!w.several.empty()) {
    measure_several(w.several,
                    std::chrono::milliseconds{static_cast<std::int64_t>(w.seconds * 1000)},
                    w.repeat);
    return 0;
  }
  const work_folder folder{w.store};
  const auto what = plan_of(w, folder.path());
  if (w.paired) return run_paired(w, what), 0;
  if (w.growth) return run_growth(w, what.at.url), 0;
  run(what, w.wanted_form());
  return 0;
}

int say(int code, std::string_view message) {
  constexpr std::string_view library = "holdfast: ";  // the beginning of its messages
  if (message.starts_with(library)) message.remove_prefix(library.size());
  std::fprintf(stderr, "holdfast-bench: %s\n", std::string{message}.c_str());
  return code;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  try {
    if (argc == 6 && std::string_view{argv[1]} == "--member") return bench::member_main(argv);
    if (argc == 5 && std::string_view{argv[1]} == "--leader") return bench::leader_main(argv);
    if (argc == 6 && std::string_view{argv[1]} == "--beside") return bench::beside_main(argv);
    return bench::bench_main(argc, argv);
  } catch (const bench::bad_usage& e) {
    return bench::say(bench::usage, e.what());
  } catch (const std::exception& e) {
    return bench::say(bench::failed, e.what());
  }
}
