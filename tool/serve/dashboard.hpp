#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tool/log.hpp"
#include "tool/serve/http_server.hpp"
#include "tool/survey/board.hpp"
#include "tool/survey/scanner.hpp"

namespace holdfast::tool {

struct watched_store {
  std::string url;  ///< without its secrets
  std::function<session()> open;
  std::string label{};  ///< for metrics; empty: `url`
};

struct dashboard_options {
  std::string option = "--listen";  ///< for messages
  std::string listen;
  std::string host_option{};         ///< for messages; empty: other names can not be given
  std::vector<std::string> hosts{};  ///< other names of this machine
  std::string token;                 ///< that unlocks; empty: nobody can
  scanner::plan plan{};
  http_limits limits{};
  /// Makes the text of /metrics out of what the scanners know; null: there is no such page.
  std::function<std::string(std::span<const snapshot>)> metrics{};
};

/// The pages of holdfast serve: the files of tool/serve/page, and an API below /api/ (docs/serve.md
/// describes it).
class dashboard {
 public:
  /// Throws failure_exit if it cannot listen.
  dashboard(std::vector<watched_store> stores, dashboard_options options, log& to);
  dashboard(const dashboard&) = delete;
  dashboard& operator=(const dashboard&) = delete;
  ~dashboard();
  int port() const noexcept { return server_->port(); }

 private:
  struct watched {
    board what;
    const std::string label;
    std::unique_ptr<scanner> by{};
  };
  class viewer;
  /// JSON, and when the oldest look was that is in it.
  struct known {
    std::string json;
    std::chrono::system_clock::time_point as_of;
  };
  using question = known (dashboard::*)(watched&, const http_request&,
                                        std::chrono::system_clock::time_point now);

  void handle(const http_request& r, const http_reply& reply);
  http_answer answer(const http_request& r);
  http_answer answer_to(question ask, watched& w, const http_request& r);
  known locks(watched& w, const http_request& r, std::chrono::system_clock::time_point now);
  known lock(watched& w, const http_request& r, std::chrono::system_clock::time_point now);
  known graph(watched& w, const http_request& r, std::chrono::system_clock::time_point now);
  known busiest(watched& w, const http_request& r, std::chrono::system_clock::time_point now);
  http_answer health(const watched& w) const;
  void metrics(std::size_t first, const http_reply& reply);
  http_answer events();
  void unlock(const http_request& r, const http_reply& reply);
  watched* store_of(const http_request& r);
  std::vector<std::string> urls() const;

  const dashboard_options options_;
  log& log_;
  std::vector<std::unique_ptr<watched>> stores_;
  std::unique_ptr<http_server> server_;
};

}  // namespace holdfast::tool
