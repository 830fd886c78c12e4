#include <unistd.h>
#include <csignal>

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "tool/commands.hpp"
#include "tool/doctor_facts.hpp"
#include "tool/doctor_names.hpp"
#include "tool/doctor_probes.hpp"
#include "tool/duration.hpp"
#include "tool/json.hpp"
#include "tool/open_store.hpp"
#include "tool/progress.hpp"
#include "tool/store_url.hpp"
#include "tool/table.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

using std::chrono::system_clock;

/// Collects the library's warnings while it opens the store.
class warnings final : public observer {
 public:
  void on_event(const event& e) override {
    if (e.kind != event_kind::warning) return;
    const std::lock_guard guard{mutex_};
    found_.push_back({severity::warning, "store", std::string(e.detail), {}});
  }
  /// The warnings that are not among `told`: the facts about eviction come with a remedy.
  findings take(const findings& told) {
    const bool eviction = std::any_of(told.begin(), told.end(),
                                      [](const finding& f) { return f.topic == "eviction"; });
    const std::lock_guard guard{mutex_};
    std::erase_if(found_, [&](const finding& f) {
      return eviction && f.message.find("maxmemory-policy") != f.message.npos;
    });
    return std::exchange(found_, {});
  }

 private:
  std::mutex mutex_;
  findings found_;
};

bool is_alive(std::uint32_t pid) {
  return ::kill(static_cast<pid_t>(pid), 0) == 0 || errno != ESRCH;
}

/// One examination after the other; if one cannot be done, that is a finding of its own.
class examination {
 public:
  examination(const common_options& common, const doctor_options& o, log& to)
      : common_(common), asked_(o), log_(to) {
    options_.observer = warnings_;
  }

  findings run() {
    const auto s = connect();
    if (!s) return found_;
    probes probe(*s, watch_);
    examine("round trip", [&] { return probe.round_trip(); });
    examine("settings",
            [&] { return judge_facts(url_of_store(given_store(common_)), s->facts()); });
    const std::size_t before = found_.size();
    examine("rights", [&] { return probe.rights(); });
    if (std::none_of(found_.begin() + static_cast<std::ptrdiff_t>(before), found_.end(),
                     [](const finding& f) { return f.level == severity::problem; })) {
      examine("clock", [&] { return probe.clock(); });
      examine("notifications",
              [&] { return probe.notifications([&](auto seen) { return open(seen); }); });
    }
    examine("names", [&] { return probe.names(present()); });
    add(warnings_->take(found_));
    return found_;
  }

 private:
  session open(const probes::decorator& decorate) {
    options_.decorate = decorate;
    return open_existing(common_, log_, options_).session;
  }

  std::optional<session> connect() {
    try {
      const auto began = std::chrono::steady_clock::now();
      auto s = open(watch_.decorator());
      found_.push_back(
          {severity::ok,
           "connection",
           "connected in " + format_short_time(std::chrono::steady_clock::now() - began),
           {}});
      return s;
    } catch (const error& e) {
      if (e.reason() == errc::invalid_argument) throw;  // of the command line
      found_.push_back(problem_of("connection", e));
      return std::nullopt;
    }
  }

  template <class Examine>
  void examine(const char* topic, Examine what) {
    try {
      add(what());
    } catch (const error& e) {
      found_.push_back(problem_of(topic, e));
    }
  }

  void add(findings more) { std::move(more.begin(), more.end(), std::back_inserter(found_)); }

  circumstances present() const {
    return {system_clock::now(), asked_.stuck, who_we_are().host, is_alive};
  }

  const common_options& common_;
  const doctor_options& asked_;
  log& log_;
  const std::shared_ptr<warnings> warnings_ = std::make_shared<warnings>();
  const stopwatch watch_;
  session_options options_;
  findings found_;
};

std::size_t count(const findings& all, severity level) {
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [&](const finding& f) { return f.level == level; }));
}

/// The first problem decides: later ones may be its consequence.
int verdict(const findings& all) {
  for (const auto& f : all)
    if (f.level == severity::problem) return f.code;
  return count(all, severity::warning) > 0 ? exit_code::warned : exit_code::ok;
}

std::string some(std::size_t n, const std::string& of) {
  return std::to_string(n) + ' ' + of + (n == 1 ? "" : "s");
}

std::string for_people(const std::string& url, const findings& all, bool bold) {
  table rows({"", "", printable(url)});
  for (const auto& f : all) {
    rows.add({std::string(to_string(f.level)), f.topic, escaped(f.message)});
    if (!f.remedy.empty()) rows.add({"", "", "→ " + f.remedy});
  }
  return rows.text(bold) + some(count(all, severity::problem), "problem") + ", " +
         some(count(all, severity::warning), "warning") + '\n';
}

}  // namespace

int doctor(const common_options& common, const doctor_options& o, log& to) {
  const auto found = examination(common, o, to).run();
  const int code = verdict(found);
  const std::string url = shown_store(common);
  const bool bold = use_color(common.color, STDOUT_FILENO);
  print(common.json ? doctor_json(url, found, code, system_clock::now())
                    : for_people(url, found, bold));
  return code;
}

}  // namespace holdfast::tool
