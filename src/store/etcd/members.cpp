#include "store/etcd/members.hpp"

#include <etcd/etcd.pb.h>

#include <grpc/support/log.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace holdfast::store::etcd {

namespace {

using namespace std::chrono_literals;
using grpc::StatusCode;

std::string contents_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream all;
  all << in.rdbuf();
  return all.str();
}

std::shared_ptr<grpc::ChannelCredentials> credentials_of(const etcd_options& o) {
  if (!o.tls) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions ssl;
  if (!o.ca.empty()) ssl.pem_root_certs = contents_of(o.ca);
  if (!o.cert.empty()) {
    ssl.pem_cert_chain = contents_of(o.cert);
    ssl.pem_private_key = contents_of(o.key);
  }
  return grpc::SslCredentials(ssl);
}

// The back-off in gRPC also limits the time to make a connection. A machine that is busy, or far
// away with TLS, takes more than a tenth of a second, however short the time for a command is. The
// next attempt comes within a second anyway.
int time_to_connect_ms(const etcd_options& o) {
  return static_cast<int>(std::clamp(o.connect_timeout, 100ms, 1'000ms).count());
}

// A member that has come back is found soon, and pings detect a silent one.
grpc::ChannelArguments arguments_of(const etcd_options& o) {
  grpc::ChannelArguments a;
  a.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  a.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, time_to_connect_ms(o));
  a.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
  a.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  a.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
  a.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // one session, one connection
  a.SetMaxReceiveMessageSize(-1);                   // for a long queue, or a large fleet's names
  if (!o.server_name.empty()) a.SetSslTargetNameOverride(o.server_name);
  return a;
}

// gRPC's log belongs to the whole program, and this library prints nothing.
void be_silent() {
  if (std::getenv("GRPC_VERBOSITY") == nullptr) {
    gpr_set_log_verbosity(static_cast<gpr_log_severity>(GPR_LOG_SEVERITY_ERROR + 1));
  }
}

bool says(const grpc::Status& s, const char* what) {
  return s.error_message().find(what) != std::string::npos;
}

/// How long gRPC may wait for an answer before the clock is read again: a test's clock may jump.
constexpr auto look_at_clock = std::chrono::nanoseconds(100ms);
/// When the time is over, the answer may have arrived all the same, if this process was stopped:
/// gRPC gets this long to find it.
constexpr auto last_look = std::chrono::nanoseconds(20ms);

gpr_timespec from_now(std::chrono::nanoseconds d) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(d.count(), GPR_TIMESPAN));
}

/// One call, whose answer the calling thread itself waits for: no other thread has to wake it.
struct pending {
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  grpc::Status status;

  // The request and the answer belong to the caller, so this returns only when gRPC no longer uses
  // them. For a request sent in time, looks for the answer once more after the deadline, even if
  // this process was stopped before the wait.
  grpc::Status wait(clock& on, boot_time asked, boot_time until) {
    void* tag = nullptr;
    bool ok = false;
    auto what = grpc::CompletionQueue::TIMEOUT;
    const auto late = asked < until ? last_look : std::chrono::nanoseconds{};
    for (bool over = false; what == grpc::CompletionQueue::TIMEOUT && !over;) {
      over = on.now() >= until;
      const auto longest = over ? late : std::min(on.sleep_for(until), look_at_clock);
      what = queue.AsyncNext(&tag, &ok, from_now(longest));
    }
    if (what == grpc::CompletionQueue::TIMEOUT) context.TryCancel();
    queue.Shutdown();
    while (queue.Next(&tag, &ok)) {
    }
    return status;
  }
};

}  // namespace

namespace {

// gRPC's threads for callbacks end with the last channel and start with the next one; if the two
// coincide, they end twice (1.51). One channel that leads nowhere, and is never destroyed, keeps
// the threads. It has no credentials, so each call on it fails at once.
void keep_threads() {
  static auto* const nowhere = new generic_stub(grpc::CreateChannel("nowhere", nullptr));
  static auto* const request = new wire::StatusRequest();
  static auto* const answer = new wire::StatusResponse();
  static std::once_flag once;
  std::call_once(once, [] {
    static auto* const context = new grpc::ClientContext;
    nowhere->UnaryCall(context, method::status, {}, request, answer, [](const grpc::Status&) {});
  });
}

}  // namespace

members::members(const etcd_options& o) : options_(o) {
  be_silent();
  keep_threads();
  const auto credentials = credentials_of(o);
  for (const auto& host : o.hosts) {
    stubs_.emplace_back(grpc::CreateCustomChannel(host, credentials, arguments_of(o)));
  }
}

void members::go_on_from(std::size_t member) noexcept {
  (void)current_.compare_exchange_strong(member, (member + 1) % stubs_.size());
}

// An answer in the first half of that time may have been on its way when the member fell silent.
void members::leave_silent(std::size_t member, boot_time asked, boot_time until) noexcept {
  go_on_from(member);
  const boot_time since = asked + (until - asked) / 2;
  if (stubs_.size() > 1) is_silent_(member, since);
}

grpc::Status members::ask(std::size_t member, const char* method, const std::string& token,
                          const message& request, message& answer, boot_time until) {
  pending call;
  if (!token.empty()) call.context.AddMetadata("token", token);
  const auto reader = stub(member).PrepareUnaryCall(&call.context, method, request, &call.queue);
  const boot_time asked = options_.clock->now();
  reader->StartCall();
  reader->Finish(&answer, &call.status, &call);
  return call.wait(*options_.clock, asked, until);
}

result<std::string> members::token(boot_time until) {
  if (options_.user.empty()) return std::string();
  const std::lock_guard guard{mutex_};
  if (!token_.empty()) return token_;
  wire::AuthenticateRequest request;
  request.set_name(options_.user);
  request.set_password(options_.password);
  wire::AuthenticateResponse answer;
  const auto member = now_with();
  const boot_time sent = options_.clock->now();
  const auto s = ask(member, method::authenticate, {}, request, answer, until);
  if (!s.ok()) {
    if (is_away(s)) was_silent(s) ? leave_silent(member, sent, until) : go_on_from(member);
    return explain(s, options_);
  }
  return token_ = answer.token();
}

void members::forget_token(const std::string& which) {
  const std::lock_guard guard{mutex_};
  if (token_ == which) token_.clear();
}

bool is_stale_token(const grpc::Status& s) {
  return s.error_code() == StatusCode::UNAUTHENTICATED || says(s, "invalid auth token") ||
         says(s, "auth store: revision in header is old") ||
         says(s, "revision of auth store is old");
}

bool is_away(const grpc::Status& s) {
  switch (s.error_code()) {
    case StatusCode::UNAVAILABLE:
    case StatusCode::DEADLINE_EXCEEDED:
    case StatusCode::CANCELLED:
    case StatusCode::INTERNAL:
    case StatusCode::UNKNOWN:
    case StatusCode::ABORTED:
      return true;
    default:
      return false;
  }
}

bool was_silent(const grpc::Status& s) {
  return s.error_code() == StatusCode::DEADLINE_EXCEEDED || s.error_code() == StatusCode::CANCELLED;
}

namespace {

failure refused(const std::string& said) {
  return {errc::unsupported,
          "the servers refuse such a request (" + said +
              "): are their limits (--max-request-bytes, --max-txn-ops) below etcd's own?"};
}

/// gRPC and etcd report several limits by this one code.
failure exhausted(const grpc::Status& s, const std::string& said) {
  if (says(s, "database space exceeded")) {
    return {errc::no_space,
            "the servers accept no more data (" + said + "): see etcdctl alarm list"};
  }
  // The server's gRPC has thrown the request away unread. The client accepts answers of any size.
  if (says(s, "received message larger than max")) return refused(said);
  if (says(s, "too many requests")) {
    return {errc::unavailable, "the servers are overloaded for now (" + said + ")"};
  }
  return {errc::unavailable, "the servers have reached a limit (" + said + ")"};
}

}  // namespace

failure explain(const grpc::Status& s, const etcd_options& o) {
  const std::string said = s.error_message().empty() ? "no answer" : s.error_message();
  if (says(s, "user name is empty")) {
    return {errc::not_permitted,
            "the servers ask for a user (" + said + "): write etcd://user:password@h1,h2/locks"};
  }
  if (says(s, "authentication failed")) {
    return {errc::not_permitted, "the servers refuse '" + o.user + "' (" + said + ")"};
  }
  if (says(s, "authentication is not enabled")) {
    return {errc::invalid_argument, "the servers know no users (" + said +
                                        "): leave user and password out, or enable it there"};
  }
  switch (s.error_code()) {
    case StatusCode::NOT_FOUND:
      return {errc::lost, "the session has ended (" + said + ")"};
    case StatusCode::PERMISSION_DENIED:
    case StatusCode::UNAUTHENTICATED:
      return {errc::not_permitted, "not allowed for '" + o.user + "' (" + said +
                                       "): it needs a role that reads and writes " + o.base + "/"};
    case StatusCode::UNIMPLEMENTED:
      return {errc::unsupported, "this is no etcd 3.4 or later (" + said + ")"};
    case StatusCode::RESOURCE_EXHAUSTED:
      return exhausted(s, said);
    case StatusCode::INVALID_ARGUMENT:
      return refused(said);
    default:
      if (!is_away(s)) return {errc::unavailable, "the server answered: " + said};
      return {errc::unavailable, "no answer (" + said + "): is a majority of the servers up?"};
  }
}

}  // namespace holdfast::store::etcd
