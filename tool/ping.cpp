#include <poll.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

#include "tool/commands.hpp"
#include "tool/json.hpp"
#include "tool/open_store.hpp"
#include "tool/round_trips.hpp"
#include "tool/signals.hpp"
#include "tool/stopwatch.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

using std::chrono::nanoseconds;

/// No program locks this name; a query for a free name costs the same as any other.
constexpr std::string_view asked_for = "holdfast-ping";

std::string milliseconds_text(nanoseconds d) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f ms",
                std::chrono::duration<double, std::milli>(d).count());
  return text.data();
}

std::string for_people(const ping_summary& s) {
  std::string text = std::to_string(s.asked) + " sent, " + std::to_string(s.answered) + " answered";
  if (s.answered > 0) {
    text += "; least " + milliseconds_text(s.least) + ", median " + milliseconds_text(s.median) +
            (s.median_of < s.answered ? " of the last " + std::to_string(s.median_of) : "") +
            ", mean " + milliseconds_text(s.mean) + ", most " + milliseconds_text(s.most);
  }
  return text + '\n';
}

/// One round trip after the other, until there were enough or a signal came.
class pinger {
 public:
  pinger(const common_options& common, log& to) : common_(common), log_(to) {
    options_.decorate = watch_.decorator();
  }

  int run(const ping_options& o) {
    const signal_inbox signals;
    open();
    boot_time next = boot_clock::now();
    while (o.count == 0 || asked_ < o.count) {
      ask();
      next = saturated_add(next, o.interval);
      const bool last = o.count != 0 && asked_ == o.count;
      if (!last && stopped(signals, next)) break;
    }
    const auto s = times_.summary(asked_);
    print(common_.json ? ping_summary_json(url_, s) : for_people(s));
    return s.answered == s.asked ? exit_code::ok : exit_code::unavailable;
  }

 private:
  void open() {
    auto opened = open_existing(common_, log_, options_);
    session_ = std::move(opened.session);
    url_ = std::move(opened.url);
  }

  void ask() {
    ++asked_;
    try {
      (void)session_->show(asked_for);
    } catch (const error& e) {
      if (!e.retryable()) throw;
      return told(std::nullopt, std::string(unsigned_message(e.what())));
    }
    const auto took = watch_.take();
    if (took) times_.add(*took);
    told(took, {});
  }

  void told(std::optional<nanoseconds> took, const std::string& failed) const {
    if (common_.json) return print(ping_json(url_, asked_, took, failed));
    const std::string how = took ? milliseconds_text(*took) : "no answer: " + printable(failed);
    print(printable(url_) + ": " + std::to_string(asked_) + ": " + how + '\n');
  }

  static bool stopped(const signal_inbox& signals, boot_time until) {
    while (true) {
      while (const auto signal = signals.next()) {
        if (asks_to_stop(static_cast<int>(signal->ssi_signo))) return true;
      }
      const auto left = until - boot_clock::now();
      if (left <= nanoseconds::zero()) return false;
      pollfd inbox{signals.fd(), POLLIN, 0};
      const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
      (void)::poll(&inbox, 1, static_cast<int>(std::min<std::int64_t>(ms, 60'000)));
    }
  }

  const common_options& common_;
  log& log_;
  stopwatch watch_;
  session_options options_;
  std::optional<session> session_;
  std::string url_;
  std::size_t asked_ = 0;
  round_trips times_;
};

}  // namespace

int ping(const common_options& common, const ping_options& o, log& to) {
  return pinger(common, to).run(o);
}

}  // namespace holdfast::tool
