#include "tool/serve/http_server.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/buffers_suffix.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <cerrno>
#include <functional>
#include <list>
#include <optional>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>

#include "tool/exit_code.hpp"
#include "tool/failure.hpp"
#include "tool/serve/host_check.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using tcp = net::ip::tcp;
using clock = std::chrono::steady_clock;
/// What follows an operation. These are types of their own, and not lambdas, so that the compiler
/// makes each kind of operation once.
using after_bytes = std::function<void(error_code, std::size_t)>;
using after_pause = std::function<void(error_code)>;
using turn = std::function<void()>;

constexpr std::uint32_t longest_head = 8192;
constexpr std::uint64_t longest_body = 4096;
/// A slow client's progress is noticed in steps of about a third of that.
constexpr int sent_ahead = 256 * 1024;
/// A viewer of a stream that sends more than this behind its request is cut off.
constexpr std::size_t most_ignored = 16 * 1024;
constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";

/// What a browser may do with an answer: only what the page needs. With trusted types, every
/// attempt to write HTML from text is an error.
constexpr std::string_view content_policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

[[noreturn]] void refuse(const std::string& option, const std::string& address,
                         const std::string& why) {
  throw failure_exit(exit_code::config, option + " " + printable(address) + ": " + why);
}

tcp::endpoint resolve(net::io_context& io, const std::string& option, const std::string& address) {
  const auto port = port_of(address);
  if (!port)
    refuse(option, address,
           "has no port from 0 to 65535; write :PORT, ADDRESS:PORT or [IPV6]:PORT");
  std::string host = host_of(address);
  if (host.empty()) host = "127.0.0.1";
  error_code wrong;
  tcp::resolver resolver{io};
  const auto found =
      resolver.resolve(host, std::to_string(*port), tcp::resolver::numeric_service, wrong);
  if (wrong) refuse(option, address, wrong.message());
  return found.begin()->endpoint();
}

tcp::acceptor listen_on(net::io_context& io, const std::string& option,
                        const std::string& address) {
  const tcp::endpoint at = resolve(io, option, address);
  tcp::acceptor acceptor{io};
  error_code wrong;
  acceptor.open(at.protocol(), wrong);
  if (!wrong) acceptor.set_option(net::socket_base::reuse_address(true), wrong);
  if (!wrong) acceptor.bind(at, wrong);
  if (!wrong) acceptor.listen(net::socket_base::max_listen_connections, wrong);
  if (wrong == net::error::address_in_use)
    refuse(option, address,
           "address already in use: another program, perhaps an earlier holdfast serve, listens "
           "there; end it, or choose " +
               option + " :PORT");
  if (wrong == boost::system::errc::address_not_available)
    refuse(
        option, address,
        "this machine does not have that address; choose one of its own, or " + option + " :PORT");
  if (wrong) refuse(option, address, wrong.message());
  return acceptor;
}

using answer_head = http::response<http::empty_body>;

answer_head head_of(unsigned status, const std::string& type) {
  answer_head made{http::int_to_status(status), 11};
  made.set(http::field::content_type, type);
  made.set(http::field::cache_control, "no-store");
  made.set("Content-Security-Policy",
           beast::string_view(content_policy.data(), content_policy.size()));
  made.set("X-Content-Type-Options", "nosniff");
  made.set("Referrer-Policy", "no-referrer");
  made.set("Cross-Origin-Resource-Policy", "same-origin");
  made.set("Cross-Origin-Opener-Policy", "same-origin");
  made.keep_alive(false);
  return made;
}

std::string text_of(const answer_head& head) {
  std::ostringstream text;
  text << head.base();
  return text.str();
}

http_answer error_answer(unsigned status, std::string_view why) {
  http_answer a;
  a.status = status;
  a.body = "{\"schema\":1,\"error\":\"" + std::string(why) + "\"}\n";
  return a;
}

std::string text_of(beast::string_view text) { return {text.data(), text.size()}; }

using request_message = http::request<http::string_body>;

/// What a request asks for, and of which host.
struct asked_for {
  std::string host;
  std::string target;
};

/// A client that takes this server for a proxy sends the whole address ("GET http://HOST/PATH").
/// The host in it then counts instead of the header (RFC 9112, 3.2.2).
asked_for what_is_asked(const request_message& from) {
  std::string target = text_of(from.target());
  for (const beast::string_view scheme : {"http://", "https://"}) {
    if (!beast::iequals(beast::string_view(target).substr(0, scheme.size()), scheme)) continue;
    target.erase(0, scheme.size());
    const auto end = std::min(target.find_first_of("/?"), target.size());
    std::string rest = target.substr(end);
    return {target.substr(0, end), rest.starts_with('/') ? rest : '/' + rest};
  }
  return {text_of(from[http::field::host]), target};
}

http_request request_of(const request_message& from) {
  const auto [host, target] = what_is_asked(from);
  const auto question = target.find('?');
  http_request r;
  // A HEAD request is answered as GET, without the body (RFC 9110, 9.3.2).
  r.method = from.method() == http::verb::head ? "GET" : text_of(from.method_string());
  r.path = target.substr(0, question);
  if (question != target.npos) r.query = target.substr(question + 1);
  r.authorization = text_of(from[http::field::authorization]);
  r.foreign = is_foreign(text_of(from["Sec-Fetch-Site"]), text_of(from[http::field::origin]), host);
  r.body = from.body();
  return r;
}

/// The client sends its body when it is told to, or after a pause of its own.
bool waits_to_send_body(const request_message& from) {
  return from.version() >= 11 && beast::iequals(from[http::field::expect], "100-continue");
}

/// RFC 9112, 3.2.
bool lacks_host(const request_message& from) {
  return from.version() >= 11 && from.count(http::field::host) == 0;
}

/// More than one Host is an attempt to be understood in two ways; a browser always sends one.
bool is_meant(const request_message& from, const std::vector<std::string>& names) {
  const auto hosts = from.count(http::field::host);
  const std::string host = what_is_asked(from).host;
  return hosts <= 1 && ((hosts == 0 && host.empty()) || is_own_host(host, names));
}

/// Without characters that a JSON text cannot contain unescaped.
std::string shown_host(const std::string& host) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]";
  const bool is_plain = host.size() < 256 && host.find_first_not_of(plain) == host.npos;
  return is_plain && !host.empty() ? "the host name '" + host + "'" : "this host name";
}

std::string why_not_meant(const request_message& from, const http_address& at) {
  if (from.count(http::field::host) > 1) return "the request has more than one Host";
  return shown_host(what_is_asked(from).host) +
         " is refused, as a protection against DNS rebinding: use an IP address, localhost, this "
         "machine's name or the name in " +
         at.option + (at.host_option.empty() ? "" : ", or allow it with " + at.host_option);
}

/// The name that it listens on, and the names it was given.
std::vector<std::string> names_of(const http_address& at) {
  std::vector<std::string> names = at.hosts;
  names.push_back(host_of(at.address));
  return names;
}

}  // namespace

class http_server::impl : public std::enable_shared_from_this<http_server::impl> {
 public:
  impl(const http_address& at, http_limits limits, http_handler handler)
      : limits_(limits),
        handler_(std::move(handler)),
        at_(at),
        names_(names_of(at)),
        acceptor_(listen_on(io_, at.option, at.address)),
        port_(acceptor_.local_endpoint().port()) {}

  void begin() {
    accept();
    thread_ = std::thread([this] { io_.run(); });
  }
  void end() {
    if (!thread_.joinable()) return;
    io_.stop();
    thread_.join();
    clients_.clear();
  }
  int port() const noexcept { return port_; }
  void wake();
  void after(std::chrono::nanoseconds pause, std::function<void()> then);

 private:
  class client;

  void accept();
  void welcome(tcp::socket socket);
  void make_room();
  bool too_many_wait();

  const http_limits limits_;
  const http_handler handler_;
  const http_address at_;
  const std::vector<std::string> names_;
  net::io_context io_{1};
  tcp::acceptor acceptor_;
  const int port_;
  net::steady_timer pause_{io_};
  std::list<std::shared_ptr<client>> clients_;  ///< the oldest first
  std::size_t streams_ = 0;
  std::thread thread_;
};

/// One connection: a request, and its answer.
class http_server::impl::client : public std::enable_shared_from_this<client> {
 public:
  client(impl& of, tcp::socket socket) : of_(of), socket_(std::move(socket)) {
    parser_.header_limit(longest_head);
    parser_.body_limit(longest_body);
  }

  void read();
  void answer(http_answer what);
  /// Sends the next piece of its stream, unless a piece is on its way.
  void pump();
  bool streams() const noexcept { return stream_ != nullptr; }
  /// Its answer is being made.
  bool waits() const noexcept { return waits_; }
  /// The client has closed the connection. While its answer is made, nothing reads from it, so
  /// nothing else would notice.
  bool has_left() noexcept;
  void close();

 private:
  void heard_head(error_code wrong);
  void read_body();
  void heard(error_code wrong);
  bool refuses(error_code wrong);
  void send_head(const http_answer& what);
  void send_whole(http_answer what, bool endless = false);
  void send_more();
  void watch_for_end();

  impl& of_;
  beast::tcp_stream socket_;
  beast::flat_buffer buffer_{longest_head + longest_body};
  http::request_parser<http::string_body> parser_;
  std::string head_;
  http_answer whole_;
  std::optional<beast::buffers_suffix<std::array<net::const_buffer, 3>>> whole_left_;
  clock::time_point whole_ends_{};
  std::unique_ptr<http_stream> stream_;
  std::shared_ptr<const std::string> piece_;  ///< on its way
  bool busy_ = false;
  bool waits_ = false;
  bool answered_ = false;
  bool only_head_ = false;
  bool closed_ = false;
  std::array<char, 4096> ignored_{};
  std::size_t left_to_ignore_ = most_ignored;
};

void http_server::impl::client::read() {
  socket_.expires_after(of_.limits_.request_patience);
  http::async_read_header(socket_, buffer_, parser_,
                          after_bytes([self = shared_from_this()](error_code wrong, std::size_t) {
                            self->heard_head(wrong);
                          }));
}

/// Answers the request if it is refused, or closes the connection if it is broken.
bool http_server::impl::client::refuses(error_code wrong) {
  if (wrong == http::error::header_limit || wrong == http::error::body_limit ||
      wrong == http::error::buffer_overflow) {
    answer(error_answer(413, "the request is too long"));
  } else if (wrong.category() == make_error_code(http::error::bad_target).category() &&
             wrong != http::error::end_of_stream && wrong != http::error::partial_message) {
    answer(error_answer(400, "this is not an HTTP request"));
  } else if (wrong) {
    close();
  } else if (lacks_host(parser_.get())) {
    answer(error_answer(400, "a request by HTTP/1.1 has a Host"));
  } else if (!is_meant(parser_.get(), of_.names_)) {
    answer(error_answer(421, why_not_meant(parser_.get(), of_.at_)));
  } else {
    return false;
  }
  return true;
}

/// A client that would be refused need not send its body.
void http_server::impl::client::heard_head(error_code wrong) {
  if (closed_ || refuses(wrong)) return;
  if (parser_.is_done()) return heard({});
  if (!waits_to_send_body(parser_.get())) return read_body();
  net::async_write(socket_, net::buffer(go_on.data(), go_on.size()),
                   after_bytes([self = shared_from_this()](error_code failed, std::size_t) {
                     if (failed) return self->close();
                     self->read_body();
                   }));
}

void http_server::impl::client::read_body() {
  http::async_read(socket_, buffer_, parser_,
                   after_bytes([self = shared_from_this()](error_code wrong, std::size_t) {
                     self->heard(wrong);
                   }));
}

void http_server::impl::client::heard(error_code wrong) {
  if (closed_ || refuses(wrong)) return;
  if (of_.too_many_wait())
    return answer(error_answer(503, "too many requests wait for their answers"));
  waits_ = true;
  // The answer may come when this server is gone.
  const auto send = [self = weak_from_this(), server = of_.weak_from_this()](http_answer what) {
    const auto alive = server.lock();
    if (!alive) return;
    auto shared = std::make_shared<http_answer>(std::move(what));
    net::post(alive->io_, turn([self, shared] {
                if (const auto to = self.lock()) to->answer(std::move(*shared));
              }));
  };
  of_.handler_(request_of(parser_.get()),
               http_reply{send, [self = weak_from_this()] { return !self.expired(); }});
}

bool http_server::impl::client::has_left() noexcept {
  char next = 0;
  const auto n =
      ::recv(socket_.socket().native_handle(), &next, sizeof next, MSG_PEEK | MSG_DONTWAIT);
  return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

void http_server::impl::client::answer(http_answer what) {
  if (closed_ || answered_) return;
  answered_ = true;
  waits_ = false;
  socket_.expires_after(of_.limits_.reader_patience);
  only_head_ = parser_.get().method() == http::verb::head;
  const bool endless = only_head_ && what.stream;
  if (endless) what.stream.reset();
  if (what.stream && of_.streams_ >= of_.limits_.streams)
    return send_whole(error_answer(503, "too many viewers"));
  if (!what.stream) return send_whole(std::move(what), endless);
  stream_ = std::move(what.stream);
  ++of_.streams_;
  send_head(what);
}

// The answer to a HEAD request for a stream states no length (RFC 9110, 8.6).
void http_server::impl::client::send_whole(http_answer what, bool endless) {
  whole_ = std::move(what);
  answer_head head = head_of(whole_.status, whole_.type);
  for (const auto& [name, value] : whole_.headers) head.set(name, value);
  const std::string_view shared = whole_.shared ? std::string_view(*whole_.shared) : "";
  if (!endless) head.content_length(shared.size() + whole_.body.size());
  head_ = text_of(head);
  std::array<net::const_buffer, 3> parts{net::buffer(std::as_const(head_)),
                                         net::buffer(shared.data(), shared.size()),
                                         net::buffer(std::as_const(whole_.body))};
  if (only_head_) parts[1] = parts[2] = {};
  whole_left_.emplace(parts);
  whole_ends_ = clock::now() + of_.limits_.answer_patience;
  send_more();
}

/// A client that takes some bytes now and then gets the whole answer, if it takes that in time.
void http_server::impl::client::send_more() {
  const auto now = clock::now();
  if (now >= whole_ends_) return close();
  socket_.expires_at(std::min(now + of_.limits_.reader_patience, whole_ends_));
  socket_.async_write_some(
      *whole_left_, after_bytes([self = shared_from_this()](error_code wrong, std::size_t taken) {
        self->whole_left_->consume(taken);
        if (wrong || net::buffer_size(*self->whole_left_) == 0) return self->close();
        self->send_more();
      }));
}

void http_server::impl::client::send_head(const http_answer& what) {
  busy_ = true;
  head_ = text_of(head_of(what.status, what.type));
  net::async_write(socket_, net::buffer(std::as_const(head_)),
                   after_bytes([self = shared_from_this()](error_code wrong, std::size_t) {
                     self->busy_ = false;
                     if (wrong) return self->close();
                     self->watch_for_end();
                     self->pump();
                   }));
}

/// Notices a client that leaves before the next piece.
void http_server::impl::client::watch_for_end() {
  socket_.expires_never();
  socket_.async_read_some(
      net::buffer(ignored_),
      after_bytes([self = shared_from_this()](error_code wrong, std::size_t read) {
        if (wrong || read > self->left_to_ignore_) return self->close();
        self->left_to_ignore_ -= read;
        if (!self->closed_) self->watch_for_end();
      }));
}

void http_server::impl::client::pump() {
  if (closed_ || busy_ || !stream_) return;
  piece_ = stream_->next();
  if (!piece_) return;
  busy_ = true;
  socket_.expires_after(of_.limits_.reader_patience);
  net::async_write(socket_, net::buffer(*piece_),
                   after_bytes([self = shared_from_this()](error_code wrong, std::size_t) {
                     self->busy_ = false;
                     if (wrong) return self->close();
                     self->pump();
                   }));
}

void http_server::impl::client::close() {
  if (std::exchange(closed_, true)) return;
  if (stream_) --of_.streams_;
  error_code ignored;
  // The sent bytes reach the client even if the client sent more than was read.
  socket_.socket().shutdown(tcp::socket::shutdown_send, ignored);
  socket_.close();
  of_.clients_.remove(shared_from_this());
}

void http_server::impl::accept() {
  acceptor_.async_accept([this](error_code wrong, tcp::socket socket) {
    if (!wrong) {
      welcome(std::move(socket));
      return accept();
    }
    // Without a free descriptor for the next connection, the system would report the error again at
    // once.
    pause_.expires_after(std::chrono::milliseconds(100));
    pause_.async_wait(after_pause([this](error_code) { accept(); }));
  });
}

/// The oldest client is the slowest, unless this program is slow.
void http_server::impl::make_room() {
  const auto may_go = [](const auto& c) { return !c->streams() && !c->waits(); };
  const auto all = std::count_if(clients_.begin(), clients_.end(), may_go);
  if (static_cast<std::size_t>(all) < limits_.connections) return;
  const auto oldest = *std::find_if(clients_.begin(), clients_.end(), may_go);
  oldest->close();
}

/// Clients that have left are searched for only when the limit is reached.
bool http_server::impl::too_many_wait() {
  const auto waits = [](const auto& c) { return c->waits(); };
  const auto full = [&] {
    return static_cast<std::size_t>(std::count_if(clients_.begin(), clients_.end(), waits)) >=
           limits_.connections;
  };
  if (!full()) return false;
  const auto all = clients_;  // a client that is closed leaves the list
  for (const auto& c : all)
    if (c->waits() && c->has_left()) c->close();
  return full();
}

void http_server::impl::welcome(tcp::socket socket) {
  make_room();
  error_code ignored;
  socket.set_option(net::socket_base::send_buffer_size(sent_ahead), ignored);
  clients_.push_back(std::make_shared<client>(*this, std::move(socket)));
  clients_.back()->read();
}

void http_server::impl::wake() {
  net::post(io_, turn([this] {
              const auto all = clients_;  // a client that fails leaves the list
              for (const auto& c : all) c->pump();
            }));
}

void http_server::impl::after(std::chrono::nanoseconds pause, std::function<void()> then) {
  net::post(
      io_, turn([this, pause, then = std::move(then)]() mutable {
        auto timer = std::make_shared<net::steady_timer>(io_, pause);
        timer->async_wait(after_pause([timer, then = std::move(then)](error_code) { then(); }));
      }));
}

http_server::http_server(const http_address& at, http_limits limits, http_handler handler)
    : impl_(std::make_shared<impl>(at, limits, std::move(handler))) {}

http_server::~http_server() { impl_->end(); }

void http_server::start() { impl_->begin(); }
void http_server::stop() { impl_->end(); }

int http_server::port() const noexcept { return impl_->port(); }
void http_server::wake() { impl_->wake(); }
void http_server::after(std::chrono::nanoseconds pause, std::function<void()> then) {
  impl_->after(pause, std::move(then));
}

}  // namespace holdfast::tool
