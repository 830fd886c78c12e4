#include "store/redis/dialect_store.hpp"

#include <array>
#include <holdfast/store/foreign_note.hpp>
#include <holdfast/store/queue_inbox.hpp>

#include "base/words.hpp"
#include "store/redis/errors.hpp"
#include "store/redis/redisson.hpp"
#include "store/redis/redisson_rate.hpp"
#include "store/redis/scripts.hpp"
#include "store/redis/setnx_values.hpp"
#include "store/redis/slot_map.hpp"
#include "store/redis/topologies.hpp"
#include "store/redis/unlock_inbox.hpp"

namespace holdfast::store::redis {

namespace {

/// As many readers as shared_mutex allows.
constexpr std::uint32_t everybody = 1U << 30;

/// The other kinds that may be there, and the capacity that such a query names. A number that no
/// holdfast session uses may also be a latch: only a query for a semaphore takes it for a
/// semaphore.
constexpr std::array<std::pair<kind, std::uint32_t>, 3> other_looks{
    {{kind::mutex, 0}, {kind::shared_mutex, everybody}, {kind::semaphore, 0}}};

capabilities promises(const redis_options& o) {
  capabilities c;
  c.try_takes_ms = static_cast<std::uint32_t>(o.command_timeout.count());
  c.fair = c.shared = c.semaphore = c.unit_permits = c.latch = false;
  c.preferences = c.expiring = c.fences = c.lists_waiters = c.survives_failover = false;
  c.notifications = o.dialect == dialect::redisson;
  c.tells_holders = false;  // other programs wait, and do not announce it
  c.beside_others = true;
  switch (o.dialect) {
    case dialect::setnx:
      c.lease_step_ms = o.setnx_milliseconds ? 1 : 1'000;
      c.refusal = "dialect=setnx has exclusive locks only";
      break;
    case dialect::redisson:
      c.shared = c.latch = c.fair = c.semaphore = c.unit_permits = c.expiring = true;
      c.rate_limiter = true;
      c.refusal =
          "dialect=redisson shares RLock, RFairLock, RFencedLock, RReadWriteLock, RSemaphore, "
          "RPermitExpirableSemaphore, RCountDownLatch and RRateLimiter";
      break;
    default:
      c.learns_fences = true;  // for nodes without fences: see redlock
      c.refusal = "dialect=redlock has exclusive locks only";
  }
  return c;
}

/// Tells holdfast's tokens from those of redis-py and npm's redlock, which are 32 hexadecimal
/// digits without a suffix.
constexpr std::string_view our_mark = ":holdfast";
std::string redlock_token(const owner_id& owner) { return to_string(owner).append(our_mark); }

class dialect_store final : public slot_store {
 public:
  explicit dialect_store(redis_options options)
      : options_(std::move(options)),
        capabilities_(promises(options_)),
        servers_(make_servers(options_)),
        for_notifications_(servers_->for_notifications()),
        untold_("dialect", *options_.clock),
        clock_(*options_.clock),
        written_(clock_, unit_us()) {}

  status open() {
    if (auto ok = servers_->open(); !ok) return ok;
    if (options_.dialect == dialect::setnx && options_.warn) {
      options_.warn(
          "dialect=setnx: the other programs judge leases by their own clocks, so a program with a "
          "fast clock takes locks that are held; and a program whose GETSET comes too late "
          "overwrites the value of the holder, which then cannot release the lock. Move to another "
          "layout: docs/migration.md");
    }
    if (!capabilities_.notifications) return done{};
    told_ = std::make_unique<unlock_inbox>(for_notifications_);
    return told_->open();
  }

  const capabilities& can() const noexcept override { return capabilities_; }
  const std::string& url() const noexcept override { return options_.url; }
  result<store::identity> identify() override { return servers_->identify(); }
  result<store::facts> facts() override { return servers_->facts(); }
  result<std::optional<std::chrono::microseconds>> remembers_for() override {
    return servers_->remembers_for();
  }
  store::inbox& inbox() noexcept override {
    if (told_) return *told_;
    return untold_;
  }

  result<slot_reply> add(const slot& where, const slot_entry& who, std::int64_t lease) override {
    return change(where, "add", who, lease);
  }

  result<slot_reply> extend(const slot& where, const slot_entry& who, std::int64_t lease) override {
    return change(where, "extend", who, lease);
  }
  result<slot_reply> resize(const slot& where, const slot_entry& who, std::int64_t lease) override {
    return change(where, "resize", who, lease);
  }

  result<slot_reply> remove(const slot& where, const owner_id& owner) override {
    auto reply = change(where, "remove", {.owner = owner}, 0);
    if (reply || (reply.error().outcome_unknown && is_of_times())) {
      written_.forget(where.name, owner);
    }
    if (!reply) return reply;
    // In a cluster, holdfast's own subscription may be at another node, which is not counted.
    const bool ours = reply->others_listen > 0 && options_.topology != topology::cluster &&
                      told_->listens(redisson_channel(where.kind, key_of(where.name)));
    if (ours) --reply->others_listen;
    return reply;
  }

  result<std::vector<std::optional<slot_entry>>> look(std::span<const slot> at) override {
    std::vector<std::optional<slot_entry>> found;
    for (const auto& s : at) {
      auto reply = look(s);
      if (!reply) return std::move(reply.error());
      if (reply->outcome == slot_outcome::taken)
        found.emplace_back(std::move(reply->other));
      else
        found.emplace_back();
    }
    return found;
  }

  result<std::vector<std::string>> names() override {
    return failure{errc::unsupported,
                   "the keys of dialect=" + std::string(name_of(options_.dialect)) +
                       " look like any others, so they cannot be listed: show() works for a name "
                       "that you know"};
  }

  result<countdown_reply> countdown(std::string_view name, const countdown_command& c) override {
    if (!capabilities_.latch) return slot_store::countdown(name, c);
    const auto key = key_of(name);
    if (auto ok = on_one_node({name, 0, kind::latch}, key); !ok) return std::move(ok.error());
    const auto answer = servers_->ask({key, redisson_call({key, mark_of(key)}, c), false, true});
    return answer ? read_latch(key, answer->value) : answer.error();
  }

  result<rate_reply> rate(std::string_view name, const rate_command& c) override {
    if (!capabilities_.rate_limiter) return slot_store::rate(name, c);
    const auto key = key_of(name);
    if (auto ok = on_one_node({name, 0, kind::rate_limiter}, key); !ok)
      return std::move(ok.error());
    const auto call = redisson_call({key, mark_of(key)}, c);
    if (!call) return call.error();
    const auto answer = servers_->ask({key, *call, false, true});
    return answer ? read_limiter(key, c, answer->value) : answer.error();
  }

  void wait_for(const slot& where, const owner_id& owner) override {
    told_->wait_for(redisson_channel(where, key_of(where.name), owner), where.name, owner);
  }
  void done_waiting(const slot& where, const owner_id& owner) override {
    told_->done_waiting(redisson_channel(where, key_of(where.name), owner), owner);
  }
  std::uint64_t heard(const slot& where) override {
    return told_ ? told_->heard(redisson_channel(where.kind, key_of(where.name))) : 0;
  }

 private:
  std::string key_of(std::string_view name) const {
    return options_.dialect_prefix + std::string(name);
  }

  // A dialect's key that no other key can accompany has no mark: the key itself is passed instead.
  std::string mark_of(const std::string& key) const {
    const bool in_a_cluster = options_.topology == topology::cluster;
    auto mark = late_mark(options_.dialect_prefix, key, in_a_cluster);
    const bool apart = in_a_cluster && what_is_hashed(mark) != what_is_hashed(key);
    return apart ? std::string(key) : std::move(mark);
  }

  // The names of the keys beside a key contain that key, in braces unless it has some. By Redis'
  // own rule for braces, the two may be at different nodes.
  status on_one_node(const slot& where, std::string_view key) const {
    const bool several = options_.dialect == dialect::redisson &&
                         (where.kind != kind::mutex || where.in_order || options_.redisson_fenced);
    if (!several || options_.topology != topology::cluster) return done{};
    if (what_is_hashed(key) == what_is_hashed(redisson_beside(key))) return done{};
    return failure{errc::invalid_name,
                   "in a cluster braces in a name have to enclose something, as in {tag}: "
                   "otherwise the other keys that Redisson uses for it are on another node"};
  }

  // A query does not know the kind in advance. Queried as a latch, the key reports that it is a
  // latch, or no lock at all.
  result<slot_reply> look(slot at) {
    slot_entry any{.capacity = at.kind == kind::semaphore ? 1U : 0U};
    auto reply = change(at, "look", any, 0);
    if (!capabilities_.shared) return reply;
    for (const auto& [other, capacity] : other_looks) {
      if (reply || reply.error().code != errc::kind_mismatch) return reply;
      at.kind = other;
      any.capacity = capacity;
      reply = change(at, "look", any, 0);
    }
    if (reply || reply.error().code != errc::kind_mismatch) return reply;
    return slot_reply{slot_outcome::empty, 0, {}};
  }

  // A server that got the command twice may have written the first time.
  template <class Answer>
  static bool nothing_was_written(const Answer& a) {
    if (!a) return !a.error().outcome_unknown;
    if (a->repeated) return false;
    return a->value.items.size() == 3 && a->value.items[0].integer != 0;
  }

  // Calls the dialect's script once.
  result<slot_reply> change(const slot& where, std::string_view verb, const slot_entry& who,
                            std::int64_t lease_us) {
    if (where.kind == kind::shared_mutex && lease_us > longest_reader_lease_us) return too_long();
    const owner_id& owner = who.owner;
    const auto key = key_of(where.name);
    if (auto ok = on_one_node(where, key); !ok) return std::move(ok.error());
    const boot_time sent = clock_.now();
    // A grant proposes no time: another owner may have written the same second.
    const bool renews = is_of_times() && verb == "extend";
    // A release is not repeated, either: by then the lock may belong to another owner of the same
    // second.
    const bool once = is_of_times() && verb == "remove";
    const std::string next = renews ? written_.propose(where.name, owner, lease_us) : "";
    const auto answer = servers_->ask({.name = key,
                                       .commands = call(key, where, verb, who, lease_us, next),
                                       .is_key = true,
                                       .once = once});
    if (nothing_was_written(answer)) written_.withdraw(where.name, owner, next, lease_us);
    if (!answer) return answer.error();
    const auto& items = answer->value.items;
    if (items.size() < 3) return strange_answer("a script");
    // A repeated release has succeeded if the first answer was lost.
    const bool released = answer->repeated && verb == "remove" && is_out(where, items[0].integer);
    const std::int64_t state = released ? 0 : items[0].integer;
    // A release has no lease, and writes nothing.
    if (is_of_times() && state == 0 && lease_us > 0) {
      written_.wrote(where.name, owner, items[1].text, items[2].integer, sent, lease_us);
    }
    if (released) return slot_reply{.gone_before = true};
    if (where.kind == kind::semaphore && verb == "look" && state == 1)
      return slot_reply{slot_outcome::taken, 0, read_semaphore(items)};
    return read(where, who, state, items);
  }

  // True if the owner has left, even if other readers remain.
  static bool is_out(const slot& where, std::int64_t state) {
    return state == 2 || (state == 1 && where.kind == kind::shared_mutex);
  }

  std::string call(const std::string& key, const slot& where, std::string_view verb,
                   const slot_entry& who, std::int64_t lease_us, const std::string& next) const {
    std::string bytes;
    const owner_id& owner = who.owner;
    const auto ms = std::to_string(lease_us / 1'000);
    const auto mark = mark_of(key);
    switch (options_.dialect) {
      case dialect::redisson:
        return redisson_call({key, mark}, where, verb, who, lease_us, options_.redisson_fenced);
      case dialect::setnx:
        append_command(
            bytes,
            {"EVALSHA", setnx_script().sha, "2", key, mark, verb, written_.of(where.name, owner),
             std::to_string(lease_us), std::to_string(unit_us()), next},
            1);
        break;
      default:
        append_command(
            bytes,
            {"EVALSHA", redlock_script().sha, "2", key, mark, verb, redlock_token(owner), ms}, 1);
    }
    return bytes;
  }

  /// True if only the time in a value shows which owner it belongs to.
  bool is_of_times() const noexcept { return options_.dialect == dialect::setnx; }
  std::int64_t unit_us() const { return options_.setnx_milliseconds ? 1'000 : 1'000'000; }

  result<slot_reply> read(const slot& where, const slot_entry& who, std::int64_t state,
                          const std::vector<resp_value>& items) {
    const std::string& text = items[1].text;
    const std::int64_t left = std::max<std::int64_t>(items[2].integer, 0);
    switch (state) {
      case 0: {
        slot_reply reply{slot_outcome::done, fence_in(text), {}, store_time(items)};
        if (options_.dialect == dialect::redisson) {
          reply.others_listen =
              static_cast<std::uint32_t>(std::min<std::int64_t>(left, UINT32_MAX));
        }
        return reply;
      }
      case 1: {
        const bool seconds = options_.dialect == dialect::setnx;
        const auto left_us = seconds ? left : us_of(left);
        slot_reply reply{slot_outcome::taken, 0, holder(where, who, text, left_us),
                         store_time(items)};
        if (options_.dialect != dialect::redisson) return reply;
        for (std::size_t i = 3; i < items.size(); ++i) {
          reply.other.beside.push_back(holder(where, who, items[i].text, left_us));
        }
        return reply;
      }
      case 2:
        return slot_reply{slot_outcome::empty, 0, {}};
      case 3:
        return failure{errc::kind_mismatch,
                       "the key '" + key_of(where.name) + "' holds " + text.substr(0, 80) +
                           ", which is no lock of dialect=" +
                           std::string(name_of(options_.dialect)) + ": it was left as it is"};
      case 4:
        return failure{errc::capacity_mismatch,
                       "the semaphore '" + key_of(where.name) + "' has " + text + " permits, and " +
                           std::to_string(who.capacity) +
                           " are asked for: name the same number everywhere"};
      default:
        return strange_answer("a script");
    }
  }

  // The token of an RFencedLock; only its script answers with one.
  std::uint64_t fence_in(const std::string& token) const {
    if (!options_.redisson_fenced) return 0;
    const auto number = base::number_at_start<std::uint64_t>(token, 0);
    return number > 0 ? number | fence_of_others : 0;
  }

  std::int64_t store_time(const std::vector<resp_value>& items) const {
    const bool says = options_.dialect != dialect::redisson && items.size() > 3;
    return says ? items[3].integer : 0;
  }

  slot_entry holder(const slot& where, const slot_entry& who, const std::string& text,
                    std::int64_t left_us) const {
    const auto owner = owner_in(text);
    return {.owner = owner,
            .kind = where.kind,
            .capacity = who.capacity,
            .left_us = left_us,
            .note = owner ? "" : store::foreign_note(std::string_view(text).substr(0, 64)),
            .alone = where.kind != kind::shared_mutex || writes(text)};
  }

  static failure too_long() {
    return {errc::invalid_argument,
            "a lease of RReadWriteLock is at most 30 s, as the watchdog of a Java reader sets the "
            "end of every reader to that: set lock_options::lease"};
  }

  // Returns no owner if holdfast cannot have written the text.
  owner_id owner_in(const std::string& text) const {
    owner_id id;
    if (options_.dialect == dialect::redisson && parse_redisson_owner(text, id)) return id;
    const std::string_view token = text;
    const bool marked = options_.dialect == dialect::redlock && token.ends_with(our_mark);
    if (marked && parse_owner_id(token.substr(0, token.size() - our_mark.size()), id)) return id;
    return {};
  }

  const redis_options options_;
  const capabilities capabilities_;
  const std::unique_ptr<servers> servers_;
  const redis_options for_notifications_;
  queue_inbox untold_;
  std::unique_ptr<unlock_inbox> told_;
  clock& clock_;
  setnx_values written_;  ///< for the dialect setnx
};

}  // namespace

result<std::unique_ptr<slot_store>> open_dialect(redis_options options) {
  auto store = std::make_unique<dialect_store>(std::move(options));
  if (auto ok = store->open(); !ok) return std::move(ok.error());
  return std::unique_ptr<slot_store>(std::move(store));
}

}  // namespace holdfast::store::redis
