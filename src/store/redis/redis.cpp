#include "store/redis/redis.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <holdfast/store/perhaps_gone.hpp>
#include <holdfast/store/posting.hpp>

#include "store/redis/commands.hpp"
#include "store/redis/errors.hpp"
#include "store/redis/keys.hpp"
#include "store/redis/slot_inbox.hpp"
#include "store/redis/slot_map.hpp"
#include "store/redis/topologies.hpp"

namespace holdfast::store::redis {

namespace {

/// The most buckets of one limiter that are listed: as many as the stores keep that have them in
/// one record.
constexpr std::size_t most_listed = 10'000;

capabilities promises(const redis_options& o) {
  capabilities c;
  c.try_takes_ms = static_cast<std::uint32_t>(o.command_timeout.count());
  c.sees_death = false;
  c.shared_queue_leases = true;
  // Replication is asynchronous: a replica that takes over may not know of the last grants.
  c.survives_failover = false;
  c.election = true;
  c.barrier = true;
  c.rate_limiter = true;
  c.learns_fences = true;
  c.finds_deadlocks = true;
  // If a grant needs replicas, only a reply tells whether enough of them acknowledged it.
  c.secret_proves = o.ack == acknowledgement::any;
  return c;
}

bool changes_who_has_it(permits_verb verb) {
  return verb == permits_verb::acquire || verb == permits_verb::renew ||
         verb == permits_verb::resize;
}

// "NOPERM this user has no permissions to run the 'getrange' command". The error about a key that
// the user may not read does not match.
bool is_refused_command(const resp_value& answer) {
  return answer.is_error() && answer.text.starts_with("NOPERM") &&
         answer.text.find(" command") != std::string::npos;
}

failure too_few(const acknowledged& replicas, const redis_options& o, std::string_view then) {
  const std::string wanted = ", and ack= asks for " + std::to_string(replicas.wanted) + ": ";
  failure f{errc::unavailable,
            replicas.refusal.empty()
                ? std::to_string(replicas.by) + " replicas acknowledged within " +
                      std::to_string(o.ack_timeout.count()) + " ms" + wanted + std::string(then) +
                      "; are the replicas connected?"
                : "the server answered WAIT with '" + replicas.refusal.substr(0, 200) + "'" +
                      wanted + std::string(then)};
  f.ack_missing = true;
  return f;
}

// A repeated release has succeeded if the first answer was lost. A holder to be evicted may have
// left by itself. If the second answer is an error, the first one is not known.
result<permits_reply> read_settled(const resp_value& value, bool repeated, permits_verb verb,
                                   std::int64_t lease_us) {
  auto got = read_permits(value, verb, lease_us);
  if (!got && repeated) got.error().outcome_unknown = true;
  const bool gone_at_last = got && repeated && got->outcome == permits_outcome::absent;
  if (gone_at_last && verb == permits_verb::release) got->outcome = permits_outcome::done;
  if (gone_at_last && verb == permits_verb::evict) return perhaps_taken_away();
  return got;
}

class redis_store final : public session_store, public posting_store {
 public:
  explicit redis_store(redis_options options)
      : options_(std::move(options)),
        capabilities_(promises(options_)),
        servers_(make_servers(options_)),
        for_notifications_(servers_->for_notifications()),
        inbox_(for_notifications_) {}

  status open() {
    if (auto ok = servers_->open(); !ok) return ok;
    auto listening = inbox_.open();
    // Any node of a cluster will do; a waiter tries another one.
    const bool others = options_.topology == topology::cluster;
    if (!listening && listening.error().code == errc::unavailable && others) return done{};
    return listening;
  }

  const capabilities& can() const noexcept override { return capabilities_; }
  const std::string& url() const noexcept override { return options_.url; }
  store::inbox& inbox() noexcept override { return inbox_; }

  result<permits_reply> permits(std::string_view name, const permits_command& c) override {
    std::string bytes;
    append_permits(bytes, frame(), name, written(c));
    const auto asked_at = inbox_.confirmed();
    const auto answer = servers_->ask({name, bytes, changes_who_has_it(c.verb)});
    if (!answer) return answer.error();
    return settle(name, *answer, c, asked_at);
  }

  bool permits_later(std::string_view name, const permits_command& c,
                     std::function<void(result<permits_reply>)> then) override {
    std::string bytes;
    append_permits(bytes, frame(), name, c);
    return servers_->post({name, bytes},
                          [verb = c.verb, then = std::move(then)](result<link::answer> a) {
                            if (!a) return then(std::move(a.error()));
                            then(read_settled(a->replies.front(), a->repeated, verb, 0));
                          });
  }

  void settle() override { servers_->settle(); }

  // Not if a grant needs replicas. Nor over TLS: an answer may already be buffered there although
  // poll() does not report the descriptor as readable.
  bool post(std::string_view name, const permits_command& c, listener& then) override {
    node* const to = servers_->only_one();
    if (to == nullptr || options_.tls || options_.ack != acknowledgement::any) return false;
    std::string bytes;
    append_permits(bytes, frame(), name, c);
    const auto kept = std::make_shared<listener>(std::move(then));
    link::listener told = [to, verb = c.verb, lease = c.lease_us, kept](result<link::answer> a) {
      if (!a) return (*kept)(std::move(a.error()));
      to->learn(a->replies.front(), a->over);
      (*kept)(read_settled(a->replies.front(), a->repeated, verb, lease));
    };
    const bool posted = to->connection().post_now({.bytes = bytes, .stamped = true}, told);
    if (!posted) then = std::move(*kept);
    return posted;
  }

  source answers() override {
    const auto from = servers_->only_one()->connection().to_read();
    return from ? source{from->wire->fd(), from} : source{};
  }
  void collect() override {
    if (node* const one = servers_->only_one()) one->connection().collect();
  }

  result<countdown_reply> countdown(std::string_view name, const countdown_command& c) override {
    std::string bytes;
    append_countdown(bytes, frame(), name, c);
    const auto answer = servers_->ask({name, bytes, c.verb == countdown_verb::arrive});
    if (!answer) return answer.error();
    auto reply = read_countdown(answer->value, c.verb);
    const bool waits = c.verb == countdown_verb::wait && c.queue_lease_us > 0;
    if (reply && waits && reply->outcome == countdown_outcome::closed) listen_for(name, *answer);
    if (!reply || answer->replicas.enough()) return reply;
    auto f = too_few(answer->replicas, options_, "the arrival may be lost, it is safe to repeat");
    f.outcome_unknown = true;
    return f;
  }

  // A rate decision does not wait for replicas: if a replica takes over that has not received it,
  // its tokens can be taken again.
  result<rate_reply> rate(std::string_view name, const rate_command& c) override {
    std::string bytes;
    append_rate(bytes, frame(), name, c);
    const auto answer = servers_->ask({.name = name, .commands = bytes, .stamped = false});
    if (!answer) return answer.error();
    return read_rate(answer->value, c.buckets.size());
  }

  std::vector<result<permits_reply>> execute_batch(std::span<const named_command> batch) override {
    std::vector<std::string> bytes(batch.size());
    std::vector<request> requests;
    requests.reserve(batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      append_permits(bytes[i], frame(), batch[i].name, written(batch[i].command));
      const bool durable = changes_who_has_it(batch[i].command.verb);
      requests.push_back({batch[i].name, bytes[i], durable});
    }
    const auto asked_at = inbox_.confirmed();
    const auto answers = servers_->ask(requests);
    std::vector<result<permits_reply>> replies;
    replies.reserve(batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (answers[i])
        replies.push_back(settle(batch[i].name, *answers[i], batch[i].command, asked_at));
      else
        replies.push_back(answers[i].error());
    }
    return replies;
  }

  result<std::vector<permits_reply>> acquire_together(std::span<const named_command> all) override {
    if (!on_one_server(all)) return session_store::acquire_together(all);
    std::string bytes;
    append_together(bytes, frame(), all);
    const auto answer = servers_->ask({all.front().name, bytes, true});
    if (!answer) return answer.error();
    auto replies = read_together(answer->value, all);
    if (replies && replies->back().outcome == permits_outcome::queued)
      listen_for(all[replies->size() - 1].name, *answer);
    if (!replies || answer->replicas.enough()) return replies;
    // Replicas need not know a queue entry. An entry behind a name that was released would be a
    // wait against the order of the names.
    const bool granted = replies->front().outcome == permits_outcome::granted;
    if (!granted) return replies;
    for (const auto& one : all) give_back(one.name, one.command.owner);
    return too_few(answer->replicas, options_,
                   "the locks were given back, as far as the server answers");
  }

  result<admission> admit(const named_command& asks, std::string_view limiter,
                          const rate_command& take) override {
    const bool one_server = options_.topology != topology::cluster;
    if (!one_server && slot_of(asks.name) != slot_of(limiter)) {
      return session_store::admit(asks, limiter, take);
    }
    std::string bytes;
    const rate_question tokens{limiter, take};
    append_together(bytes, frame(), std::span(&asks, 1), &tokens);
    const auto answer = servers_->ask({asks.name, bytes, true});
    if (!answer) return answer.error();
    auto both = read_admission(answer->value, asks, take.buckets.size());
    if (both && both->permits.outcome == permits_outcome::queued) listen_for(asks.name, *answer);
    if (!both || both->permits.outcome != permits_outcome::granted || answer->replicas.enough())
      return both;
    const bool sure = give_back(asks.name, asks.command.owner);
    auto f = too_few(answer->replicas, options_,
                     sure ? "the permit was given back" : "the permit could not be given back");
    f.outcome_unknown = !sure;
    return f;
  }

  result<store::identity> identify() override { return servers_->identify(); }
  result<store::facts> facts() override { return servers_->facts(); }
  result<std::optional<std::chrono::microseconds>> remembers_for() override {
    return servers_->remembers_for();
  }

  result<bucket_list> buckets(std::string_view name) override {
    bucket_list found;
    const std::string begins = bucket_prefix(options_.prefix, name);
    const auto anew = [&] { found = {}; };
    const auto ok = servers_->for_each(anew, [&](node& n) {
      return scan(n, escaped_for_match(begins) + '*', [&](const std::vector<resp_value>& keys) {
        return add_buckets(n, begins, keys, found);
      });
    });
    if (!ok) return ok.error();
    return found;
  }

  result<std::vector<std::string>> names() override {
    std::vector<std::string> found;
    const auto anew = [&] { found = {}; };
    const auto ok = servers_->for_each(anew, [&](node& n) {
      // Keys with a suffix do not end with the brace.
      return scan(n, options_.prefix + ":{*}",
                  [&](const std::vector<resp_value>& keys) { return add_used(keys, found); });
    });
    if (!ok) return ok.error();
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

 private:
  bool on_one_server(std::span<const named_command> all) const {
    return options_.topology != topology::cluster ||
           std::all_of(all.begin(), all.end(), [&](const named_command& one) {
             return slot_of(one.name) == slot_of(all.front().name);
           });
  }

  // A renewal that only asks writes nothing (ADR 155), so it would be acknowledged at once: from
  // Redis 7.2 on, WAIT waits for the last write of its own connection.
  permits_command written(permits_command c) const noexcept {
    if (options_.ack != acknowledgement::any && c.verb == permits_verb::renew) c.wait = false;
    return c;
  }

  bool give_back(std::string_view name, const owner_id& owner) {
    std::string bytes;
    append_permits(bytes, frame(), name, {.verb = permits_verb::release, .owner = owner});
    return servers_->ask({name, bytes}).ok();
  }

  // In a cluster, the name's node publishes the name's notifications first, so they need not pass
  // through other nodes.
  void listen_for(std::string_view name, const reply& queued, const owner_id& owner = {},
                  std::uint64_t asked_at = 0) noexcept {
    if (!queued.from.host.empty()) inbox_.waits_for(name, owner, queued.from, asked_at);
  }

  script_frame frame() const noexcept {
    return {options_.prefix, publication_in(options_.topology)};
  }

  result<permits_reply> settle(std::string_view name, const reply& answer, const permits_command& c,
                               std::uint64_t asked_at) {
    auto got = read_settled(answer.value, answer.repeated, c.verb, c.lease_us);
    if (!got) return got;
    if (got->outcome == permits_outcome::queued) listen_for(name, answer, c.owner, asked_at);
    got->repeated = answer.repeated;
    if (answer.repeated && c.replaces) got->replaced = true;  // by the first attempt
    if (got->outcome == permits_outcome::granted && !answer.replicas.enough()) {
      return not_durable(name, answer.replicas, c, std::move(*got));
    }
    return got;
  }

  // The primary has granted, but too few replicas know of it. An owner that replaced another asks
  // again by itself: the other owner has left, and that must not look as if it failed. The last
  // participant at a barrier asks again, too, because the others are notified that it has arrived.
  result<permits_reply> not_durable(std::string_view name, const acknowledged& replicas,
                                    const permits_command& c, permits_reply got) {
    if (c.verb != permits_verb::acquire) {
      auto f = too_few(replicas, options_, "a replica that takes over may not know of it");
      f.outcome_unknown = true;
      return f;
    }
    if (c.replaces || c.kind == kind::barrier) {
      got.outcome = permits_outcome::queued;
      got.retry_after_us = 1'000;
      return got;
    }
    const bool sure = give_back(name, c.owner);
    auto f = too_few(replicas, options_,
                     sure ? "the lock was given back" : "the lock could not be given back");
    f.outcome_unknown = !sure;
    return f;
  }

  using some_keys = std::function<status(const std::vector<resp_value>&)>;
  static status scan(node& n, const std::string& pattern, const some_keys& look) {
    std::string cursor = "0";
    do {
      std::string bytes;
      append_command(bytes, {"SCAN", cursor, "MATCH", pattern, "COUNT", "1000"});
      const auto answer = n.ask(bytes);
      if (!answer) return answer.error();
      const resp_value& page = answer->replies.front();
      if (page.is_error()) return server_says(page.text);
      if (page.items.size() != 2) return strange_answer("SCAN");
      cursor = page.items[0].text;
      if (auto ok = look(page.items[1].items); !ok) return ok;
    } while (cursor != "0");
    return done{};
  }

  // A scan may return a key twice. A bucket that is gone when it is read was full.
  static status add_buckets(node& n, std::string_view begins, const std::vector<resp_value>& keys,
                            bucket_list& found) {
    if (keys.empty()) return done{};
    std::string bytes;
    append_command(bytes, {"TIME"});
    for (const auto& key : keys) append_command(bytes, {"GETRANGE", key.text, "0", "64"});
    const auto answer = n.ask(bytes, keys.size() + 1);
    if (!answer) return answer.error();
    auto some = read_buckets(answer->replies);
    if (!some) return some.error();
    found.now_at = some->now_at;
    for (std::size_t i = 0; i < some->buckets.size(); ++i) {
      bucket& b = some->buckets[i];
      b.id = id_of_bucket(keys[i].text, begins);
      const auto same = [&](const bucket& one) { return one.id == b.id; };
      const bool known = std::any_of(found.buckets.begin(), found.buckets.end(), same);
      if ((b.used > 0 || b.damaged) && !known && found.buckets.size() < most_listed)
        found.buckets.push_back(std::move(b));
    }
    return done{};
  }

  enum class usage { idle, sure, perhaps };

  // "hf1 kind capacity fence used waiters …", or "hf1 after TIME kind …". A record with capacity 0
  // is only the rest of a free name. A record with many holders or waiters outlives them. An
  // unreadable record counts as in use.
  static usage usage_of(std::string_view record) {
    std::array<std::string_view, 8> words{};
    for (auto& word : words) {
      word = record.substr(0, record.find(' '));
      record.remove_prefix(std::min(word.size() + 1, record.size()));
    }
    if (words[0] != "hf1") return usage::sure;
    const auto* const of = words[1] == "after" ? &words[3] : &words[1];
    const auto kind = of[0], capacity = of[1], waiters = of[4];
    if (capacity == "0") return usage::idle;
    if (kind == "latch" || kind == "rate_limiter") return usage::sure;
    return capacity == "1" && waiters == "0" ? usage::sure : usage::perhaps;
  }

  // The inspect command of a latch reports whether the name is in use as another kind.
  status add_if_used(const std::vector<std::string>& names, std::vector<std::string>& found) {
    std::vector<std::string> bytes(names.size());
    std::vector<request> requests;
    requests.reserve(names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
      append_countdown(bytes[i], frame(), names[i], {});
      requests.push_back({.name = names[i], .commands = bytes[i], .raw = true});
    }
    if (requests.empty()) return done{};
    const auto answers = servers_->ask(requests);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (!answers[i]) return answers[i].error();
      const auto looked = read_countdown(answers[i]->value, countdown_verb::inspect);
      if (!looked || looked->outcome == countdown_outcome::kind_mismatch) found.push_back(names[i]);
    }
    return done{};
  }

  status add_used(const std::vector<resp_value>& keys, std::vector<std::string>& found) {
    std::vector<std::string> names(keys.size()), bytes(keys.size());
    std::vector<request> requests;
    requests.reserve(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      names[i] = name_of_key(keys[i].text);
      append_command(bytes[i], {"GETRANGE", keys[i].text, "0", "127"});
      if (names[i].empty()) continue;
      requests.push_back({.name = names[i], .commands = bytes[i], .stamped = false, .raw = true});
    }
    if (requests.empty()) return done{};
    const auto answers = servers_->ask(requests);
    std::vector<std::string> perhaps;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (!answers[i]) return answers[i].error();
      // A single name that this user may not read is reported in its own row.
      if (is_refused_command(answers[i]->value)) return server_says(answers[i]->value.text);
      const std::string& record = answers[i]->value.text;
      const auto used = record.empty() ? usage::idle : usage_of(record);
      if (used == usage::sure) found.emplace_back(requests[i].name);
      if (used == usage::perhaps) perhaps.emplace_back(requests[i].name);
    }
    return add_if_used(perhaps, found);
  }

  const redis_options options_;
  const capabilities capabilities_;
  const std::unique_ptr<servers> servers_;
  const redis_options for_notifications_;
  slot_inbox inbox_;
};

}  // namespace

result<std::unique_ptr<session_store>> open_redis(redis_options options) {
  auto store = std::make_unique<redis_store>(std::move(options));
  if (auto ok = store->open(); !ok) return std::move(ok.error());
  return std::unique_ptr<session_store>(std::move(store));
}

}  // namespace holdfast::store::redis
