#include "family/record_codec.hpp"

#include <gtest/gtest.h>

#include "harness/seed.hpp"

namespace kernel_test {
namespace {

using namespace holdfast::store;
using holdfast::errc;
using holdfast::family::any_record;
using holdfast::family::decode;

constexpr int records = 3'000;

/// Records with all contents that a name, a note or a clock can produce.
class random_record {
 public:
  explicit random_record(harness::random& random) : random_(random) {}

  permits_record permits() {
    permits_record r;
    r.kind = static_cast<kind>(random_.between(0, 2));
    r.last_fence = random_.bits();
    for (int i = random_.between(0, 4); i > 0; --i) {
      r.holders.push_back({owner(), random_.between(1u, 1u << 28), random_.bits(), number(),
                           number(), text(), text(), random_.one_in(2)});
      r.capacity += r.holders.back().weight;
    }
    for (int i = random_.between(0, 4); i > 0; --i) r.queue.push_back(make_waiter());
    if (!random_.one_in(4)) return r;
    r.kind = kind::election;
    for (int i = random_.between(0, 4); i > 0; --i) {
      r.history.push_back({random_.bits(), number(), text()});
    }
    return r;
  }

  countdown_record countdown() {
    countdown_record r;
    r.count = random_.between(0u, 1'000'000u);
    r.remaining = random_.between(0u, r.count);
    r.expires_at = number();
    for (int i = random_.between(0, 4); i > 0; --i) r.arrivals.push_back({owner(), number()});
    for (int i = random_.between(0, 4); i > 0; --i) r.waiting.push_back(make_waiter());
    return r;
  }

  rate_record rate() {
    rate_record r;
    for (int i = random_.between(0, 4); i > 0; --i) {
      const auto unit = random_.between<std::int64_t>(1, 1'000'000);
      r.buckets.push_back({text(),
                           random_.between(0u, ~0u),
                           {unit, random_.between<std::int64_t>(1, 9), 1, unit * 7},
                           random_.between<std::int64_t>(0, most_units),
                           number(),
                           random_.one_in(2) ? random_.between<std::int64_t>(1, most_units) : 0});
    }
    for (int i = random_.between(0, 4); i > 0; --i) r.refunds.push_back({owner(), number()});
    return r;
  }

 private:
  waiter make_waiter() {
    return {owner(),
            random_.between(1u, 1u << 30),
            random_.between(-9, 9),
            number(),
            number(),
            number(),
            text(),
            text()};
  }
  owner_id owner() { return {random_.bits(), random_.bits()}; }
  // Any number that is read: from -2^60 to 2^60.
  std::int64_t number() { return static_cast<std::int64_t>(random_.bits()) >> 3; }

  // Control characters, quotes, parts of the format itself, and all bytes of UTF-8.
  std::string text() {
    std::string s;
    for (int i = random_.between(0, 12); i > 0; --i) {
      constexpr std::string_view nasty = "\"\\/,[]{}u0 \n\t%'";
      s += random_.one_in(2) ? nasty[random_.between<std::size_t>(0, nasty.size() - 1)]
                             : static_cast<char>(random_.between(0, 255));
    }
    return s;
  }

  harness::random& random_;
};

template <class Record>
std::string encoded(const Record& r) {
  std::string text;
  holdfast::family::encode(r, text);
  return text;
}

std::string encoded(const any_record& r) {
  return std::visit([](const auto& one) { return encoded(one); }, r);
}

/// Read and written again with the last fence of a lock that had the name before.
std::string written_again(const std::string& text) {
  std::uint64_t last_fence = 0;
  const auto read = decode(text, last_fence);
  if (const auto* const latch = std::get_if<countdown_record>(&*read)) {
    std::string again;
    holdfast::family::encode(*latch, again, last_fence);
    return again;
  }
  if (const auto* const limiter = std::get_if<rate_record>(&*read)) {
    std::string again;
    holdfast::family::encode(*limiter, again, last_fence);
    return again;
  }
  return encoded(*read);
}

std::string example() {
  permits_record r;
  r.kind = kind::semaphore;
  r.capacity = 12;
  r.last_fence = 1'700'000'000'000'000;
  r.holders.push_back({{1, 2}, 7, r.last_fence, 500, 600, "host:1:x", "say \"hi\"\n"});
  r.queue.push_back({{3, 4}, 5, -1, 30, 400, 700, "host:2:y", "caf\xc3\xa9"});
  return encoded(r);
}

errc reason(std::string_view text) {
  const auto r = decode(text);
  EXPECT_FALSE(r.ok()) << text;
  return r.ok() ? errc::internal : r.error().code;
}

TEST(record_codec, every_permits_record_comes_back_as_it_was) {
  harness::random random;
  for (int i = 0; i < records; ++i) {
    const permits_record r = random_record(random).permits();
    const auto back = decode(encoded(r));
    ASSERT_TRUE(back.ok()) << encoded(r);
    ASSERT_EQ(std::get<permits_record>(*back), r) << encoded(r);
  }
}

TEST(record_codec, every_countdown_record_comes_back_as_it_was) {
  harness::random random;
  for (int i = 0; i < records; ++i) {
    const countdown_record r = random_record(random).countdown();
    const auto back = decode(encoded(r));
    ASSERT_TRUE(back.ok()) << encoded(r);
    ASSERT_EQ(std::get<countdown_record>(*back), r) << encoded(r);
  }
}

TEST(record_codec, every_rate_record_comes_back_as_it_was) {
  harness::random random;
  for (int i = 0; i < records; ++i) {
    const rate_record r = random_record(random).rate();
    const auto back = decode(encoded(r));
    ASSERT_TRUE(back.ok()) << encoded(r);
    ASSERT_EQ(std::get<rate_record>(*back), r) << encoded(r);
  }
}

TEST(record_codec, a_rule_that_the_kernel_cannot_count_by_is_corrupt) {
  const auto with = [](const char* rule) {
    return "[1,\"rate_limiter\",1,0,[],[],[[\"a\",0," + std::string(rule) + ",0,0]],[]]";
  };
  EXPECT_TRUE(decode(with("1,1,1,1")).ok());
  for (const char* rule : {"0,1,1,1", "1,0,1,1", "1,1,0,1", "1,1,1,0", "2,1,1,1", "-1,1,1,1",
                           "1,1,1,4503599627370497", "1,1,4503599627370496,2"}) {
    EXPECT_EQ(reason(with(rule)), errc::corrupt) << rule;
  }
}

TEST(record_codec, a_bucket_stores_its_reservations_only_if_it_has_some) {
  const auto with = [](const char* end) {
    return "[1,\"rate_limiter\",1,0,[],[],[[\"a\",0,1,1,1,1,0,0" + std::string(end) + "]],[]]";
  };
  const auto read = decode(with(",7"));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(std::get<rate_record>(*read).buckets.at(0).reserved_until, 7);
  EXPECT_EQ(encoded(*decode(with(""))), with("")) << "as earlier builds read it";
  for (const char* end : {",0", ",-1", ",", ",7,7", ",4503599627370497"}) {
    EXPECT_EQ(reason(with(end)), errc::corrupt) << end;
  }
}

TEST(record_codec, a_text_that_was_cut_off_anywhere_is_refused) {
  const std::string whole = example();
  for (std::size_t size = 1; size < whole.size(); ++size) {
    const auto r = decode(std::string_view(whole).substr(0, size));
    ASSERT_FALSE(r.ok()) << whole.substr(0, size);
    ASSERT_TRUE(r.error().code == errc::corrupt || r.error().code == errc::foreign_data);
  }
}

TEST(record_codec, latches_and_limiters_keep_the_last_fence_of_a_lock_that_had_their_name) {
  for (const std::string text :
       {"[1,\"latch\",3,2,9,[],[],7]", "[1,\"rate_limiter\",0,7,[],[],[],[]]",
        "[1,\"mutex\",0,7,[],[]]"}) {
    std::uint64_t last_fence = 0;
    ASSERT_TRUE(decode(text, last_fence)) << text;
    EXPECT_EQ(last_fence, 7u) << text;
    EXPECT_EQ(written_again(text), text);
  }
  std::uint64_t last_fence = 7;
  ASSERT_TRUE(decode("[1,\"latch\",3,2,9,[],[]]", last_fence));
  EXPECT_EQ(last_fence, 0u);
  EXPECT_EQ(reason("[1,\"latch\",3,2,9,[],[],0]"), errc::corrupt);
}

// Read as itself or not at all: never as something that would be written in another way.
TEST(record_codec, a_text_with_one_wrong_byte_is_refused_or_read_literally) {
  for (const std::string& whole : {example(), std::string("[1,\"latch\",3,2,9,[],[],7]"),
                                   std::string("[1,\"rate_limiter\",0,7,[],[],[],[]]")}) {
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (int byte = 0; byte < 256; ++byte) {
        std::string damaged = whole;
        damaged[at] = static_cast<char>(byte);
        const auto r = decode(damaged);
        if (r.ok()) {
          ASSERT_EQ(written_again(damaged), damaged);
        } else {
          ASSERT_FALSE(r.error().what.empty());
        }
      }
    }
  }
}

TEST(record_codec, random_damage_never_crashes_it) {
  harness::random random;
  for (int i = 0; i < 30'000; ++i) {
    std::string text = random.one_in(3)   ? encoded(random_record(random).permits())
                       : random.one_in(2) ? encoded(random_record(random).countdown())
                                          : encoded(random_record(random).rate());
    for (int hits = random.between(1, 4); hits > 0 && !text.empty(); --hits) {
      const auto at = random.between<std::size_t>(0, text.size() - 1);
      switch (random.between(0, 3)) {
        case 0:
          text[at] = static_cast<char>(random.between(0, 255));
          break;
        case 1:
          text.erase(at, random.between<std::size_t>(1, 20));
          break;
        case 2:
          text.insert(at, text.substr(random.between<std::size_t>(0, at), 20));
          break;
        default:
          text.resize(at);
          break;
      }
    }
    if (const auto r = decode(text); r.ok()) {
      ASSERT_TRUE(decode(encoded(*r)).ok()) << text;
    }
  }
}

TEST(record_codec, a_newer_format_is_reported_for_any_content) {
  EXPECT_EQ(reason("[2,\"mutex\",1,5,[],[]]"), errc::newer_format);
  EXPECT_EQ(reason("[2,{\"anything\":true}]"), errc::newer_format);
  EXPECT_EQ(reason("[999999]"), errc::newer_format);
}

TEST(record_codec, foreign_data_is_reported_as_foreign) {
  for (const char* text : {"hello", "{}", "\"1\"", "[]", "[\"mutex\"]", "[0,\"mutex\",1,5,[],[]]",
                           "[-1,\"mutex\",1,5,[],[]]", "null", " [1]", "\x01\x02", "[x"}) {
    EXPECT_EQ(reason(text), errc::foreign_data) << text;
  }
}

TEST(record_codec, an_impossible_record_is_corrupt) {
  for (const char* text : {
           "[1]",
           "[1,\"mutex\"]",
           "[1,\"mutant\",1,5,[],[]]",
           "[1,\"mutex\",1,5,[],[]",
           "[1,\"mutex\",1,5,[],[]]x",
           "[1,\"mutex\",1,5,[],[]] ",
           "[1,\"mutex\",-1,5,[],[]]",
           "[1,\"mutex\",1,5,[]]",
           "[1,\"mutex\",4294967296,5,[],[]]",
           "[1,\"mutex\",1,18446744073709551616,[],[]]",
           "[1,\"latch\",1,2,0,[],[]]",
           "[1,\"mutex\",1,5,[[\"0\",1,5,9,9,\"\",\"\"]],[]]",
           // A holder of weight 2 where the capacity is 1.
           "[1,\"mutex\",1,5,[[\"00000000000000010000000000000002\",2,5,9,9,\"\",\"\"]],[]]",
           // An escape that ends in the middle.
           "[1,\"mutex\",1,5,[[\"00000000000000010000000000000002\",1,5,9,9,\"\\u00",
       }) {
    EXPECT_EQ(reason(text), errc::corrupt) << text;
  }
}

TEST(record_codec, a_note_longer_than_any_of_ours_is_corrupt) {
  const auto with_note = [](std::size_t bytes) {
    return "[1,\"mutex\",1,7,[[\"00000000000000010000000000000001\",1,7,9,9,\"p\",\"" +
           std::string(bytes, 'x') + "\",0]],[]]";
  };
  EXPECT_TRUE(decode(with_note(4'096)));
  EXPECT_EQ(reason(with_note(4'097)), errc::corrupt);
  EXPECT_EQ(reason(with_note(60'000'000)), errc::corrupt);
}

// The sum and the difference of two times must be valid times, too.
TEST(record_codec, a_number_that_no_sum_has_room_for_is_corrupt) {
  const std::string who = "\"00000000000000010000000000000001\",1,";
  const std::string places[][2] = {
      {"[1,\"mutex\",1,7,[[" + who + "7,", ",9,\"p\",\"n\",0]],[]]"},
      {"[1,\"mutex\",1,7,[[" + who + "7,9,", ",\"p\",\"n\",0]],[]]"},
      {"[1,\"mutex\",1,7,[],[[" + who + "0,", ",9,9,\"p\",\"n\",0]]]"},
      {"[1,\"mutex\",1,7,[],[[" + who + "0,9,", ",9,\"p\",\"n\",0]]]"},
      {"[1,\"mutex\",1,7,[],[[" + who + "0,9,9,", ",\"p\",\"n\",0]]]"},
      {"[1,\"election\",0,7,[],[],[[7,", ",\"n\"]]]"},
      {"[1,\"latch\",3,2,", ",[],[]]"},
      {"[1,\"latch\",3,2,9,[[\"00000000000000010000000000000001\",", "]],[]]"},
      {"[1,\"rate_limiter\",1,7,[],[],[[\"a\",0,1,1,1,9,5,", "]],[]]"},
      {"[1,\"rate_limiter\",0,7,[],[],[],[[\"00000000000000010000000000000001\",", "]]]"},
  };
  for (const auto& [before, behind] : places) {
    for (const char* fits : {"1152921504606846976", "-1152921504606846976"}) {
      EXPECT_TRUE(decode(before + fits + behind)) << before << fits << behind;
    }
    for (const char* odd : {"1152921504606846977", "-1152921504606846977", "9223372036854775807",
                            "-9223372036854775808"}) {
      EXPECT_EQ(reason(before + odd + behind), errc::corrupt) << before << odd << behind;
    }
  }
}

TEST(record_codec, its_failures_contain_advice) {
  EXPECT_NE(decode("[2]").error().what.find("update"), std::string::npos);
  EXPECT_FALSE(decode("hello").error().what.empty());
  EXPECT_FALSE(decode("[1,\"mutex\"").error().what.empty());
}

TEST(record_codec, the_text_matches_the_header) {
  permits_record r;
  r.capacity = 1;
  r.last_fence = 5;
  r.holders.push_back({{1, 2}, 1, 5, 10, 11, "p", "n", true});
  r.queue.push_back({{3, 4}, 1, 2, 30, 40, 50, "q", "", false});
  EXPECT_EQ(encoded(r),
            "[1,\"mutex\",1,5,[[\"00000000000000010000000000000002\",1,5,10,11,\"p\",\"n\",1]],"
            "[[\"00000000000000030000000000000004\",1,2,30,40,50,\"q\",\"\",0]]]");
  EXPECT_EQ(encoded(countdown_record{3, 2, 9, {{{1, 2}, 7}}, {}}),
            "[1,\"latch\",3,2,9,[[\"00000000000000010000000000000002\",7]],[]]");
}

TEST(record_codec, it_appends_to_the_buffer) {
  std::string text = "x";
  holdfast::family::encode(permits_record{}, text);
  EXPECT_TRUE(text.starts_with("x[1,"));
}

}  // namespace
}  // namespace kernel_test
