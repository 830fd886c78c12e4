#include "store/redis/redisson.hpp"

#include <algorithm>
#include <array>

#include "store/redis/errors.hpp"
#include "store/redis/scripts.hpp"

namespace holdfast::store::redis {

namespace {

constexpr std::string_view thread = ":1";
constexpr std::string_view write_mark = ":write";

bool has_tag(std::string_view key) noexcept { return key.find('{') != key.npos; }

std::string tagged(std::string_view key) {
  return has_tag(key) ? std::string(key) : "{" + std::string(key) + "}";
}

// The id is 16 bytes, or text from older clients. Returns no owner for anything else.
owner_id permit_id(std::string_view text) {
  owner_id id;
  if (text.size() != 16) return parse_owner_id(text, id) ? id : owner_id{};
  for (const char c : text) {
    id.high = (id.high << 8) | (id.low >> 56);
    id.low = (id.low << 8) | static_cast<unsigned char>(c);
  }
  return id;
}

std::uint32_t number_in(const resp_value& v) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(v.integer, 0, UINT32_MAX));
}

std::string_view verb_of(countdown_verb v) {
  switch (v) {
    case countdown_verb::arrive:
      return "arrive";
    case countdown_verb::wait:
      return "wait";
    case countdown_verb::remove:
      return "remove";
    default:
      return "inspect";  // there is no list of waiters, so `leave` has nothing to do
  }
}

}  // namespace

std::string redisson_channel(kind what, std::string_view key) {
  // The channel of a latch ignores a tag in the key.
  if (what == kind::latch) return "redisson_countdownlatch__channel__{" + std::string(key) + "}";
  const std::string_view before = what == kind::shared_mutex ? "redisson_rwlock:"
                                  : what == kind::semaphore  ? "redisson_sc:"
                                                             : "redisson_lock__channel:";
  return std::string(before) + tagged(key);
}

std::string redisson_channel(const slot& where, std::string_view key, const owner_id& waits) {
  const auto channel = redisson_channel(where.kind, key);
  return where.in_order ? channel + ":" + redisson_owner(waits) : channel;
}

std::string redisson_beside(std::string_view key) { return tagged(key) + ":"; }

std::string redisson_owner(const owner_id& id) { return to_string(id) + std::string(thread); }

std::string redisson_id(const owner_id& id) {
  std::string bytes;
  for (const std::uint64_t half : {id.high, id.low}) {
    for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>((half >> shift) & 0xFF);
  }
  return bytes;
}

bool writes(std::string_view redisson_owner) noexcept {
  return redisson_owner.ends_with(write_mark);
}

bool parse_redisson_owner(std::string_view text, owner_id& id) noexcept {
  if (writes(text)) text.remove_suffix(write_mark.size());
  if (!text.ends_with(thread)) return false;
  text.remove_suffix(thread.size());
  return parse_owner_id(text, id);
}

std::string redisson_call(const marked_key& at, const slot& where, std::string_view verb,
                          const slot_entry& who, std::int64_t lease_us, bool fenced) {
  std::string bytes;
  const auto key = at.key;
  const auto ms = std::to_string(lease_us / 1'000);
  const auto owner = redisson_owner(who.owner);
  const auto channel = redisson_channel(where.kind, key);
  const auto beside = redisson_beside(key);
  if (where.kind == kind::semaphore) {
    const auto ours = beside + "holdfast";
    append_command(bytes,
                   {"EVALSHA", redisson_permits_script().sha, "6", key, beside + "timeout",
                    ours + ":ends", ours + ":permits", ours, at.mark, verb, to_string(who.owner),
                    redisson_id(who.owner), std::to_string(who.weight),
                    std::to_string(who.capacity), ms, channel, who.outlives_session ? "1" : "0"},
                   1);
  } else if (where.in_order) {
    append_command(
        bytes,
        {"EVALSHA", redisson_fair_script().sha, "5", key, "redisson_lock_queue:" + tagged(key),
         "redisson_lock_timeout:" + tagged(key), beside + "holdfast:waits", at.mark, verb, owner,
         ms, channel, std::to_string(who.queue_lease_us / 1'000)},
        1);
  } else if (where.kind == kind::shared_mutex) {
    append_command(bytes,
                   {"EVALSHA", redisson_rw_script().sha, "3", key, beside, at.mark, verb, owner, ms,
                    channel, who.alone ? "1" : "0"},
                   1);
  } else if (fenced) {
    append_command(bytes,
                   {"EVALSHA", redisson_script().sha, "3", key,
                    "redisson_lock_token:" + tagged(key), at.mark, verb, owner, ms, channel},
                   1);
  } else {
    append_command(
        bytes, {"EVALSHA", redisson_script().sha, "2", key, at.mark, verb, owner, ms, channel}, 1);
  }
  return bytes;
}

std::string redisson_call(const marked_key& at, const countdown_command& c) {
  std::string bytes;
  const auto key = at.key;
  const auto remember_ms = std::to_string(std::max<std::int64_t>(c.repeats_us / 1'000, 1));
  const auto ours = redisson_beside(key) + "holdfast";
  append_command(
      bytes,
      {"EVALSHA", redisson_latch_script().sha, "6", key, ours, ours + ":" + to_string(c.owner),
       redisson_beside(key) + "timeout", ours + ":permits", at.mark, verb_of(c.verb),
       std::to_string(c.count), std::to_string(c.drop), redisson_channel(kind::latch, key),
       std::to_string(c.keep_us / 1'000), remember_ms},
      1);
  return bytes;
}

slot_entry read_semaphore(const std::vector<resp_value>& answer) {
  slot_entry found{.kind = kind::semaphore, .capacity = 0, .weight = 0, .free = answer[1].integer};
  for (std::size_t i = 3; i + 3 < answer.size(); i += 4) {
    found.beside.push_back({.owner = permit_id(answer[i].text),
                            .kind = kind::semaphore,
                            .capacity = number_in(answer[i + 3]),
                            .left_us = us_of(answer[i + 2].integer),
                            .weight = number_in(answer[i + 1])});
  }
  return found;
}

result<countdown_reply> read_latch(std::string_view key, const resp_value& answer) {
  if (answer.is_error()) return server_says(answer.text);
  const auto& items = answer.items;
  if (items.size() != 3) return strange_answer("redisson_latch.lua");
  const auto state = items[0].integer;
  if (state == 3) {
    return failure{errc::kind_mismatch, "the key '" + std::string(key) + "' holds " +
                                            items[1].text.substr(0, 80) +
                                            ", which is no latch of dialect=redisson: it was "
                                            "left as it is"};
  }
  static constexpr std::array outcomes{countdown_outcome::closed,
                                       countdown_outcome::open,
                                       countdown_outcome::too_many,
                                       countdown_outcome::done,
                                       countdown_outcome::capacity_mismatch,
                                       countdown_outcome::done};
  if (state < 0 || state >= std::int64_t{outcomes.size()})
    return strange_answer("redisson_latch.lua");
  const auto left = number_in(items[1]);
  return countdown_reply{.outcome = outcomes[static_cast<std::size_t>(state)],
                         .remaining = left,
                         .found = {.count = number_in(items[2]), .remaining = left}};
}

}  // namespace holdfast::store::redis
