#include <dlfcn.h>
#include <zookeeper/zookeeper.h>

#include <functional>
#include <holdfast/holdfast.hpp>
#include <string_view>
#include <utility>

#include "harness/eventually.hpp"
#include "store/zookeeper/fixture.hpp"
#include "store/zookeeper/zookeeper.hpp"

// The record of a name, and the next one of the same name. Only the order of requests matters here,
// so each pause is a write that the test sends later.
namespace zookeeper_test {
namespace {

using holdfast::store::contender_store;

/// Called after the first of the two reads of a record was answered, before the second is sent.
struct between_reads {
  std::function<void()> act{};
  int asked = 0;

  void before(zhandle_t* session, std::string_view path) {
    if (!act || !(path.ends_with("/record") || path.ends_with("/life")) || ++asked < 2) return;
    struct Stat stat{};
    (void)zoo_exists(session, "/", 0, &stat);  // answered after the earlier requests
    std::exchange(act, {})();
  }
};
between_reads& between() {
  static thread_local between_reads mine;
  return mine;
}

class zookeeper_records : public testing::Test {
 protected:
  std::unique_ptr<contender_store> session() const {
    holdfast::store::zookeeper::zookeeper_options options;
    options.hosts = calm_ensemble().hosts();
    options.base = base_;
    options.clock = &holdfast::real_clock();
    return open_zookeeper(options).value();
  }
  /// Makes the record and writes it this many times more; returns its version.
  static auto written(contender_store& by, int times) {
    auto version = by.replace("n", "made", by.record("n", false, nullptr)->version, 0).value();
    for (int i = 0; version && i < times; ++i)
      version = by.replace("n", "more", *version, 0).value();
    return version.value();
  }
  static std::string text(contender_store& by) { return by.record("n", false, nullptr)->text; }
  /// Acts as an older build, which has no lives: the record is all that exists.
  void make_by_older_build() const {
    if (!tree_.has(path_)) tree_.make(path_);
    tree_.make(path_ + "/record");
    ASSERT_TRUE(tree_.write_if(path_, path_ + "/record", "older"));
  }

  const std::string base_ = fresh_base();
  const std::string path_ = base_ + "/n";
  const tree tree_{calm_ensemble().hosts()};
  const std::unique_ptr<contender_store> paused_ = session();
  const std::unique_ptr<contender_store> other_ = session();
};

TEST_F(zookeeper_records, a_late_write_does_not_replace_the_next_record_of_the_name) {
  for (int writes = 0; writes < 3; ++writes) {
    const auto first = written(*other_, writes);
    const auto seen = paused_->record("n", false, nullptr).value();
    ASSERT_TRUE(other_->replace("n", {}, first, 0).value());
    const auto second = written(*other_, writes);
    EXPECT_FALSE(paused_->replace("n", "late", seen.version, 0).value()) << writes;
    EXPECT_FALSE(paused_->replace("n", {}, seen.version, 0).value()) << writes;
    EXPECT_EQ(text(*other_), writes == 0 ? "made" : "more");
    ASSERT_TRUE(other_->replace("n", {}, second, 0).value());
  }
}

TEST_F(zookeeper_records, the_version_returned_by_a_write_is_valid_for_that_record_only) {
  const auto mine = written(*paused_, 1);
  ASSERT_TRUE(other_->replace("n", {}, other_->record("n", false, nullptr)->version, 0).value());
  (void)written(*other_, 1);
  EXPECT_FALSE(paused_->replace("n", "late", mine, 0).value());
  EXPECT_FALSE(paused_->replace("n", {}, mine, 0).value());
  EXPECT_EQ(text(*other_), "more");
}

TEST_F(zookeeper_records, a_record_whose_container_was_removed_meanwhile_is_another_one) {
  const auto first = written(*other_, 0);
  const auto seen = paused_->record("n", false, nullptr).value();
  ASSERT_TRUE(other_->replace("n", {}, first, 0).value());
  harness::eventually("the server removes the empty container",
                      [&] { return tree_.children(base_).empty(); });
  (void)written(*other_, 0);
  EXPECT_FALSE(paused_->replace("n", "late", seen.version, 0).value());
  EXPECT_EQ(text(*other_), "made");
}

TEST_F(zookeeper_records, a_removed_record_leaves_no_node) {
  ASSERT_TRUE(other_->replace("n", {}, written(*other_, 2), 0).value());
  EXPECT_TRUE(tree_.children(path_).empty());
}

TEST_F(zookeeper_records, a_late_write_to_the_record_of_an_older_build_does_not_replace_the_next) {
  make_by_older_build();
  const auto seen = paused_->record("n", false, nullptr).value();
  EXPECT_EQ(seen.text, "older");
  ASSERT_TRUE(other_->replace("n", {}, seen.version, 0).value());
  (void)written(*other_, 1);
  EXPECT_FALSE(paused_->replace("n", "late", seen.version, 0).value());
  EXPECT_FALSE(paused_->replace("n", {}, seen.version, 0).value());
  EXPECT_EQ(text(*other_), "more");
}

TEST_F(zookeeper_records, the_record_of_an_older_build_is_replaced_and_removed) {
  make_by_older_build();
  auto now = other_->replace("n", "newer", other_->record("n", false, nullptr)->version, 0).value();
  ASSERT_TRUE(now);
  EXPECT_EQ(paused_->record("n", false, nullptr)->version, *now);
  ASSERT_TRUE(tree_.write_if(path_, path_ + "/record", "older again")) << "it still can";
  EXPECT_FALSE(other_->replace("n", "late", *now, 0).value());
  ASSERT_TRUE(paused_->replace("n", {}, paused_->record("n", false, nullptr)->version, 0).value());
  EXPECT_TRUE(tree_.children(path_).empty());
}

// An older build removes only the record.
TEST_F(zookeeper_records, a_record_can_be_made_where_an_older_build_removed_one) {
  (void)written(*other_, 0);
  tree_.remove(path_ + "/record");
  EXPECT_FALSE(other_->record("n", false, nullptr)->version.is_of_a_record());
  EXPECT_TRUE(other_->contenders("n", contender_store::as_of::latest, nullptr)->empty());
  EXPECT_TRUE(other_->names()->empty()) << "nobody uses the name";
  ASSERT_TRUE(paused_->replace("n", {}, written(*paused_, 1), 0).value());
  EXPECT_TRUE(tree_.children(path_).empty());
}

TEST_F(zookeeper_records, a_record_that_is_read_in_the_time_between_two_lives_is_read_again) {
  const auto first = written(*other_, 0);
  between() = {[&] {
    ASSERT_TRUE(other_->replace("n", {}, first, 0).value());
    ASSERT_TRUE(other_->replace("n", "next", {}, 0).value());
  }};
  const auto seen = paused_->record("n", false, nullptr).value();
  ASSERT_FALSE(between().act) << "the two reads were not met";
  EXPECT_FALSE(paused_->replace("n", "late", seen.version, 0).value());
  EXPECT_EQ(text(*other_), "next");
  const auto again = paused_->record("n", false, nullptr).value();
  EXPECT_TRUE(paused_->replace("n", "later", again.version, 0).value());
}

TEST_F(zookeeper_records, the_later_of_two_creators_of_a_record_gets_an_error) {
  const auto none = paused_->record("n", false, nullptr)->version;
  (void)written(*other_, 0);
  EXPECT_FALSE(paused_->replace("n", "late", none, 0).value());
  EXPECT_EQ(text(*paused_), "made");
}

}  // namespace

// Runs what a test has arranged, then the client library's own function.
extern "C" int zoo_aget(zhandle_t* session, const char* path, int watch,
                        data_completion_t completion, const void* data) {
  static auto* const next = reinterpret_cast<decltype(&zoo_aget)>(dlsym(RTLD_NEXT, "zoo_aget"));
  between().before(session, path);
  return next(session, path, watch, completion, data);
}

extern "C" int zoo_aget_children(zhandle_t* session, const char* path, int watch,
                                 strings_completion_t completion, const void* data) {
  static auto* const next =
      reinterpret_cast<decltype(&zoo_aget_children)>(dlsym(RTLD_NEXT, "zoo_aget_children"));
  between().before(session, path);
  return next(session, path, watch, completion, data);
}

}  // namespace zookeeper_test
