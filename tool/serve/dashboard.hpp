#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tool/log.hpp"
#include "tool/serve/board.hpp"
#include "tool/serve/http_server.hpp"
#include "tool/serve/scanner.hpp"

namespace holdfast::tool {

struct watched_store {
  std::string url;  ///< without its secrets
  std::function<session()> open;
};

struct dashboard_options {
  std::string option = "--listen";  ///< for messages
  std::string listen;
  std::string token;  ///< that unlocks; empty: nobody can
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
    std::unique_ptr<scanner> by{};
  };
  class viewer;
  using question = http_answer (dashboard::*)(watched&, const http_request&);

  void handle(const http_request& r, const http_reply& reply);
  http_answer answer(const http_request& r);
  http_answer locks(watched& w, const http_request& r);
  http_answer lock(watched& w, const http_request& r);
  http_answer graph(watched& w, const http_request& r);
  http_answer busiest(watched& w, const http_request& r);
  http_answer health(watched& w, const http_request& r);
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
