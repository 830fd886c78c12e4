#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tool/log.hpp"
#include "tool/serve/http_server.hpp"
#include "tool/serve/shared_answer.hpp"
#include "tool/survey/board.hpp"
#include "tool/survey/scanner.hpp"
#include "tool/wait_graph.hpp"

namespace holdfast::tool {

struct watched_store {
  std::string url;  ///< without its secrets
  std::function<session()> open;
  std::string label{};  ///< for metrics; empty: `url`
};

struct dashboard_options {
  std::string option = "--listen";  ///< for messages
  std::string listen;
  std::string host_option{};         ///< for messages; empty: no other names can be given
  std::vector<std::string> hosts{};  ///< other names of this machine
  std::string token;                 ///< for unlocking; empty: nobody can
  scanner::plan plan{};
  http_limits limits{};
  /// Makes the text of /metrics from the scanners' data; null: there is no such page.
  std::function<std::string(std::span<const snapshot>)> metrics{};
  pids_above above = pids_above_here;  ///< for the graph of the waits
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
    watched(std::size_t index, std::string url, std::string of_metrics, const pids_above& above);
    board what;
    const std::string label;
    shared_answer locks, graph;
    std::unique_ptr<scanner> by{};
  };
  class viewer;
  using document = shared_answer::document;
  using judge = shared_answer::judge;
  using receiver = shared_answer::receiver;
  using question = void (dashboard::*)(watched&, const http_request&, const judge&,
                                       const receiver&);

  void handle(const http_request& r, const http_reply& reply);
  http_answer answer(const http_request& r);
  void answer_to(question ask, watched& w, const http_request& r, const http_reply& reply);
  void locks(watched& w, const http_request& r, const judge& is_good, const receiver& then);
  void lock(watched& w, const http_request& r, const judge& is_good, const receiver& then);
  void graph(watched& w, const http_request& r, const judge& is_good, const receiver& then);
  void busiest(watched& w, const http_request& r, const judge& is_good, const receiver& then);
  void share(shared_answer& of, const judge& is_good, const receiver& then);
  http_answer health(const watched& w) const;
  void metrics(const http_reply& reply);
  http_answer metrics_now() const;
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
