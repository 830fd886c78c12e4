#include "store/redis/node.hpp"

#include <algorithm>
#include <iterator>

#include "base/words.hpp"
#include "store/redis/commands.hpp"
#include "store/redis/errors.hpp"
#include "store/redis/scripts.hpp"

namespace holdfast::store::redis {

namespace {

constexpr std::string_view too_late = "HOLDFAST_LATE ";
/// The server's clock was set, or another session has raised the time that commands have to be
/// after: one more attempt is usually enough to learn it. More are needed only if it happens again
/// meanwhile, or if this thread gets no processor time.
constexpr int most_attempts = 4;

bool has_no_script(const resp_value& r) { return r.is_error() && r.text.starts_with("NOSCRIPT"); }

// In both cases the server did not carry out the command.
bool was_refused(const resp_value& r) {
  return has_no_script(r) || (r.is_error() && r.text.starts_with(too_late));
}

bool any_refused(std::span<const resp_value> replies) {
  return std::any_of(replies.begin(), replies.end(), was_refused);
}

/// The replies to each message.
std::vector<std::span<resp_value>> by_message(std::span<const message> all,
                                              std::vector<resp_value>& replies) {
  std::vector<std::span<resp_value>> of;
  of.reserve(all.size());
  std::size_t at = 0;
  for (const auto& m : all) {
    of.push_back(std::span(replies).subspan(at, m.replies));
    at += m.replies;
  }
  return of;
}

}  // namespace

// Reads "HOLDFAST_LATE now after", or an answer of permits.lua.
void node::learn(const resp_value& reply, std::uint64_t over) noexcept {
  if (const auto now = server_time_in(reply)) link_.saw_time(*now, over);
  if (!reply.is_error() || !reply.text.starts_with(too_late)) return;
  std::int64_t now = 0, after = 0;
  auto said = std::string_view(reply.text).substr(too_late.size());
  if (!base::take_number(said, now)) return;
  link_.saw_time(now, over);
  if (base::take_number(said, after)) link_.saw_after(after);
}

// Data of other programs may look like a time: only scripts' replies are trusted. A replica answers
// a question and refuses the writes behind it. It is left before anything is sent again.
void node::learn(std::span<const message> all, const answer& got) {
  std::size_t end = 0;
  for (const auto& m : all) {
    end += m.replies;
    if (m.stamped) learn(got.replies[end - 1], got.over);
  }
  const auto ends = std::find_if(got.replies.begin(), got.replies.end(), [](const resp_value& r) {
    return r.is_error() && ends_connection(r.text);
  });
  if (ends != got.replies.end()) link_.renew_connection(server_says(ends->text), got.over);
}

// Loads the scripts again into a server that was restarted, or whose scripts were flushed. Commands
// that came too late by the server's clock get a new time limit. Repeats only the refused messages,
// and the closing one behind them: all others have been carried out.
result<node::answer> node::ask_refused_again(std::span<const message> all, answer first,
                                             boot_time deadline) {
  const auto parts = by_message(all, first.replies);
  std::string scripts;
  std::vector<message> again;
  std::vector<std::span<resp_value>> places;
  if (std::any_of(first.replies.begin(), first.replies.end(), has_no_script)) {
    const auto known = scripts_of(options_.dialect, publication_in(options_.topology));
    for (const script& s : known) append_command(scripts, {"SCRIPT", "LOAD", s.text});
    again.push_back({scripts, known.size()});
  }
  const std::size_t loaded = again.empty() ? 0 : again.front().replies;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].closing && !any_refused(parts[i])) continue;
    again.push_back(all[i]);
    places.push_back(parts[i]);
  }
  auto second = link_.ask(again, deadline);
  if (!second) {
    auto& unknown = second.error().outcome_unknown;
    unknown = unknown || first.repeated || places.size() < all.size();
    return second;
  }
  learn(again, *second);
  auto from = second->replies.begin() + static_cast<std::ptrdiff_t>(loaded);
  for (const auto& place : places) {
    for (auto& reply : place) reply = std::move(*from++);
  }
  first.repeated = first.repeated || second->repeated;
  first.over = second->over;
  return first;
}

// A server that refuses at once is not silent: no request waits for it.
void node::note_silence(bool answered, boot_time deadline) noexcept {
  if (answered) {
    if (is_silent()) silent_until_ = 0;
    return;
  }
  const auto patience = std::min(options_.command_timeout, options_.connect_timeout) / 2;
  if (boot_clock::now() < deadline - options_.command_timeout + patience) return;
  const boot_time until = saturated_add(clock_.now(), options_.command_timeout / 4);
  silent_until_ = until.time_since_epoch().count();
}

result<node::answer> node::ask_server(std::span<const message> all) {
  const boot_time deadline = boot_clock::now() + options_.command_timeout;
  auto got = link_.ask(all, deadline);
  note_silence(got.ok(), deadline);
  if (got) learn(all, *got);
  for (int attempt = 1; got; ++attempt) {
    const bool again = any_refused(got->replies) && boot_clock::now() < deadline;
    if (!again || attempt == most_attempts) break;
    got = ask_refused_again(all, std::move(*got), deadline);
  }
  return got;
}

result<node::answer> node::ask(std::span<const message> all, bool durable) {
  if (durable && options_.ack != acknowledgement::any) return ask_replicas_too(all);
  return ask_server(all);
}

// ---- replicas

// WAIT blocks its connection. So one WAIT runs at a time, for all requests that came during the
// last one: missing replicas delay all of them together by ack_timeout, not each one after the
// other.
result<node::answer> node::ask_replicas_too(std::span<const message> all) {
  part mine{all};
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

// Each waiting thread gets an outcome in any case.
void node::send_together(const std::vector<part*>& parts) noexcept try {
  auto shared = settle_together(parts);
  for (part* p : parts) {
    if (!shared)
      p->outcome = shared.error();
    else
      take_out(shared->replies, *p, *shared);
  }
} catch (...) {
  for (part* p : parts) p->outcome = without_memory(true);
}

// Returns the replies of all parts, in reverse order.
result<node::answer> node::settle_together(const std::vector<part*>& parts) {
  const auto wanted = static_cast<std::int64_t>(options_.replicas_wanted());
  std::string wait;
  append_command(wait,
                 {"WAIT", std::to_string(wanted), std::to_string(options_.ack_timeout.count())});
  std::vector<message> all;
  for (const part* p : parts) all.insert(all.end(), p->all.begin(), p->all.end());
  all.push_back({.bytes = wait, .closing = true});
  auto got = ask_server(all);
  if (!got) return got;
  answer& said = *got;
  if (said.replies.back().text.find("NOPERM") != std::string::npos) {
    failure f = server_says(said.replies.back().text);
    f.outcome_unknown = true;
    return f;
  }
  const resp_value& counted = said.replies.back();
  said.replicas = {counted.integer, wanted};  // 0 if it is an error
  if (counted.is_error()) said.replicas.refusal = counted.text;
  // The replicas may follow another primary by now, which the sentinels know.
  if (options_.locate && !said.replicas.enough()) {
    if (options_.doubt) options_.doubt();
    link_.renew_connection(
        {errc::unavailable, counted.is_error() ? "the server refused to wait for its replicas"
                                               : "too few replicas follow the server; another "
                                                 "may be the primary by now"},
        said.over);
  }
  said.replies.pop_back();
  std::reverse(said.replies.begin(), said.replies.end());
  return got;
}

void node::take_out(std::vector<resp_value>& all, part& p, const answer& shared) {
  answer mine{{}, shared.repeated, shared.over, shared.replicas};
  std::ptrdiff_t count = 0;
  for (const auto& m : p.all) count += static_cast<std::ptrdiff_t>(m.replies);
  const auto first = all.end() - count;
  std::move(std::make_reverse_iterator(all.end()), std::make_reverse_iterator(first),
            std::back_inserter(mine.replies));
  all.erase(first, all.end());
  p.outcome = std::move(mine);
}

}  // namespace holdfast::store::redis
