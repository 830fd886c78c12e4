#include "store/memcached/memcached.hpp"

#include <algorithm>
#include <charconv>
#include <deque>
#include <holdfast/store/queue_inbox.hpp>
#include <map>

#include "base/at_once.hpp"
#include "store/memcached/keys.hpp"
#include "store/memcached/known_locks.hpp"
#include "store/memcached/link.hpp"
#include "store/memcached/value.hpp"

namespace holdfast::store::memcached {

namespace {

/// An unused counter of fences is forgotten after this time: the clock, from which it restarts, has
/// advanced more than the counter.
constexpr std::string_view counter_lasts_s = "86400";
/// How many commands are sent together: a server whose answers do not fit into the network buffers
/// accepts no more commands, and no thread reads the answers while more commands are sent.
constexpr std::size_t at_once = 500;
/// memcached takes a longer time to live for a date.
constexpr std::uint32_t longest_ttl_s = 30 * 24 * 3600;

capabilities promises(const memcached_options& o) {
  capabilities c;
  c.try_takes_ms = static_cast<std::uint32_t>(o.command_timeout.count());
  c.fair = c.shared = c.semaphore = c.latch = c.preferences = c.expiring = false;
  c.fences = false;  // a server that evicts the counter, or restarts, may start it lower
  c.notifications = false;
  c.lists_waiters = false;
  c.survives_failover = false;  // all locks of a server are lost with it
  c.max_name_bytes = 205;
  c.lease_step_ms = 1'000;
  c.max_lease_s = longest_ttl_s - 2;  // without spare_s, by which an item is kept longer
  c.refusal =
      "memcached can only add and delete keys, and has no queue: it offers mutex, recursive_mutex "
      "and counting_semaphore";
  return c;
}

// A time to live ends with a tick of the server's clock. A tick is a second, and a late tick counts
// for two: with this addition it is never shorter than requested.
constexpr std::int64_t spare_s = 2;

std::string ttl_of(std::int64_t lease_us) { return std::to_string(lease_us / 1'000'000 + spare_s); }

/// Writes an item if there is none, or if it still has that number, and then reads the item. Does
/// not use `ms`: a server without room would react to it by dropping the existing item, even
/// another owner's lock, which `add` and `cas` leave alone (ADR 133).
std::string write_command(const std::string& key, const std::string& value, std::int64_t lease_us,
                          std::optional<std::int64_t> instead_of) {
  std::string text;
  text.reserve(2 * key.size() + value.size() + 80);
  text.append(instead_of ? "cas " : "add ").append(key).append(" 0 ").append(ttl_of(lease_us));
  text.append(" ").append(std::to_string(value.size()));
  if (instead_of) text.append(" ").append(std::to_string(*instead_of));
  text.append("\r\n").append(value).append("\r\n");
  return text.append("mg ").append(key).append(" v t c\r\n");
}

/// A slot on its server.
struct spot {
  std::string_view name;
  std::string key;
  std::string counter;
  server* on;
};

class memcached_store final : public slot_store {
 public:
  explicit memcached_store(memcached_options o)
      : options_(std::move(o)),
        capabilities_(promises(options_)),
        known_(*options_.clock),
        inbox_("memcached", *options_.clock) {
    for (const auto& a : options_.servers) servers_.emplace_back(a, options_);
  }

  // A misconfigured server is reported now. An unreachable server may be back when it is needed,
  // and until then the names on the other servers can be locked.
  status open() {
    std::optional<failure> away;
    bool one_answers = false;
    for (auto& s : servers_) {
      auto ok = s.talk(0, [](link&) { return done{}; });
      if (!ok && ok.error().code != errc::unavailable) return ok;
      one_answers = one_answers || ok;
      if (!ok && !away) away = std::move(ok.error());
    }
    if (one_answers) return done{};
    return std::move(*away);
  }

  const capabilities& can() const noexcept override { return capabilities_; }
  const std::string& url() const noexcept override { return options_.url; }
  store::inbox& inbox() noexcept override { return inbox_; }

  result<slot_reply> add(const slot& where, const slot_entry& who, std::int64_t lease) override {
    return over(where, who.owner,
                [&](link& l, const spot& at, bool) { return add_over(l, at, who, lease); });
  }

  result<slot_reply> extend(const slot& where, const slot_entry& who, std::int64_t lease) override {
    return over(where, who.owner,
                [&](link& l, const spot& at, bool) { return extend_over(l, at, who, lease); });
  }

  // Renews on all servers at the same time: several silent servers cost the locks on the others one
  // time-out, not one each.
  std::vector<result<slot_reply>> extend(std::span<const extension> all) override {
    std::map<server*, std::vector<std::size_t>> at;
    for (std::size_t i = 0; i < all.size(); ++i) at[&server_with(all[i].where.name)].push_back(i);
    const std::vector<std::pair<server*, std::vector<std::size_t>>> parts(at.begin(), at.end());
    std::vector<result<slot_reply>> replies(all.size(), slot_reply{});
    base::all_at_once(parts.size(), [&](std::size_t i) {
      extend_at(*parts[i].first, parts[i].second, all, replies);
    });
    return replies;
  }

  result<slot_reply> remove(const slot& where, const owner_id& owner) override {
    auto reply = over(where, owner, [&](link& l, const spot& at, bool again) {
      // A repeated release has succeeded if the first answer was lost, provided that the server has
      // not restarted.
      const auto known = known_.find(where.name, owner);
      const bool first_may_count = again && known && known->life.is(l.life());
      auto r = remove_over(l, at, owner);
      if (!r || !again || r->outcome == slot_outcome::done) return r;
      if (first_may_count) r = slot_reply{};
      r->gone_before = true;
      return r;
    });
    if (reply) known_.forget(where.name, owner);
    return reply;
  }

  result<std::vector<std::optional<slot_entry>>> look(std::span<const slot> at) override {
    std::vector<std::optional<slot_entry>> found;
    if (at.empty()) return found;
    found.reserve(at.size());
    auto& there = server_with(at.front().name);
    for (std::size_t i = 0; i < at.size(); i += at_once) {
      auto ok = look_at(there, at.subspan(i, std::min(at_once, at.size() - i)), found);
      if (!ok) return std::move(ok.error());
    }
    return found;
  }

  result<store::facts> facts() override {
    store::facts found;
    for (auto& s : servers_) {
      if (auto ok = add_facts(s, found); !ok) return std::move(ok.error());
    }
    return found;
  }

  // Fails if a server is unreachable: a list without its names would suggest that they are free.
  result<std::vector<std::string>> names() override {
    std::vector<std::string> found;
    for (auto& s : servers_) {
      if (auto ok = add_names(s, found); !ok) return std::move(ok.error());
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

 private:
  status look_at(server& there, std::span<const slot> at,
                 std::vector<std::optional<slot_entry>>& found) {
    std::string bytes;
    for (const auto& s : at) {
      const auto key = lock_key(options_.prefix, s.name, s.part);
      if (!key) return key.error();
      bytes += "mg " + *key + " v t\r\n";
    }
    const auto before = found.size();
    return there.talk(0, [&](link& l) -> status {
      const auto replies = l.ask(bytes, at.size());
      if (!replies) return replies.error();
      found.resize(before);  // if the conversation is repeated, only the second run counts
      for (std::size_t i = 0; i < at.size(); ++i) {
        auto entry = entry_in((*replies)[i], at[i].name, there);
        if (!entry) return std::move(entry.error());
        found.push_back(std::move(*entry));
      }
      return done{};
    });
  }

  // `evictions` is a number in the first answer, and a setting in the second.
  static status add_facts(server& s, store::facts& found) {
    const std::string at = to_string(s.where());
    store::facts its;  // if the conversation is repeated, only the second run counts
    const auto ok = s.talk(0, [&](link& l) -> status {
      its.clear();
      const auto take = [&](std::string_view line, std::string_view key, const char* name) {
        const std::string begins = "STAT " + std::string(key) + " ";
        if (line.starts_with(begins))
          its.push_back({at, name, std::string(line.substr(begins.size()))});
      };
      auto asked = l.list("stats\r\n", [&](std::string_view line) {
        take(line, "version", "version");
        take(line, "evictions", "evicted");
        take(line, "limit_maxbytes", "limit_maxbytes");
        take(line, "bytes", "bytes");
      });
      if (!asked) return asked;
      return l.list("stats settings\r\n",
                    [&](std::string_view line) { take(line, "evictions", "evictions"); });
    });
    found.insert(found.end(), its.begin(), its.end());
    return ok;
  }

  // A server that does not answer is not asked for its remaining names: that would take the sum of
  // all their time-outs. Nor is it waited for at the next renewal: the locks on the other servers
  // would be renewed late again.
  void extend_at(server& on, std::span<const std::size_t> which, std::span<const extension> all,
                 std::span<result<slot_reply>> replies) {
    const auto patience = std::min(options_.command_timeout, options_.connect_timeout) / 2;
    const bool alone = servers_.size() == 1;
    bool silent = !alone && on.is_silent();
    for (const std::size_t i : which) {
      if (silent) {
        replies[i] = failure{errc::unavailable,
                             to_string(on.where()) + " did not answer another renewal just now"};
        continue;
      }
      const boot_time began = boot_clock::now();
      replies[i] = extend(all[i].where, all[i].who, all[i].lease_us);
      silent = !replies[i] && boot_clock::now() - began >= patience;
      if (silent && !alone) on.fell_silent();
    }
  }

  // Runs one conversation about a slot.
  template <class Talk>
  result<slot_reply> over(const slot& where, const owner_id& owner, Talk talk) {
    auto first = lock_key(options_.prefix, where.name, 0);
    if (!first) return first.error();
    auto key =
        where.part == 0 ? *first : std::move(*lock_key(options_.prefix, where.name, where.part));
    const spot at{where.name, std::move(key), counter_key(*first), &server_with(where.name)};
    const auto known = known_.find(where.name, owner);
    slot_reply reply;
    bool again = false;
    const auto converse = [&](link& l) -> status {
      auto r = talk(l, at, std::exchange(again, true));
      if (!r) return std::move(r.error());
      reply = std::move(*r);
      return done{};
    };
    const auto ok = at.on->talk(known ? known->link : 0, std::cref(converse));  // does not allocate
    if (!ok) return ok.error();
    return reply;
  }

  // The fence is counted after the lock was acquired: a fence counted before could be overtaken. If
  // the lock was not acquired, a number is skipped.
  result<slot_reply> add_over(link& l, const spot& at, slot_entry who, std::int64_t lease) {
    who.since_wall_at = l.wall_at();
    auto commands = write_command(at.key, write_value(who), lease, std::nullopt);
    commands.append("ma ").append(at.counter).append(" N").append(counter_lasts_s);
    commands.append(" T").append(counter_lasts_s).append(" J");
    commands.append(std::to_string(who.since_wall_at)).append(" v\r\n");
    const auto replies = l.ask(commands, 3);
    if (!replies) return replies.error();
    const meta_reply& added = (*replies)[0];
    auto there = standing_in((*replies)[1], at);
    if (!there) return and_unknown_if(added.is("STORED"), std::move(there.error()));
    const bool refused = !added.is("STORED") && !added.is("NOT_STORED");
    if (!there->entry && refused) return server_says(added, at.on->where());
    if (!there->entry) return slot_reply{slot_outcome::taken, 0, who};
    if (there->entry->owner != who.owner) {
      return slot_reply{slot_outcome::taken, 0, std::move(*there->entry)};
    }
    const bool ours_already = !added.is("STORED");  // by an attempt whose answer was lost
    const auto fence = ours_already && there->entry->fence != 0
                           ? result<std::uint64_t>(there->entry->fence)
                           : fence_in((*replies)[2], at);
    if (ours_already && fence) {
      who.fence = *fence;
      return while_ours(l, at, who.owner,
                        [&](std::int64_t cas) { return write_over(l, at, who, lease, cas); });
    }
    auto reply = remember(l, at, who, lease, there->cas, fence ? *fence : 0);
    if (fence) return reply;
    if (auto back = remove_over(l, at, who.owner); !back) return back;
    return fence.error();
  }

  // The server has carried out one command, and failed with the next.
  static failure and_unknown_if(bool done, failure f) {
    f.outcome_unknown = f.outcome_unknown || done;
    return f;
  }

  slot_reply remember(link& l, const spot& at, const slot_entry& who, std::int64_t lease,
                      std::int64_t cas, std::uint64_t fence) {
    known_.put(at.name, who.owner, {l.id(), cas, fence, l.life(), who.since_wall_at, who.note},
               lease);
    return {slot_outcome::done, fence, {}};
  }

  // Writes the whole record again, because a renewal has neither the start time nor the note.
  result<slot_reply> extend_over(link& l, const spot& at, slot_entry who, std::int64_t lease) {
    const auto known = known_.find(at.name, who.owner);
    who.since_wall_at = l.wall_at();
    if (known) {
      who.fence = known->fence;
      who.since_wall_at = known->since_wall_at;
      who.note = known->note;
    }
    if (known && known->link == l.id()) {
      auto reply = write_over(l, at, who, lease, known->cas);
      if (!reply || reply->outcome != slot_outcome::taken) return reply;
    }
    return while_ours(l, at, who.owner,
                      [&](std::int64_t cas) { return write_over(l, at, who, lease, cas); });
  }

  // Writes only if no other client has written since.
  result<slot_reply> write_over(link& l, const spot& at, const slot_entry& who, std::int64_t lease,
                                std::int64_t cas) {
    const auto replies = l.ask(write_command(at.key, write_value(who), lease, cas), 2);
    if (!replies) return replies.error();
    const auto& written = replies->front();
    if (written.is("NOT_FOUND")) return slot_reply{slot_outcome::empty, 0, {}};
    if (written.is("EXISTS")) return slot_reply{slot_outcome::taken, 0, {}};
    if (!written.is("STORED")) return server_says(written, at.on->where());
    const auto there = standing_in(replies->back(), at);
    if (!there) return and_unknown_if(true, there.error());
    if (!there->entry) return slot_reply{slot_outcome::empty, 0, {}};
    if (there->entry->owner != who.owner) return slot_reply{slot_outcome::taken, 0, *there->entry};
    return remember(l, at, who, lease, there->cas, who.fence);
  }

  result<slot_reply> remove_over(link& l, const spot& at, const owner_id& owner) {
    const auto known = known_.find(at.name, owner);
    if (known && known->link == l.id()) {
      auto reply = remove_exactly(l, at, known->cas);
      if (!reply || reply->outcome != slot_outcome::taken) return reply;
    }
    return while_ours(l, at, owner, [&](std::int64_t cas) { return remove_exactly(l, at, cas); });
  }

  // Another request of the same owner, over another connection, may come between the read and the
  // action: then reads again, for as long as a request may take.
  template <class Act>
  result<slot_reply> while_ours(link& l, const spot& at, const owner_id& owner, Act act) {
    const boot_time until = boot_clock::now() + options_.command_timeout;
    for (bool over = false; !over; over = boot_clock::now() >= until) {
      auto found = read(l, at);
      if (!found) return std::move(found.error());
      if (!found->entry) return slot_reply{slot_outcome::empty, 0, {}};
      if (found->entry->owner != owner) {
        return slot_reply{slot_outcome::taken, 0, std::move(*found->entry)};
      }
      auto reply = act(found->cas);
      if (!reply || reply->outcome != slot_outcome::taken || reply->other.owner) return reply;
    }
    return failure{errc::unavailable,
                   to_string(at.on->where()) +
                       " says each time that the item has changed since it was read; is there a "
                       "proxy that reads and writes at different servers?"};
  }

  result<slot_reply> remove_exactly(link& l, const spot& at, std::int64_t cas) {
    const auto replies = l.ask("md " + at.key + " C" + std::to_string(cas) + "\r\n", 1);
    if (!replies) return replies.error();
    const auto& answer = replies->front();
    if (answer.is("HD")) return slot_reply{};
    if (answer.is("NF")) return slot_reply{slot_outcome::empty, 0, {}};
    if (answer.is("EX")) return slot_reply{slot_outcome::taken, 0, {}};
    return server_says(answer, at.on->where());
  }

  struct standing {
    std::optional<slot_entry> entry;
    std::int64_t cas = 0;
  };
  result<standing> read(link& l, const spot& at) {
    const auto replies = l.ask("mg " + at.key + " v t c\r\n", 1);
    if (!replies) return replies.error();
    return standing_in(replies->front(), at);
  }
  static result<standing> standing_in(const meta_reply& r, const spot& at) {
    auto entry = entry_in(r, at.name, *at.on);
    if (!entry) return std::move(entry.error());
    return standing{std::move(*entry), r.number('c').value_or(0)};
  }

  static result<std::optional<slot_entry>> entry_in(const meta_reply& r, std::string_view name,
                                                    const server& from) {
    if (r.is("EN")) return std::optional<slot_entry>{};
    if (!r.is("VA")) return server_says(r, from.where());
    auto entry = read_value(r.value);
    if (!entry) return foreign(name, r.value);
    const std::int64_t left_s = r.number('t').value_or(-1);  // -1: it never ends
    constexpr std::int64_t most_s = 1'000'000'000'000;       // a server may return any number
    if (left_s >= 0)
      entry->left_us = std::max<std::int64_t>((std::min(left_s, most_s) - spare_s) * 1'000'000, 1);
    return entry;
  }

  static failure foreign(std::string_view name, const std::string& value) {
    const std::string whose = "the key of '" + std::string(name) + "' holds ";
    if (const auto version = version_of(value)) {
      if (*version > 1) {
        return {errc::newer_format, whose + "a lock of format " + std::to_string(*version) +
                                        ", written by a newer holdfast: use that one"};
      }
      return {errc::corrupt, whose + "a damaged lock: remove the key if nobody holds it"};
    }
    std::string shown;
    for (const char c : value.substr(0, 40)) shown += c >= ' ' && c < 0x7F ? c : '?';
    return {errc::kind_mismatch, whose + "'" + shown +
                                     "', which holdfast did not write: choose another name or "
                                     "?prefix=, or remove the key"};
  }

  static result<std::uint64_t> fence_in(const meta_reply& r, const spot& at) {
    std::uint64_t n = 0;
    const char* const end = r.value.data() + r.value.size();
    if (r.is("VA") && std::from_chars(r.value.data(), end, n).ec == std::errc{}) return n;
    if (r.code.starts_with("CLIENT_ERROR")) return foreign(at.name, "no number");
    return server_says(r, at.on->where());
  }

  status add_names(server& s, std::vector<std::string>& found) {
    return s.talk(0, [&](link& l) -> status {
      std::vector<std::string> keys;
      const auto take = [&](std::string_view line) {
        constexpr std::string_view key = "key=";
        if (!line.starts_with(key)) return;
        auto text = unescape(line.substr(key.size(), line.find(' ') - key.size()));
        if (name_of_key(options_.prefix, text)) keys.push_back(std::move(text));
      };
      // Not `all`: its walk over the LRU lists omits items that are just being touched or moved.
      // `hash` waits for each bucket of the hash table.
      auto ok = l.list("lru_crawler metadump hash\r\n", take);
      std::sort(keys.begin(), keys.end());
      keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
      for (std::size_t i = 0; ok && i < keys.size(); i += at_once) {
        const auto some = std::span(keys).subspan(i, std::min(at_once, keys.size() - i));
        ok = add_living(l, some, found);
      }
      return ok;
    });
  }

  // The list also includes items that have just expired.
  status add_living(link& l, std::span<const std::string> keys, std::vector<std::string>& found) {
    std::string bytes;
    for (const auto& key : keys) bytes += "mg " + key + " t\r\n";
    const auto replies = l.ask(bytes, keys.size());
    if (!replies) return replies.error();
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if ((*replies)[i].is("HD")) found.push_back(*name_of_key(options_.prefix, keys[i]));
    }
    return done{};
  }

  server& server_with(std::string_view name) { return servers_[server_of(name, options_.servers)]; }

  const memcached_options options_;
  const capabilities capabilities_;
  std::deque<server> servers_;
  known_locks known_;
  queue_inbox inbox_;
};

}  // namespace

result<std::unique_ptr<slot_store>> open_memcached(memcached_options options) {
  auto store = std::make_unique<memcached_store>(std::move(options));
  if (auto ok = store->open(); !ok) return std::move(ok.error());
  return std::unique_ptr<slot_store>(std::move(store));
}

}  // namespace holdfast::store::memcached
