// The library's events in a program's own log: spdlog, with its levels. A line is logfmt already.
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <memory>
#include <sstream>
#include <string_view>

// #region spdlog
std::shared_ptr<holdfast::observer> into(std::shared_ptr<spdlog::logger> log) {
  holdfast::event_log_options options;
  options.routine = log->should_log(spdlog::level::debug);
  options.write = [log](holdfast::log_level level, std::string_view line) {
    const bool error = level == holdfast::log_level::error;
    const bool info = level == holdfast::log_level::info;
    log->log(error  ? spdlog::level::err
             : info ? spdlog::level::debug
                    : spdlog::level::warn,
             "{}", line);
  };
  return std::make_shared<holdfast::event_log>(std::move(options));
}
// #endregion

int main() {
  std::ostringstream written;
  const auto log = std::make_shared<spdlog::logger>(
      "locks", std::make_shared<spdlog::sinks::ostream_sink_mt>(written));
  log->set_level(spdlog::level::debug);
  const auto session = holdfast::open("memory:", {.observer = into(log)});
  holdfast::mutex orders{session, "order:1000"};
  (void)orders.acquire().release();
  log->flush();
  std::cout << written.str();
  return written.str().find("event=released lock=order:1000") != std::string::npos ? 0 : 1;
}
