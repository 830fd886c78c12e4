#include "store/redis/node.hpp"

#include <algorithm>
#include <iterator>

#include "store/redis/errors.hpp"
#include "store/redis/scripts.hpp"

namespace holdfast::store::redis {

namespace {

bool has_no_script(const std::vector<resp_value>& replies) {
  return std::any_of(replies.begin(), replies.end(), [](const resp_value& r) {
    return r.is_error() && r.text.starts_with("NOSCRIPT");
  });
}

}  // namespace

// A server that was restarted, or whose scripts were flushed, is told them again.
result<link::answer> node::ask_server(std::string_view commands, std::size_t replies) {
  auto got = link_.ask(commands, replies);
  if (got && has_no_script(got->replies)) {
    std::string again;
    const auto scripts = scripts_of(options_.dialect);
    for (const script& s : scripts) append_command(again, {"SCRIPT", "LOAD", s.text});
    again += commands;
    got = link_.ask(again, replies + scripts.size());
    if (got)
      got->replies.erase(got->replies.begin(),
                         got->replies.begin() + static_cast<std::ptrdiff_t>(scripts.size()));
  }
  if (!got) return got;
  const resp_value& first = got->replies.front();
  if (first.is_error() && ends_connection(first.text)) {
    link_.renew_connection(server_says(first.text));
  }
  return got;
}

result<node::answer> node::ask(std::string_view commands, std::size_t replies, bool durable) {
  if (durable && options_.ack != acknowledgement::any) return ask_replicas_too(commands, replies);
  auto got = ask_server(commands, replies);
  if (!got) return std::move(got.error());
  return answer{std::move(got->replies), got->repeated, {}};
}

// ---- replicas
// ------------------------------------------------------------------------------------

// WAIT holds up its connection. So one is under way at a time, for all who came while the last one
// was: replicas that are away cost everybody ack_timeout, not each behind the other.
result<node::answer> node::ask_replicas_too(std::string_view commands, std::size_t replies) {
  part mine{commands, replies};
  std::unique_lock lock{mutex_};
  parts_.push_back(&mine);
  changed_.wait(lock, [&] { return mine.over || !sending_; });
  if (!mine.over) {
    sending_ = true;
    std::vector<part*> together;
    together.swap(parts_);
    lock.unlock();
    send_together(together);
    lock.lock();
    sending_ = false;
    for (part* p : together) p->over = true;
    changed_.notify_all();
  }
  return std::move(mine.outcome);
}

void node::send_together(const std::vector<part*>& parts) {
  auto shared = settle_together(parts);
  for (part* p : parts) {
    if (!shared)
      p->outcome = shared.error();
    else
      take_out(shared->replies, *p, *shared);
  }
}

// The replies of all parts, the last one first. ROLE comes along, so that new replicas are noticed.
result<node::answer> node::settle_together(const std::vector<part*>& parts) {
  if (replicas_ == 0) {
    if (auto known = ask_role(); !known) return std::move(known.error());
  }
  const auto wanted = replicas_wanted();
  std::string bytes;
  std::size_t count = 2;
  for (const part* p : parts) bytes += p->commands, count += p->replies;
  append_command(bytes,
                 {"WAIT", std::to_string(wanted), std::to_string(options_.ack_timeout.count())});
  append_command(bytes, {"ROLE"});
  auto got = ask_server(bytes, count);
  if (!got) return std::move(got.error());
  learn_replicas(got->replies.back());
  answer all{std::move(got->replies), got->repeated, {}};
  all.replicas = {all.replies[count - 2].integer, wanted};  // 0 if it is an error
  // They may follow another by now, which the sentinels know.
  if (options_.locate && !all.replicas.enough()) {
    link_.renew_connection({errc::unavailable,
                            "too few replicas follow the server; another may be "
                            "the primary by now"});
  }
  all.replies.resize(count - 2);
  std::reverse(all.replies.begin(), all.replies.end());
  return all;
}

void node::take_out(std::vector<resp_value>& all, part& p, const answer& shared) {
  answer mine{{}, shared.repeated, shared.replicas};
  const auto first = all.end() - static_cast<std::ptrdiff_t>(p.replies);
  std::move(std::make_reverse_iterator(all.end()), std::make_reverse_iterator(first),
            std::back_inserter(mine.replies));
  all.erase(first, all.end());
  p.outcome = std::move(mine);
}

// The primary and its replicas are copies of the same; without any replica there is nothing to rely
// on.
std::int64_t node::replicas_wanted() const noexcept {
  const std::int64_t replicas = replicas_;
  return std::max<std::int64_t>(
      1, options_.ack == acknowledgement::all ? replicas : (replicas + 1) / 2);
}

status node::ask_role() {
  std::string bytes;
  append_command(bytes, {"ROLE"});
  const auto role = ask_server(bytes, 1);
  if (!role) return role.error();
  if (role->replies.front().is_error()) return server_says(role->replies.front().text);
  learn_replicas(role->replies.front());
  return done{};
}

void node::learn_replicas(const resp_value& role) noexcept {
  if (role.items.size() < 3 || role.items[0].text != "master") return;
  replicas_ =
      std::max<std::int64_t>(replicas_, static_cast<std::int64_t>(role.items[2].items.size()));
}

}  // namespace holdfast::store::redis
