#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <future>
#include <set>
#include <thread>

#include "fixture.hpp"
#include "harness/concurrently.hpp"
#include "store/sqlite/connection.hpp"

// Several users of one file. Only root can act as another user: without root these tests have one
// user.
namespace sqlite_test {
namespace {

namespace fs = std::filesystem;

constexpr gid_t group = 64'999;
constexpr uid_t one_user = 64'001, other_user = 64'002;

/// In a child process of a user who is in the group, too, and whose files are for nobody else.
bool as(uid_t user, const std::function<bool()>& body) {
  return in_child([&] {
    ::umask(077);
    if (::geteuid() != 0) return body();
    const gid_t more = group;
    return ::setgroups(1, &more) == 0 && ::setresgid(user, user, user) == 0 &&
           ::setresuid(user, user, user) == 0 && body();
  });
}

bool lock_something(const std::string& file, const std::string& shared_with = {}) {
  sqlite_options options;
  options.path = file;
  options.group = shared_with;
  rule change = increments();
  return open(options)->transact("name", change).ok();
}

class users : public sqlite_store {
 protected:
  users() {
    fs::permissions(dir_.path(), fs::perms{0755});
    fs::create_directory(folder_);
    give(folder_, 0);
    EXPECT_EQ(::chmod(folder_.c_str(), 02770), 0);
  }
  static void give(const std::string& what, uid_t user) {
    const bool as_root = ::geteuid() == 0;
    EXPECT_TRUE(!as_root || ::chown(what.c_str(), user, group) == 0) << what;
  }
  std::string group_of_the_folder() const {
    struct stat found{};
    ::stat(folder_.c_str(), &found);
    return std::to_string(found.st_gid);
  }
  sqlite_options reading() const {
    sqlite_options options;
    options.path = file_;
    options.access = "read";
    return options;
  }
  std::set<std::string> everything() const {
    std::set<std::string> all;
    for (const auto& one : fs::recursive_directory_iterator(dir_.path())) all.insert(one.path());
    return all;
  }

  const std::string folder_ = path("shared");
  const std::string file_ = folder_ + "/locks.db";
};

TEST_F(users, the_members_of_a_group_share_a_file_that_any_of_them_made) {
  EXPECT_TRUE(as(one_user, [&] { return lock_something(file_, group_of_the_folder()); }));
  EXPECT_TRUE(as(other_user, [&] { return lock_something(file_, group_of_the_folder()); }));
  EXPECT_TRUE(as(one_user, [&] { return lock_something(file_); })) << "it is shared for good";
  EXPECT_EQ(record_of(*open(file_), "name"), "3");
}

TEST_F(users, a_file_made_by_hand_for_a_group_may_be_opened_first_by_any_member) {
  write_bytes(file_, "");
  give(file_, one_user);
  fs::permissions(file_, fs::perms{0660});
  EXPECT_TRUE(as(other_user, [&] { return lock_something(file_); }));
  EXPECT_TRUE(as(one_user, [&] { return lock_something(file_); }));
}

TEST_F(users, the_folder_beside_a_file_that_was_given_to_a_group_is_the_group_s_too) {
  EXPECT_EQ(::chmod(folder_.c_str(), 0770), 0);  // and passes no group on
  write_bytes(file_, "");
  give(file_, one_user);
  fs::permissions(file_, fs::perms{0660});
  EXPECT_TRUE(as(one_user, [&] { return lock_something(file_); }));
  struct stat beside{};
  ASSERT_EQ(::stat((file_ + "-holdfast").c_str(), &beside), 0);
  EXPECT_EQ(std::to_string(beside.st_gid), group_of_the_folder());
}

TEST_F(users, all_that_is_made_beside_the_file_belongs_to_the_group) {
  EXPECT_TRUE(as(one_user, [&] {
    sqlite_options options;
    options.path = file_;
    options.group = group_of_the_folder();
    const session open_one = open(options);
    rule change = increments();
    if (!open_one->transact("name", change)) return false;
    bool good = true;
    for (const auto& one : fs::recursive_directory_iterator(folder_)) {
      struct stat found{};
      ::stat(one.path().c_str(), &found);
      const bool passes_on = !S_ISDIR(found.st_mode) || (found.st_mode & S_ISGID) != 0;
      const bool shared = std::to_string(found.st_gid) == options.group && passes_on &&
                          (found.st_mode & 0620) == 0620 && (found.st_mode & 0007) == 0;
      if (!shared) ADD_FAILURE() << one.path();
      good = good && shared;
    }
    return good;
  }));
}

TEST_F(users, a_group_that_the_folder_does_not_pass_on_is_refused_with_the_remedy) {
  sqlite_options options;
  options.path = file_;
  options.group = group_of_the_folder();
  EXPECT_EQ(::chmod(folder_.c_str(), 0770), 0);
  const failure f = refusal(options);
  EXPECT_EQ(f.code, errc::not_permitted);
  EXPECT_NE(f.what.find("chmod g+rwxs " + folder_), std::string::npos) << f.what;
  options.group = "no such group";
  EXPECT_EQ(refusal(options).code, errc::invalid_argument);
  EXPECT_FALSE(fs::exists(file_));
}

TEST_F(users, one_message_names_all_the_rights_that_are_missing) {
  (void)open(file_);
  for (const auto& one : fs::recursive_directory_iterator(folder_))
    ::chmod(one.path().c_str(), one.is_directory() ? 0755 : 0644);
  ::chmod(folder_.c_str(), 0755);
  const as_ordinary_user now;
  const failure f = refusal(file_);
  EXPECT_EQ(f.code, errc::read_only) << f.what;
  for (const std::string& one :
       {"the folder " + folder_ + ",", "write to " + file_ + ",",
        "the folder " + file_ + "-holdfast,", std::string("/writer-queue-")}) {
    EXPECT_NE(f.what.find(one), std::string::npos) << one << " in: " << f.what;
  }
}

TEST_F(users, a_read_only_user_sees_the_locks_of_others_and_changes_nothing) {
  session writer = open(file_);
  rule change = writes("[held]");
  ASSERT_TRUE(writer->transact("name", change).ok());
  for (const auto& one : fs::recursive_directory_iterator(folder_))
    ::chmod(one.path().c_str(), one.is_directory() ? 0755 : 0644);
  ::chmod(folder_.c_str(), 0755);
  for (const bool at_rest : {false, true}) {
    if (at_rest) writer.reset();
    const auto before = everything();
    const as_ordinary_user now;
    const session reader = open(reading());
    EXPECT_EQ(record_of(*reader, "name"), "[held]");
    const auto all = reader->entries();
    ASSERT_TRUE(all.ok());
    EXPECT_EQ(all->size(), 1U);
    rule forbidden = writes("mine");
    const auto refused = reader->transact("name", forbidden);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::read_only);
    EXPECT_EQ(everything(), before);
  }
}

TEST_F(users, a_missing_file_that_is_only_read_is_reported_and_not_made) {
  const auto before = everything();
  const failure f = refusal(reading());
  EXPECT_EQ(f.code, errc::unavailable);
  EXPECT_NE(f.what.find("there is no database at " + file_), std::string::npos) << f.what;
  EXPECT_EQ(everything(), before);
}

TEST_F(users, a_write_during_a_read_of_an_idle_file_leaves_the_log) {
  const auto has_log = [&] { return fs::exists(file_ + "-wal"); };
  EXPECT_TRUE(lock_something(file_));
  EXPECT_FALSE(has_log()) << "nobody has it open";
  {
    holdfast::store::sqlite::connection reader;
    EXPECT_TRUE(reader.open_to_read(file_, true).ok());
    EXPECT_TRUE(reader.keep_log());
    EXPECT_TRUE(lock_something(file_));
    EXPECT_TRUE(has_log()) << "the reader cannot know that the file has changed";
  }
  EXPECT_TRUE(lock_something(file_));
  EXPECT_FALSE(has_log());
}

TEST_F(users, a_reader_waits_for_a_process_that_has_the_file_for_itself) {
  EXPECT_TRUE(lock_something(file_));
  std::future<bool> read;
  {
    holdfast::store::sqlite::connection alone;
    ASSERT_TRUE(alone.open(file_).ok());
    for (const char* const what : {"PRAGMA locking_mode=EXCLUSIVE", "BEGIN IMMEDIATE", "COMMIT"})
      ASSERT_EQ(::sqlite3_exec(alone.get(), what, nullptr, nullptr, nullptr), SQLITE_OK) << what;
    read = harness::concurrently([&] {
      auto options = reading();
      options.busy_timeout = std::chrono::minutes(1);
      return record_of(*open(options), "name") == "1";
    });
    EXPECT_EQ(read.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout)
        << "it is for another alone";
  }
  EXPECT_TRUE(read.get());
}

// In a file of many pages that are written whenever the last session leaves.
TEST_F(users, a_reader_never_sees_half_of_a_change) {
  constexpr int records = 60;
  const auto change_all = [&](const std::string& to) {
    const auto store = open(sqlite_options{.path = file_});
    for (int i = 0; i < records; ++i) {
      rule change = writes(to + std::string(6000, ' '));
      if (!store->transact(std::to_string(i), change).ok()) return false;
    }
    return true;
  };
  ASSERT_TRUE(change_all("0"));
  std::atomic<bool> over{false};
  std::jthread writer([&] {
    for (int round = 1; round <= 4; ++round) EXPECT_TRUE(change_all(std::to_string(round)));
    over = true;
  });
  while (!over) {
    const auto found = open(reading())->entries();
    ASSERT_TRUE(found) << found.error().what;
    ASSERT_EQ(found->size(), std::size_t{records});
    // The writer goes through the records in order: those before one are as new, those after it not
    // newer.
    std::vector<int> rounds(records);
    for (const auto& e : *found)
      rounds.at(static_cast<std::size_t>(std::stoi(e.name))) = std::stoi(e.record);
    EXPECT_TRUE(std::is_sorted(rounds.rbegin(), rounds.rend()));
  }
}

TEST_F(users, a_reader_sees_each_change) {
  const session writer = open(file_);
  const session reader = open(reading());
  for (const char* const next : {"one", "two"}) {
    rule change = writes(next);
    ASSERT_TRUE(writer->transact("name", change).ok());
    EXPECT_EQ(record_of(*reader, "name"), next);
  }
}

}  // namespace
}  // namespace sqlite_test
