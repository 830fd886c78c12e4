#include "store/etcd/channel.hpp"

#include <unistd.h>

#include <algorithm>

#include "store/etcd/members.hpp"

namespace holdfast::store::etcd {

status channel::usable_here() {
  static std::atomic<pid_t> first{0};
  pid_t none = 0;
  if (first.compare_exchange_strong(none, ::getpid()) || none == ::getpid()) return done{};
  return failure{errc::forked,
                 "gRPC was in use before fork(), and does not work in the child: exec() another "
                 "program, or open etcd after the fork only"};
}

channel::channel(const etcd_options& o) : members_(std::make_unique<members>(o)) {}
channel::~channel() = default;

const etcd_options& channel::options() const noexcept { return members_->options(); }

result<bool> channel::call(const char* method, const message& request, message& answer) {
  return call(method, request, answer, options().command_timeout);
}

result<bool> channel::call(const char* what, const message& request, message& answer,
                           std::chrono::nanoseconds within) {
  const auto& o = options();
  const boot_time until = saturated_add(o.clock->now(), within);
  bool repeated = false;
  bool fresh_token = false;
  const auto unknown_if_repeated = [&](failure f) {
    f.outcome_unknown = repeated && what != method::range;
    return f;
  };
  for (auto left = std::max<std::size_t>(o.hosts.size(), 2);;) {
    const auto now = o.clock->now();
    const boot_time part = now + (until - now) / static_cast<std::int64_t>(left);
    const auto token = members_->token(part);
    const auto member = members_->now_with();
    grpc::Status s;
    if (token) {
      s = members_->ask(member, what, *token, request, answer, part);
      if (s.ok()) return repeated;
      if (!o.user.empty() && is_stale_token(s) && !fresh_token) {
        members_->forget_token(*token);
        fresh_token = true;
        continue;
      }
      if (!is_away(s)) return unknown_if_repeated(explain(s, o));
      repeated = true;
      was_silent(s) ? members_->leave_silent(member, now, part) : members_->go_on_from(member);
    } else if (token.error().code != errc::unavailable) {
      return unknown_if_repeated(token.error());
    }
    if (--left > 0 && o.clock->now() < until) continue;
    return unknown_if_repeated(token ? explain(s, o) : token.error());
  }
}

}  // namespace holdfast::store::etcd
