#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cerrno>
#include <cstdint>
#include <mutex>

#include "store/redis/transport.hpp"

namespace holdfast::store::redis {

namespace {

using context = std::unique_ptr<SSL_CTX, decltype([](SSL_CTX* c) { SSL_CTX_free(c); })>;
using stream = std::unique_ptr<SSL, decltype([](SSL* s) { SSL_free(s); })>;

std::string openssl_says() {
  std::string text;
  while (const auto code = ERR_get_error()) {
    const char* const reason = ERR_reason_error_string(code);
    if (reason != nullptr) text += (text.empty() ? "" : ", ") + std::string(reason);
  }
  return text.empty() ? "no reason given" : text;
}

// OpenSSL's own socket BIO would raise SIGPIPE in the user's program.
int socket_of(BIO* b) { return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(b))); }

int bio_write(BIO* b, const char* bytes, int size) {
  BIO_clear_retry_flags(b);
  const auto n = ::send(socket_of(b), bytes, static_cast<std::size_t>(size), MSG_NOSIGNAL);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(b);
  return static_cast<int>(n);
}

int bio_read(BIO* b, char* bytes, int size) {
  BIO_clear_retry_flags(b);
  const auto n = ::recv(socket_of(b), bytes, static_cast<std::size_t>(size), 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(b);
  return static_cast<int>(n);
}

BIO* make_bio(int fd) {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* const m =
        BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "holdfast socket");
    BIO_meth_set_write(m, bio_write);
    BIO_meth_set_read(m, bio_read);
    BIO_meth_set_ctrl(
        m, [](BIO*, int command, long, void*) -> long { return command == BIO_CTRL_FLUSH; });
    return m;
  }();
  BIO* const b = BIO_new(method);
  // The BIO's data is a pointer; a descriptor fits into it.
  BIO_set_data(b, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)));
  BIO_set_init(b, 1);
  return b;
}

/// OpenSSL's stream must not be used by two threads at once. So a mutex guards each call; none of
/// the calls blocks.
class tls_transport final : public transport {
 public:
  tls_transport(int fd, context c, stream s)
      : fd_(fd), context_(std::move(c)), stream_(std::move(s)) {}
  ~tls_transport() override {
    stream_.reset();
    ::close(fd_);
  }
  tls_transport(const tls_transport&) = delete;

  io_result read(std::span<char> into, bool wait) override {
    auto r = attempt(
        [&](SSL* s, std::size_t& n) { return SSL_read_ex(s, into.data(), into.size(), &n); });
    if (r.status != io::again || !wait) return r;
    (void)wait_ready(fd_, POLLIN, {boot_clock::now() + std::chrono::milliseconds(100)});
    return attempt(
        [&](SSL* s, std::size_t& n) { return SSL_read_ex(s, into.data(), into.size(), &n); });
  }

  io_result write(std::string_view bytes) override {
    return attempt(
        [&](SSL* s, std::size_t& n) { return SSL_write_ex(s, bytes.data(), bytes.size(), &n); });
  }

  // A part of a record does not count: it cannot be read before the rest arrives.
  bool pending() const override {
    const std::lock_guard guard{mutex_};
    return SSL_pending(stream_.get()) > 0;
  }
  int fd() const noexcept override { return fd_; }
  void shut_down() noexcept override { ::shutdown(fd_, SHUT_RDWR); }
  std::string problem() const override {
    const std::lock_guard guard{mutex_};
    return problem_;
  }

 private:
  template <class Call>
  io_result attempt(Call call) {
    const std::lock_guard guard{mutex_};
    ERR_clear_error();
    std::size_t bytes = 0;
    const int ok = call(stream_.get(), bytes);
    if (ok == 1) return {io::done, bytes};
    switch (SSL_get_error(stream_.get(), ok)) {
      case SSL_ERROR_WANT_READ:
      case SSL_ERROR_WANT_WRITE:
        return {io::again};
      case SSL_ERROR_ZERO_RETURN:
        return {io::closed};
      default:
        break;
    }
    problem_ = openssl_says();
    return {io::failed};
  }

  int fd_;
  context context_;
  stream stream_;
  mutable std::mutex mutex_;
  std::string problem_;
};

failure wrong_file(const std::string& what, const std::string& path) {
  return {errc::invalid_argument, "cannot use the " + what + " " + path + ": " + openssl_says()};
}

result<context> make_context(const redis_options& o) {
  context c(SSL_CTX_new(TLS_client_method()));
  if (!c) return failure{errc::internal, "TLS cannot be set up: " + openssl_says()};
  SSL_CTX_set_min_proto_version(c.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(c.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_mode(c.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_AUTO_RETRY);
  const bool trusted = o.ca.empty() ? SSL_CTX_set_default_verify_paths(c.get()) == 1
                                    : SSL_CTX_load_verify_file(c.get(), o.ca.c_str()) == 1;
  if (!trusted) return wrong_file("authorities in", o.ca);
  if (o.cert.empty() != o.key.empty()) {
    return failure{errc::invalid_argument, "a client certificate needs both options, cert and key"};
  }
  if (o.cert.empty()) return c;
  // Otherwise OpenSSL asks for a passphrase at the terminal, and waits there without a limit.
  SSL_CTX_set_default_passwd_cb(c.get(), [](char*, int, int, void*) { return -1; });
  if (SSL_CTX_use_certificate_chain_file(c.get(), o.cert.c_str()) != 1)
    return wrong_file("certificate", o.cert);
  if (SSL_CTX_use_PrivateKey_file(c.get(), o.key.c_str(), SSL_FILETYPE_PEM) != 1)
    return wrong_file("key (one with a passphrase does not work)", o.key);
  return c;
}

// The certificate must be for this very host, whether it is a name or an address.
bool expect_host(SSL* s, const std::string& host) {
  unsigned char address[16];
  const bool is_address = ::inet_pton(AF_INET, host.c_str(), address) == 1 ||
                          ::inet_pton(AF_INET6, host.c_str(), address) == 1;
  if (is_address) return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(s), host.c_str()) == 1;
  return SSL_set1_host(s, host.c_str()) == 1 && SSL_set_tlsext_host_name(s, host.c_str()) == 1;
}

failure no_handshake(SSL* s, const redis_options& o, int why) {
  const std::string where = o.host + ":" + std::to_string(o.port);
  if (const long bad = SSL_get_verify_result(s); bad != X509_V_OK) {
    return {errc::not_permitted,
            "the certificate of " + where + " is refused: " + X509_verify_cert_error_string(bad) +
                "; name its authority with ?ca=FILE, or the host it is for with ?server_name="};
  }
  const bool closed = why == SSL_ERROR_SYSCALL || why == SSL_ERROR_ZERO_RETURN;
  const bool silent = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
  const std::string said = silent   ? "no answer to the handshake in time"
                           : closed ? "the connection was closed"
                                    : openssl_says();
  return {errc::unavailable,
          "no TLS with " + where + ": " + said +
              "; if the server speaks plain Redis there, write redis:// instead of rediss://"};
}

}  // namespace

result<std::unique_ptr<transport>> start_tls(int fd, const redis_options& o, const patience& p) {
  auto c = make_context(o);
  if (!c) return ::close(fd), std::move(c.error());
  stream s(SSL_new(c->get()));
  const std::string& host = o.server_name.empty() ? o.host : o.server_name;
  if (!s || !expect_host(s.get(), host)) {
    return ::close(fd),
           failure{errc::invalid_argument, "TLS cannot be set up for the host '" + host + "'"};
  }
  BIO* const bio = make_bio(fd);
  SSL_set_bio(s.get(), bio, bio);
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  ERR_clear_error();
  while (true) {
    const int ok = SSL_connect(s.get());
    if (ok == 1) break;
    const int why = SSL_get_error(s.get(), ok);
    const bool again = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
    if (again && wait_ready(fd, why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, p)) continue;
    auto f = no_handshake(s.get(), o, why);
    s.reset();
    return ::close(fd), std::move(f);
  }
  return std::unique_ptr<transport>(
      std::make_unique<tls_transport>(fd, std::move(*c), std::move(s)));
}

}  // namespace holdfast::store::redis
