#include <gtest/gtest.h>
#include <hiredis/hiredis.h>

#include <memory>

#include "harness/seed.hpp"
#include "store/redis/resp.hpp"

namespace {

using holdfast::store::redis::resp_reader;
using holdfast::store::redis::resp_type;
using holdfast::store::redis::resp_value;
using progress = resp_reader::progress;

std::string random_text(harness::random& dice, std::size_t longest, bool line) {
  std::string text(dice.between<std::size_t>(0, longest), '\0');
  for (char& c : text) c = static_cast<char>(line ? dice.between(32, 126) : dice.between(0, 255));
  return text;
}

// A reply of RESP2, which hiredis 0.14 can parse.
void append_reply(harness::random& dice, std::string& to, int depth) {
  switch (dice.between(0, depth < 4 ? 6 : 4)) {
    case 0:
      to += "+" + random_text(dice, 20, true) + "\r\n";
      return;
    case 1:
      to += "-ERR " + random_text(dice, 20, true) + "\r\n";
      return;
    case 2:
      to += ":" + std::to_string(static_cast<std::int64_t>(dice.bits())) + "\r\n";
      return;
    case 3:
      to += dice.one_in(2) ? "$-1\r\n" : "*-1\r\n";
      return;
    case 4: {
      const auto text = random_text(dice, dice.one_in(20) ? 5000 : 30, false);
      to += "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
      return;
    }
    default: {
      const int count = dice.between(0, 5);
      to += "*" + std::to_string(count) + "\r\n";
      for (int i = 0; i < count; ++i) append_reply(dice, to, depth + 1);
    }
  }
}

resp_value converted(const redisReply& r) {
  resp_value v;
  switch (r.type) {
    case REDIS_REPLY_STATUS:
      v.type = resp_type::simple;
      break;
    case REDIS_REPLY_ERROR:
      v.type = resp_type::error;
      break;
    case REDIS_REPLY_STRING:
      v.type = resp_type::bulk;
      break;
    case REDIS_REPLY_INTEGER:
      v.type = resp_type::integer, v.integer = r.integer;
      return v;
    case REDIS_REPLY_ARRAY:
      v.type = resp_type::array;
      for (std::size_t i = 0; i < r.elements; ++i) v.items.push_back(converted(*r.element[i]));
      return v;
    default:
      return v;
  }
  v.text.assign(r.str, static_cast<std::size_t>(r.len));
  return v;
}

/// The other client's reading of the same bytes.
class oracle {
 public:
  oracle() : reader_(redisReaderCreate(), redisReaderFree) {}
  bool read(std::string_view bytes, resp_value& v) {
    redisReaderFeed(reader_.get(), bytes.data(), bytes.size());
    void* reply = nullptr;
    if (redisReaderGetReply(reader_.get(), &reply) != REDIS_OK || reply == nullptr) return false;
    v = converted(*static_cast<redisReply*>(reply));
    freeReplyObject(reply);
    return true;
  }

 private:
  std::unique_ptr<redisReader, void (*)(redisReader*)> reader_;
};

TEST(resp_fuzz, random_replies_in_random_pieces_are_read_as_by_hiredis) {
  harness::random dice(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes;
    append_reply(dice, bytes, 0);
    resp_reader ours;
    resp_value value, expected;
    for (std::size_t at = 0; at < bytes.size();) {
      const auto piece = dice.between<std::size_t>(1, bytes.size() - at);
      ours.put(std::string_view(bytes).substr(at, piece));
      at += piece;
      const auto p = ours.next(value);
      ASSERT_EQ(p, at < bytes.size() ? progress::need_more : progress::ready) << ours.problem();
    }
    ASSERT_TRUE(oracle().read(bytes, expected));
    ASSERT_EQ(value, expected);
  }
}

TEST(resp_fuzz, random_replies_split_at_every_byte_are_read_as_by_hiredis) {
  harness::random dice(4);
  for (int round = 0; round < 300; ++round) {
    std::string bytes;
    for (int more = dice.between(1, 3); more > 0; --more) append_reply(dice, bytes, 1);
    const std::string_view all = bytes;
    for (std::size_t at = 0; at <= all.size(); ++at) {
      resp_reader ours;
      oracle theirs;
      for (const auto piece : {all.substr(0, at), all.substr(at)}) {
        ours.put(piece);
        resp_value value, expected;
        bool more = theirs.read(piece, expected);
        for (; more; more = theirs.read({}, expected)) {
          ASSERT_EQ(ours.next(value), progress::ready) << ours.problem();
          ASSERT_EQ(value, expected);
        }
        ASSERT_EQ(ours.next(value), progress::need_more) << ours.problem();
      }
      ASSERT_TRUE(ours.at_rest());
    }
  }
}

TEST(resp_fuzz, damaged_replies_are_refused_or_read_as_by_hiredis) {
  harness::random dice(2);
  int accepted = 0;
  for (int round = 0; round < 50'000; ++round) {
    std::string bytes;
    append_reply(dice, bytes, 0);
    for (int hits = dice.between(1, 3); hits > 0; --hits) {
      dice.pick(bytes) = dice.one_in(2) ? static_cast<char>(dice.between(0, 255))
                                        : "+-:$*\r\n019"[dice.between(0, 9)];
    }
    if (bytes.find_first_of("_#,(!=%~>|") != bytes.npos) continue;  // only RESP3 has these
    resp_reader ours;
    ours.put(bytes);
    resp_value value, expected;
    if (ours.next(value) != progress::ready) continue;
    ASSERT_TRUE(oracle().read(bytes, expected)) << bytes;
    ASSERT_EQ(value, expected) << bytes;
    ++accepted;
  }
  EXPECT_GT(accepted, 1000);
}

// As text, up to the point of the error.
std::string read_in_pieces(std::string_view bytes, const std::vector<std::size_t>& cuts) {
  resp_reader ours({.line_bytes = 64, .bulk_bytes = 256, .items = 64, .depth = 4});
  std::string seen;
  std::size_t from = 0;
  const auto take = [&](std::size_t until) {
    ours.put(bytes.substr(from, until - from));
    from = until;
    for (resp_value v; ours.next(v) == progress::ready;) {
      seen +=
          std::to_string(static_cast<int>(v.type)) + ' ' + v.text + std::to_string(v.items.size());
    }
  };
  for (const auto cut : cuts) take(cut);
  take(bytes.size());
  return seen + ours.problem().substr(0, 12);  // the rest depends on how many bytes had come
}

TEST(resp_fuzz, random_bytes_are_read_the_same_however_they_are_cut) {
  harness::random dice(3);
  std::size_t broken = 0;
  for (int round = 0; round < 50'000; ++round) {
    std::string bytes = random_text(dice, 96, false);
    for (char& c : bytes) {
      if (!dice.one_in(8)) c = "+-:$*_#,(!=%~>|\r\n0123"[dice.between(0, 20)];
    }
    std::vector<std::size_t> cuts;
    for (std::size_t at = 1; at < bytes.size(); at += dice.between<std::size_t>(1, 20))
      cuts.push_back(at);
    const auto whole = read_in_pieces(bytes, {});
    ASSERT_EQ(read_in_pieces(bytes, cuts), whole);
    broken += whole.empty() ? 0 : 1;
  }
  EXPECT_GT(broken, 1000u);
}

}  // namespace
