#ifdef HOLDFAST_WITH_REDIS
#include "simulation/scripts.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "simulation/redis_model.hpp"
#include "store/redis/commands.hpp"
#include "store/redis/keys.hpp"
#include "store/redis/notification_text.hpp"
#include "store/redis/scripts.hpp"

namespace simulation {

namespace {

namespace redis = holdfast::store::redis;
using holdfast::result;
using holdfast::store::countdown_command;
using holdfast::store::countdown_reply;
using holdfast::store::named_command;
using holdfast::store::notification;
using holdfast::store::permits_command;
using holdfast::store::permits_reply;
using holdfast::store::rate_command;

constexpr std::string_view prefix = "holdfast";
constexpr std::string_view inboxes = "holdfast:inbox:";
constexpr std::string_view says_late = "HOLDFAST_LATE ";
/// For requests that do not say until when they may be carried out.
constexpr std::int64_t carried_out_within = 3'600'000'000;

holdfast::store::capabilities promises(std::chrono::milliseconds command_timeout) {
  holdfast::store::capabilities c;
  c.try_takes_ms = static_cast<std::uint32_t>(command_timeout.count());
  c.shared_queue_leases = c.election = c.barrier = c.rate_limiter = true;
  c.learns_fences = c.finds_deadlocks = true;
  c.survives_failover = false;
  return c;
}

class nobodys_inbox final : public holdfast::store::inbox {
 public:
  const std::string& peer() const noexcept override { return peer_; }
  std::optional<notification> receive(holdfast::boot_time) override { return {}; }
  void interrupt() noexcept override {}

 private:
  std::string peer_;
};

std::string word_of(std::string_view& text) {
  const auto end = std::min(text.find(' '), text.size());
  std::string word(text.substr(0, end));
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

class scripted_server final : public scripted {
 public:
  explicit scripted_server(scripts_at at)
      : at_(std::move(at)),
        model_([this] { return at_.time().wall_at; },
               [this](const auto& channel, const auto& text) { return publish(channel, text); },
               [this](bool needs_room) { return why_refused(needs_room); }) {
    for (const auto& s : redis::scripts_of(redis::dialect::none)) model_.load(s.sha, s.text);
  }

  const holdfast::store::capabilities& can() const noexcept override { return can_; }
  const std::string& url() const noexcept override { return url_; }
  holdfast::store::inbox& inbox() noexcept override { return nobody_; }

  result<permits_reply> permits(std::string_view name, const permits_command& c) override {
    std::string bytes;
    redis::append_permits(bytes, frame(), name, c);
    return redis::read_permits(ask(bytes), c.verb, c.lease_us);
  }
  result<countdown_reply> countdown(std::string_view name, const countdown_command& c) override {
    std::string bytes;
    redis::append_countdown(bytes, frame(), name, c);
    return redis::read_countdown(ask(bytes), c.verb);
  }
  result<std::vector<permits_reply>> acquire_together(std::span<const named_command> all) override {
    std::string bytes;
    redis::append_together(bytes, frame(), all);
    return redis::read_together(ask(bytes), all);
  }
  result<holdfast::store::rate_reply> rate(std::string_view name, const rate_command& c) override {
    std::string bytes;
    redis::append_rate(bytes, frame(), name, c);
    return redis::read_rate(answer_to(bytes), c.buckets.size());
  }
  result<holdfast::store::admission> admit(const named_command& asks, std::string_view limiter,
                                           const rate_command& take) override {
    std::string bytes;
    const redis::rate_question tokens{limiter, take};
    redis::append_together(bytes, frame(), std::span(&asks, 1), &tokens);
    return redis::read_admission(ask(bytes), asks, take.buckets.size());
  }
  // A key outlives its contents: an idle one has no holder.
  result<std::vector<std::string>> names() override {
    std::vector<std::string> used;
    for (const auto& [key, record] : model_.strings(std::string(prefix) + ":{")) {
      if (!key.ends_with('}') || is_idle(record)) continue;
      auto name = redis::name_of_key(key);
      const auto there = permits(name, {});
      const bool empty = there && there->outcome == holdfast::store::permits_outcome::done &&
                         there->found.holders.empty() && there->found.queue.empty();
      if (!empty) used.push_back(std::move(name));
    }
    return used;
  }

  holdfast::store::countdown_record look_at_latch(std::string_view name) {
    std::string bytes;
    redis::append_countdown(bytes, frame(), name, {});
    auto found = redis::read_countdown(answer_to_a_look(bytes), countdown_command{}.verb);
    return found ? std::move(found->found) : holdfast::store::countdown_record{};
  }
  std::optional<std::uint32_t> left_at_latch(std::string_view name) override {
    const auto found = look_at_latch(name);
    if (found.count == 0) return {};
    return found.remaining;
  }
  std::map<std::string, std::int64_t> wait_at_latch(std::string_view name) override {
    std::map<std::string, std::int64_t> all;
    for (const auto& w : look_at_latch(name).waiting) all[to_string(w.owner)] = w.since_wall_at;
    return all;
  }
  std::vector<std::string> peers_at_latch(std::string_view name) override {
    std::vector<std::string> all;
    for (const auto& w : look_at_latch(name).waiting) all.push_back(w.peer);
    return all;
  }
  void forget(bool all) override {
    ++changes_;
    all ? model_.flush() : model_.fail_over();
  }
  std::string lose(std::uint64_t which) override {
    ++changes_;
    return model_.lose(which);
  }
  std::string for_ever() const override { return model_.for_ever(); }
  // Times to live are whole milliseconds.
  std::string ends_too_early() override {
    for (const auto& [key, ends] : model_.ends_of_keys(std::string(prefix) + ":{")) {
      if (!key.ends_with('}')) continue;
      const auto name = redis::name_of_key(key);
      std::int64_t last = 0;
      const auto& found = look(name);
      for (const auto& h : found.holders) last = std::max(last, h.expires_at);
      for (const auto& w : found.queue) last = std::max(last, w.expires_at);
      if (ends + 1000 < last) return key + " ends " + std::to_string(last - ends) + " us early";
    }
    return {};
  }
  // The record of a mutex is "hf1 mutex capacity fence used waiters …".
  std::string left_of_queues() override {
    const auto keys = model_.ends_of_keys(std::string(prefix) + ":{");
    for (const auto& [key, record] : model_.strings(std::string(prefix) + ":{")) {
      std::string_view rest = record;
      (void)word_of(rest);
      if (!key.ends_with('}') || word_of(rest) != "mutex") continue;
      for (int i = 0; i < 3; ++i) (void)word_of(rest);
      if (word_of(rest) != "0") continue;
      for (const auto* const of_a_queue : {":d", ":q", ":p"}) {
        if (keys.contains(key + of_a_queue)) return key + of_a_queue + " beside " + record;
      }
    }
    return {};
  }
  // The record stays as it was seen until a request comes or something in it ends.
  holdfast::store::permits_record look(std::string_view name) override {
    auto& seen = seen_[std::string(name)];
    const auto now = at_.time().wall_at;
    if (seen.change == changes_ && now < seen.until) return seen.found;
    std::string bytes;
    redis::append_permits(bytes, frame(), name, {});
    auto found = redis::read_permits(answer_to_a_look(bytes), permits_command{}.verb, 0);
    seen.found = found ? std::move(found->found) : holdfast::store::permits_record{};
    seen.change = changes_;
    seen.until = now + 1'000'000;
    for (const auto& h : seen.found.holders) seen.until = std::min(seen.until, h.expires_at);
    for (const auto& w : seen.found.queue) seen.until = std::min(seen.until, w.expires_at);
    return seen.found;
  }

 private:
  redis::resp_value answer_to_a_look(const std::string& bytes) {
    looks_ = true;
    auto answer = model_.as_if([&] { return ask(bytes); });
    looks_ = false;
    return answer;
  }

  static redis::script_frame frame() noexcept { return {prefix}; }

  // The connection adds the last argument: the time until which the command may be carried out.
  redis::resp_value ask(std::string bytes) {
    auto until = looks_ ? std::string() : at_.stamp();
    if (until.empty()) until = std::to_string(at_.time().wall_at + carried_out_within);
    bytes += "$" + std::to_string(until.size()) + "\r\n" + until + "\r\n";
    return answer_to(bytes);
  }

  redis::resp_value answer_to(const std::string& bytes) {
    redis::resp_reader reader;
    reader.put(bytes);
    redis::resp_value command;
    if (reader.next(command) != redis::resp_reader::progress::ready) {
      throw std::logic_error("half a command");
    }
    std::vector<std::string> words;
    for (auto& item : command.items) words.push_back(std::move(item.text));
    if (!looks_) ++changes_;
    auto answer = model_.run(words);
    if (!looks_ && answer.is_error() && answer.text.starts_with(says_late))
      at_.too_late(std::stoll(answer.text.substr(answer.text.rfind(' '))));
    if (!looks_ && at_.replica_is_told()) model_.replicate();
    return answer;
  }

  // In the server's words.
  std::string why_refused(bool needs_room) const {
    const auto why = at_.refuses(needs_room);
    if (!why) return {};
    return why->code == holdfast::errc::no_space
               ? "OOM command not allowed when used memory > 'maxmemory'."
               : "READONLY You can't write against a read only replica.";
  }

  int publish(std::string_view channel, std::string_view text) {
    if (looks_) return 1;
    auto all = redis::parse_notifications(text);
    if (all.empty()) throw std::logic_error("a notice that nobody understands");
    bool heard = false;
    for (auto& n : all) {
      n.peer = channel.substr(inboxes.size());
      heard = at_.tell(n) || heard;
    }
    return heard ? 1 : 0;
  }

  static bool is_idle(std::string_view record) {
    (void)word_of(record);
    auto kind = word_of(record);
    if (kind == "after") (void)word_of(record), kind = word_of(record);
    return word_of(record) == "0";
  }

  const scripts_at at_;
  const holdfast::store::capabilities can_ = promises(at_.command_timeout);
  const std::string url_ = "scripted:";
  nobodys_inbox nobody_;
  redis_model model_;
  bool looks_ = false;
  struct seen {
    holdfast::store::permits_record found{};
    std::uint64_t change = 0;
    std::int64_t until = 0;
  };
  std::map<std::string, seen> seen_;
  std::uint64_t changes_ = 1;
};

}  // namespace

std::unique_ptr<scripted> make_scripted(scripts_at at) {
  return std::make_unique<scripted_server>(std::move(at));
}

}  // namespace simulation
#endif
