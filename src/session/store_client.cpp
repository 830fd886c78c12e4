#include "session/store_client.hpp"

#include <unistd.h>
#include <algorithm>
#include <deque>
#include <optional>

#include "base/names.hpp"
#include "session/no_memory.hpp"

namespace holdfast::engine {

namespace {

std::atomic<std::uint64_t> handed_over{0};

std::string one_word(std::string_view text) {
  std::string word;
  for (const char c : text) word += c > ' ' && c < 0x7F ? c : '_';
  return word.empty() ? "-" : word.substr(0, 64);
}

std::string program_name() {
  char path[4096];
  const auto length = readlink("/proc/self/exe", path, sizeof path);
  const std::string_view whole(path, length > 0 ? static_cast<std::size_t>(length) : 0);
  return one_word(whole.substr(whole.rfind('/') + 1));
}

std::string describe_process() {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  return one_word(host) + ' ' + std::to_string(getpid()) + ' ' + program_name();
}

/// A wait that still has this much time is longer than any call of a driver.
constexpr std::chrono::seconds longest_call{60};
/// The number of attempts to refund tokens, which also come back with time.
constexpr int refunds_tried = 3;

/// Copies of the caller's strings, because the caller may leave.
struct kept_words {
  std::string name, peer, note;

  template <class Command>
  kept_words(std::string_view n, const Command& c) : name(n), peer(c.peer), note(c.note) {}
  template <class Command>
  Command in(Command c) const {
    c.peer = peer;
    c.note = note;
    return c;
  }
};

struct kept_batch {
  explicit kept_batch(std::span<const store::named_command> batch) {
    for (const auto& b : batch) words.emplace_back(b.name, b.command);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      all.push_back({words[i].name, words[i].in(batch[i].command)});
    }
  }
  std::deque<kept_words> words;
  std::vector<store::named_command> all;
};

failure left_at_deadline() {
  return {errc::unavailable,
          "the store had not answered in time: is it stopped, or the network cut?", true};
}

bool took(const store::rate_reply& reply) { return reply.outcome == store::rate_outcome::granted; }

struct kept_take {
  explicit kept_take(const store::rate_command& c) : command(c) {
    for (const auto& b : c.buckets) ids.emplace_back(b.id);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      buckets.push_back({ids[i], c.buckets[i].rule, c.buckets[i].due_at});
    }
    command.buckets = buckets;
  }
  kept_take(const kept_take&) = delete;
  kept_take& operator=(const kept_take&) = delete;
  /// The command that refunds what the take got.
  const store::rate_command& granted(const store::rate_reply& by) {
    store::keep_due(buckets, by);
    return command;
  }
  store::rate_command command;

 private:
  std::deque<std::string> ids;
  std::vector<store::bucket_choice> buckets;
};

template <class Reply>
bool is_answer(const result<Reply>& reply) {
  return bool(reply);
}
template <class Reply>
bool is_answer(const std::vector<result<Reply>>& replies) {
  return std::any_of(replies.begin(), replies.end(), [](const auto& r) { return bool(r); });
}

/// A failed answer of the same type, if there was no memory for the call.
template <class T>
result<T> for_want_of_memory(result<T>) {
  return without_memory(true);
}
template <class T>
std::vector<result<T>> for_want_of_memory(std::vector<result<T>> all) {
  for (auto& one : all) one = without_memory(true);
  return all;
}

/// Takes an answer of the store, as seen by this thread: any answer ends an outage.
template <class Reply>
Reply heard(outage& of, Reply reply) {
  store_client::observe();
  if (is_answer(reply)) of.answered();
  return reply;
}

}  // namespace

store_client::store_client(std::unique_ptr<store::session_store> store, session_options options)
    : options_(std::move(options)),
      clock_(options_.clock ? options_.clock.get() : &real_clock()),
      note_(describe_process()),
      store_(options_.decorate ? options_.decorate(std::move(store)) : std::move(store)),
      url_(store_->url()),
      posting_(clock_ == &real_clock() ? dynamic_cast<store::posting_store*>(store_.get())
                                       : nullptr),
      dispatcher_(std::make_unique<engine::dispatcher>(store_->inbox(), *clock_)),
      callers_(std::make_unique<engine::callers>()) {}

store_client::~store_client() {
  if (!forked()) return;
  (void)callers_.release();
  (void)dispatcher_.release();
  (void)store_.release();
}

status store_client::usable() const {
  if (!forked()) return done{};
  return failure{errc::forked,
                 "this session belongs to the parent process: call holdfast::open() after fork()"};
}

status store_client::begin(std::size_t commands) {
  if (auto u = usable(); !u) return u;
  operations_.fetch_add(commands, std::memory_order_relaxed);
  publish();
  return done{};
}

// Whether the caller may have to leave a call. A driver that waits for an unresponsive server
// cannot be interrupted, so another thread makes the call. A store inside this process never hangs;
// and with a clock of their own, tests wait for events.
bool store_client::may_be_left() const noexcept {
  const boot_time limit = call_limit::present();
  return limit != forever && can().several_processes && clock_ == &real_clock() &&
         limit - now() < longest_call;
}

template <class Call, class Undo>
std::invoke_result_t<Call> store_client::in_time(const store::owner_id& owner, const Call& call,
                                                 std::invoke_result_t<Call> left,
                                                 const Undo& undo) {
  using answer = std::invoke_result_t<Call>;
  struct outcome {
    std::mutex mutex;
    std::condition_variable here;
    std::optional<answer> reply;
    bool left = false;
    bool failed = false;
  };
  const auto to = std::make_shared<outcome>();
  const auto ask = [to, call, undo]() noexcept {
    try {
      std::optional<answer> reply{call()};
      std::unique_lock lock{to->mutex};
      if (!to->left) {
        to->reply.swap(reply);
        to->here.notify_one();
        return;
      }
      lock.unlock();
      undo(*reply);
    } catch (...) {
      const std::lock_guard lock{to->mutex};
      to->failed = true;
      to->here.notify_one();
    }
  };
  if (!callers_->start(owner, ask)) return call();
  const boot_time limit = call_limit::answer_by(now());
  std::unique_lock lock{to->mutex};
  while (!to->reply && !to->failed && now() < limit) clock_->wait_until(lock, to->here, limit);
  if (to->reply) return std::move(*to->reply);
  if (to->failed) return for_want_of_memory(std::move(left));
  to->left = true;
  left_a_call() = true;
  return left;
}

result<store::permits_reply> store_client::permits(std::string_view name,
                                                   const store::permits_command& c) {
  if (auto can = begin(); !can) return std::move(can.error());
  if (!may_be_left()) return heard(outage_, store_->permits(name, c));
  const auto ask = [this, c, words = kept_words(name, c)] {
    return store_->permits(words.name, words.in(c));
  };
  return heard(outage_, in_time(c.owner, ask, left_at_deadline()));
}

void store_client::permits_later(std::string_view name, const store::permits_command& c,
                                 std::function<void(result<store::permits_reply>)> then) {
  if (auto can = begin(); !can) return then(std::move(can.error()));
  if (store_->permits_later(name, c, std::move(then))) answers_to_come_();
}

void store_client::settle() { store_->settle(); }

bool store_client::post(std::string_view name, const store::permits_command& c,
                        store::posting_store::listener& then) {
  if (posting_ == nullptr || forked()) return false;
  publish();
  if (!posting_->post(name, c, then)) return false;
  operations_.fetch_add(1, std::memory_order_relaxed);
  answers_to_come_();  // in case no other thread reads the answer
  return true;
}

store::posting_store::source store_client::answers() {
  return posting_ == nullptr ? store::posting_store::source{} : posting_->answers();
}

void store_client::collect() {
  if (posting_ != nullptr && !forked()) posting_->collect();
}

result<store::countdown_reply> store_client::countdown(std::string_view name,
                                                       const store::countdown_command& c) {
  if (auto can = begin(); !can) return std::move(can.error());
  if (!may_be_left()) return heard(outage_, store_->countdown(name, c));
  const auto ask = [this, c, words = kept_words(name, c)] {
    return store_->countdown(words.name, words.in(c));
  };
  return heard(outage_, in_time(c.owner, ask, left_at_deadline()));
}

result<store::rate_reply> store_client::rate(std::string_view name, const store::rate_command& c) {
  if (auto can = begin(); !can) return std::move(can.error());
  if (!may_be_left()) return heard(outage_, store_->rate(name, c));
  const auto of = std::make_shared<const std::string>(name);
  const auto kept = std::make_shared<kept_take>(c);
  auto reply = in_time(
      c.owner, [this, of, kept] { return store_->rate(*of, kept->command); }, left_at_deadline(),
      [this, of, kept](const result<store::rate_reply>& late) {
        const bool take = kept->command.verb == store::rate_verb::take;
        if (take && late && took(*late)) give_back_tokens(*of, kept->granted(*late));
      });
  return heard(outage_, std::move(reply));
}

// The store remembers a refund for a minute: so the last attempt may be under way for half of that.
boot_time refund_repeated_until(const failure& f, boot_time sent) noexcept {
  return f.outcome_unknown ? saturated_add(sent, std::chrono::seconds(30)) : forever;
}

void store_client::give_back_tokens(std::string_view name, store::rate_command take,
                                    boot_time until) {
  take.verb = store::rate_verb::refund;
  for (int i = 0; i < refunds_tried && now() <= until; ++i) {
    const boot_time sent = now();
    const auto told = store_->rate(name, take);
    if (told) return;
    until = std::min(until, refund_repeated_until(told.error(), sent));
  }
}

// In a forked child the tokens are the parent's.
void store_client::refund(std::string_view name, store::rate_command take) noexcept try {
  if (forked()) return;
  take.verb = store::rate_verb::refund;
  boot_time until = forever;
  {
    const boot_time sent = now();
    const call_limit soon{saturated_add(sent, last_answer_within)};
    left_a_call() = false;
    const auto told = rate(name, take);
    if (told || left_a_call()) return;
    until = refund_repeated_until(told.error(), sent);
  }
  const auto again = [this, of = std::string(name), kept = std::make_shared<const kept_take>(take),
                      until]() noexcept {
    try {
      give_back_tokens(of, kept->command, until);
    } catch (...) {
      return;  // no memory: the tokens come back with time
    }
  };
  (void)callers_->start(take.owner, again);
} catch (...) {
  return;  // no memory: the same
}

result<std::vector<std::string>> store_client::names() {
  if (auto can = begin(); !can) return std::move(can.error());
  return store_->names();
}

std::vector<result<store::permits_reply>> store_client::permits(
    std::span<const store::named_command> batch) {
  const auto all_failed = [&](failure f) {
    return std::vector(batch.size(), result<store::permits_reply>(std::move(f)));
  };
  if (auto can = begin(batch.size()); !can) return all_failed(std::move(can.error()));
  if (batch.empty()) return {};
  if (!may_be_left()) return heard(outage_, store_->execute_batch(batch));
  const auto ask = [this, kept = std::make_shared<const kept_batch>(batch)] {
    return store_->execute_batch(kept->all);
  };
  return heard(outage_, in_time(batch.front().command.owner, ask, all_failed(left_at_deadline())));
}

std::vector<result<store::permits_reply>> store_client::execute_batch(
    std::span<const store::named_command> batch) {
  operations_.fetch_add(batch.size(), std::memory_order_relaxed);
  return heard(outage_, store_->execute_batch(batch));
}

result<std::vector<store::permits_reply>> store_client::acquire_together(
    std::span<const store::named_command> all) {
  if (auto can = begin(); !can) return std::move(can.error());
  if (!may_be_left()) return heard(outage_, store_->acquire_together(all));
  const auto ask = [this, kept = std::make_shared<const kept_batch>(all)] {
    return store_->acquire_together(kept->all);
  };
  return heard(outage_, in_time(all.front().command.owner, ask, left_at_deadline()));
}

result<store::admission> store_client::admit(const store::named_command& permits,
                                             std::string_view limiter,
                                             const store::rate_command& take) {
  if (auto can = begin(); !can) return std::move(can.error());
  if (!may_be_left()) return heard(outage_, store_->admit(permits, limiter, take));
  const auto of = std::make_shared<const std::string>(limiter);
  const auto kept = std::make_shared<const kept_batch>(std::span(&permits, 1));
  const auto tokens = std::make_shared<kept_take>(take);
  auto reply = in_time(
      permits.command.owner,
      [this, of, kept, tokens] { return store_->admit(kept->all.front(), *of, tokens->command); },
      left_at_deadline(),
      [this, of, tokens](const result<store::admission>& late) {
        if (late && late->tokens && took(*late->tokens)) {
          give_back_tokens(*of, tokens->granted(*late->tokens));
        }
      });
  return heard(outage_, std::move(reply));
}

result<store::identity> store_client::identify() {
  if (auto can = begin(); !can) return std::move(can.error());
  if (!may_be_left()) return store_->identify();
  return in_time({}, [this] { return store_->identify(); }, left_at_deadline());
}

std::optional<std::string> store_client::place() {
  const auto who = identify();
  if (!who && went_unanswered(who.error())) return std::nullopt;
  return who && !who->run_id.empty() ? who->run_id + ' ' + who->part : std::string();
}

result<store::bucket_list> store_client::buckets(std::string_view name) {
  if (auto can = begin(); !can) return std::move(can.error());
  return store_->buckets(name);
}

result<store::facts> store_client::facts() {
  if (auto can = begin(); !can) return std::move(can.error());
  return store_->facts();
}

result<std::optional<std::chrono::microseconds>> store_client::remembers_for() {
  if (auto can = begin(); !can) return std::move(can.error());
  return store_->remembers_for();
}

result<store::standing> store_client::standing_of(std::string_view name,
                                                  const store::owner_id& owner) {
  if (auto u = usable(); !u) return std::move(u.error());
  return store_->standing_of(name, owner);
}

void store_client::publish() noexcept { handed_over.fetch_add(1, std::memory_order_release); }
void store_client::observe() noexcept { (void)handed_over.load(std::memory_order_acquire); }

std::string store_client::note(std::string_view reason) const {
  return reason.empty() ? note_ : note_ + ' ' + std::string(reason);
}

void store_client::tell(event& what) noexcept try {
  if (!options_.observer) return;
  std::optional<call_limit> users;
  if (call_limit::present() != forever) users.emplace(call_limit::none::at_all);
  what.store = url();
  options_.observer->on_event(what);
} catch (...) {
  return;  // an observer that throws must not disturb the operation that it watches
}

void store_client::tell_gap() noexcept {
  if (!dispatcher_->has_new_gap()) return;
  tell({.kind = event_kind::notification_gap,
        .detail = "notifications may have been lost: the waiters ask the store"});
}

failure store_client::located(failure f, std::string_view operation, std::string_view name) const {
  f.operation = operation;
  f.name = name;
  f.store = url();
  return f;
}

}  // namespace holdfast::engine
