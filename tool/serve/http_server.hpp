#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// HTTP for the pages of this program, over Boost.Beast, which is known to http_server.cpp only.
namespace holdfast::tool {

struct http_request {
  std::string method;
  std::string path;           ///< without the query, as it came
  std::string query;          ///< behind the question mark, as it came
  std::string authorization;  ///< the header of that name
  /// A browser says that the page which asks is another site's: Sec-Fetch-Site, and over plain
  /// http to another machine, where browsers do not send that, Origin.
  bool foreign = false;
  std::string body;
};

/// An answer that goes on until the client leaves. Used by the server's thread only.
class http_stream {
 public:
  virtual ~http_stream() = default;
  /// What is to be sent now; nothing if there is none: the server asks again after wake(). It asks
  /// when the piece before has left for the client, so a slow client is not owed more than one.
  virtual std::shared_ptr<const std::string> next() = 0;
};

struct http_answer {
  unsigned status = 200;
  std::string type = "application/json";
  /// The first part of the body: many answers that are on their way may have the same.
  std::shared_ptr<const std::string> shared{};
  std::string body{};  ///< the rest of it
  std::vector<std::pair<std::string, std::string>> headers{};
  std::unique_ptr<http_stream> stream{};  ///< instead of a body
};

/// To be called once, by any thread.
class http_reply {
 public:
  http_reply(std::function<void(http_answer)> send, std::function<bool()> wanted)
      : send_(std::move(send)), wanted_(std::move(wanted)) {}
  void operator()(http_answer what) const { send_(std::move(what)); }
  /// False: the client is known to have left.
  bool wanted() const { return wanted_(); }

 private:
  std::function<void(http_answer)> send_;
  std::function<bool()> wanted_;
};
/// Called by the server's thread, which must not be kept.
using http_handler = std::function<void(const http_request&, http_reply)>;

struct http_limits {
  /// So many send their request or take their answer: beyond it the oldest one is closed. And so
  /// many requests wait until their answer is made: beyond it a new one gets 503.
  std::size_t connections = 64;
  std::size_t streams = 0;                           ///< beyond it: 503
  std::chrono::milliseconds request_patience{2000};  ///< for a whole request
  /// So long a client may take nothing of its answer; and the most for one piece of a stream.
  std::chrono::milliseconds reader_patience{20'000};
  /// For a whole answer that is no stream: until then it is kept for the client.
  std::chrono::milliseconds answer_patience{120'000};
};

/// Where it listens, and which names it has there.
struct http_address {
  std::string option;         ///< what the address was given as; for messages
  std::string address;        ///< [ADDRESS]:PORT; without an address only this machine can ask
  std::string host_option{};  ///< what other names are given as; empty: they can not be given
  std::vector<std::string> hosts{};  ///< other names of this machine, as a proxy passes them on
};

/// Answers requests, one a connection. A request under a name that is not this machine's gets 421
/// (host_check.hpp). Has a thread of its own, from start() to stop().
class http_server {
 public:
  /// Throws failure_exit if it cannot listen.
  http_server(const http_address& at, http_limits limits, http_handler handler);
  http_server(const http_server&) = delete;
  http_server& operator=(const http_server&) = delete;
  ~http_server();

  void start();
  /// Closes all connections; replies that come later are ignored.
  void stop();
  /// Where it listens: what the system chose, if the port was 0.
  int port() const noexcept;
  /// Each stream is asked again. Thread-safe.
  void wake();
  /// Calls `then` on the server's thread; never if the server stops before. Thread-safe.
  void after(std::chrono::nanoseconds pause, std::function<void()> then);

 private:
  class impl;
  std::shared_ptr<impl> impl_;
};

}  // namespace holdfast::tool
