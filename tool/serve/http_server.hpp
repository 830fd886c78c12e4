#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// HTTP for the pages of this program, over Boost.Beast, which only http_server.cpp uses.
namespace holdfast::tool {

struct http_request {
  std::string method;
  std::string path;           ///< without the query, undecoded
  std::string query;          ///< after the question mark, undecoded
  std::string authorization;  ///< the header of that name
  /// The browser marks the request as another site's page's: by Sec-Fetch-Site; or by Origin over
  /// plain http to another machine, where browsers do not send that header.
  bool foreign = false;
  std::string body;
};

/// An answer that continues until the client leaves. Used by the server's thread only.
class http_stream {
 public:
  virtual ~http_stream() = default;
  /// The next piece to send; nothing if there is none: the server calls it again after wake(). The
  /// server calls it when the piece before has left for the client, so at most one piece waits for
  /// a slow client.
  virtual std::shared_ptr<const std::string> next() = 0;
};

struct http_answer {
  unsigned status = 200;
  std::string type = "application/json";
  /// The first part of the body: many answers may share it.
  std::shared_ptr<const std::string> shared{};
  std::string body{};  ///< the rest of the body
  std::vector<std::pair<std::string, std::string>> headers{};
  std::unique_ptr<http_stream> stream{};  ///< instead of a body
};

/// Call it once, on any thread.
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
/// Called by the server's thread, which must not be blocked.
using http_handler = std::function<void(const http_request&, http_reply)>;

struct http_limits {
  /// This many connections may send their request or receive their answer: beyond it the oldest one
  /// is closed. And as many requests may wait until their answer is made: beyond it a new one gets
  /// 503.
  std::size_t connections = 64;
  std::size_t streams = 0;                           ///< beyond it: 503
  std::chrono::milliseconds request_patience{2000};  ///< for a whole request
  /// How long a client may take no bytes of its answer; and the longest time for one piece of a
  /// stream.
  std::chrono::milliseconds reader_patience{20'000};
  /// For a whole answer that is not a stream: it is kept for the client until then.
  std::chrono::milliseconds answer_patience{120'000};
};

/// Where it listens, and the names of this machine there.
struct http_address {
  std::string option;         ///< the option that gave the address; for messages
  std::string address;        ///< [ADDRESS]:PORT; without an address only this machine can connect
  std::string host_option{};  ///< the option that gives other names; empty: none can be given
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
  /// The port on which it listens: chosen by the system, if the given port was 0.
  int port() const noexcept;
  /// Polls each stream again. Thread-safe.
  void wake();
  /// Calls `then` on the server's thread; never if the server stops before. Thread-safe.
  void after(std::chrono::nanoseconds pause, std::function<void()> then);

 private:
  class impl;
  std::shared_ptr<impl> impl_;
};

}  // namespace holdfast::tool
