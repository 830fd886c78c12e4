#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <holdfast/holdfast.hpp>
#include <optional>
#include <utility>

#include "fixture.hpp"
#include "harness/hung_store.hpp"
#include "harness/passing_on.hpp"
#include "harness/process.hpp"

namespace sqlite_test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class faults : public sqlite_store {
 protected:
  session open_watchful() {
    sqlite_options options;
    options.path = path();
    options.look_at_path_every = 0us;
    return open(std::move(options));
  }
  static void expect_failure(const status& outcome, errc code, const std::string& words) {
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().code, code) << outcome.error().what;
    EXPECT_NE(outcome.error().what.find(words), std::string::npos) << outcome.error().what;
    EXPECT_FALSE(outcome.error().outcome_unknown) << outcome.error().what;
  }
};

// ---- no room

void limit_file_size(std::uintmax_t bytes) {
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = std::min<rlim_t>(bytes, limit.rlim_max);
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

struct fate {
  long written = 0;
  failure last;
};

fate write_until_it_fails(state_store& store) {
  for (fate f;; ++f.written) {
    rule change = writes(std::to_string(f.written + 1) + std::string(5'000, '.'));
    if (auto outcome = store.transact("name", change); !outcome) {
      f.last = outcome.error();
      return f;
    }
  }
}

// In a process of its own, because the limit applies to all of it.
const harness::role hog{
    "hog", [](const auto& args) {
      ::signal(SIGXFSZ, SIG_IGN);
      const session store = open(args.at(0));
      limit_file_size(fs::file_size(args.at(0) + "-wal") + 300'000);
      for (int again = 0; again < 3; ++again) {
        const fate f = write_until_it_fails(*store);
        harness::say(std::to_string(static_cast<int>(f.last.code)));
        harness::say(f.last.what);
        harness::say(std::to_string(f.written - std::stol(record_of(*store, "name"))));
        limit_file_size(RLIM_INFINITY);
        rule change = writes("0");
        harness::say(store->transact("name", change).ok() ? "works" : "broken");
        limit_file_size(fs::file_size(args.at(0) + "-wal") + 100'000);
      }
      return 0;
    }};

TEST_F(faults, a_full_disk_loses_nothing_and_is_forgotten_when_there_is_room) {
  harness::child other{"hog", {path()}};
  for (int again = 0; again < 3; ++again) {
    EXPECT_EQ(other.expect_line(), std::to_string(static_cast<int>(errc::no_space)));
    const std::string what = other.expect_line();
    EXPECT_NE(what.find("free some space"), std::string::npos) << what;
    EXPECT_EQ(other.expect_line(), "0");  // everything acknowledged is there, and nothing else
    EXPECT_EQ(other.expect_line(), "works");
  }
  EXPECT_EQ(other.wait(), 0);
  EXPECT_EQ(shell(path()).ask_one("PRAGMA integrity_check"), "ok");
}

const harness::role opener{
    "opener_without_room", [](const auto& args) {
      ::signal(SIGXFSZ, SIG_IGN);
      limit_file_size(1'000);
      harness::say(std::to_string(static_cast<int>(refusal(args.at(0)).code)));
      limit_file_size(RLIM_INFINITY);
      rule change = increments();
      harness::say(open(args.at(0))->transact("name", change).ok() ? "works" : "broken");
      return 0;
    }};

TEST_F(faults, a_file_that_could_not_be_made_for_lack_of_room_can_be_made_later) {
  harness::child other{"opener_without_room", {path()}};
  EXPECT_EQ(other.expect_line(), std::to_string(static_cast<int>(errc::no_space)));
  EXPECT_EQ(other.expect_line(), "works");
  EXPECT_EQ(other.wait(), 0);
}

// ---- other programs at the file

TEST_F(faults, a_transaction_of_another_program_makes_the_store_unavailable_until_it_ends) {
  sqlite_options impatient;
  impatient.path = path();
  impatient.busy_timeout = 20ms;
  const session store = open(impatient);
  shell other{path()};
  other.run("BEGIN IMMEDIATE");
  rule change = increments();
  expect_failure(store->transact("name", change), errc::unavailable, "another program keeps");
  const std::vector<state_store::step> steps{{"name", &change}};
  expect_failure(store->transact(steps).front(), errc::unavailable, "another program keeps");
  other.run("COMMIT");
  EXPECT_TRUE(store->transact("name", change).ok());
  EXPECT_EQ(number_of(*store, "name"), 1);
}

TEST_F(faults, calls_end_at_their_limit_while_a_transaction_of_another_program_lasts) {
  const std::string url = "sqlite:" + path();
  const session makes_the_tables = open(path());
  shell other{path()};
  const harness::hang how{[&] { other.run("BEGIN IMMEDIATE"); }, [&] { other.run("COMMIT"); }};
  harness::calls_end_at_their_limit_while_it_hangs(how, url + "?busy_timeout=1h", url);
  harness::tries_time_out_while_it_hangs(how, url + "?busy_timeout=200ms");
}

const harness::role stopped{"stopped_in_a_transaction", [](const auto& args) {
                              const session store = open(args.at(0));
                              rule change{[](const std::string&, std::string&) {
                                harness::say("writes");
                                (void)harness::hear();
                                return nullptr;
                              }};
                              return store->transact("name", change).ok() ? 0 : 1;
                            }};

TEST_F(faults, calls_end_at_their_limit_while_a_writer_is_stopped) {
  const std::string url = "sqlite:" + path();
  std::optional<harness::child> writer;
  const auto begin = [&] {
    writer.emplace("stopped_in_a_transaction", std::vector{path()});
    EXPECT_EQ(writer->expect_line(), "writes");
    writer->stop();
  };
  const auto end = [&] {
    writer->resume();
    writer->tell("on");
    EXPECT_EQ(writer->wait(), 0);
  };
  harness::calls_end_at_their_limit_while_it_hangs({begin, end}, url + "?busy_timeout=1h", url);
  harness::tries_time_out_while_it_hangs({begin, end}, url + "?busy_timeout=200ms");
}

TEST_F(faults, readers_of_another_program_keep_no_session_out) {
  const session store = open(path());
  shell other{path()};
  other.run("BEGIN");
  EXPECT_EQ(other.ask_one("SELECT count(*) FROM holdfast_locks"), "0");
  rule change = increments();
  EXPECT_TRUE(store->transact("name", change).ok());
  EXPECT_EQ(other.ask_one("SELECT count(*) FROM holdfast_locks"), "0");
}

TEST_F(faults, rows_that_another_program_writes_and_removes_are_seen) {
  const session store = open(path());
  shell other{path()};
  other.run("INSERT INTO holdfast_locks VALUES ('name', '41')");
  rule change = increments();
  EXPECT_TRUE(store->transact("name", change).ok());
  EXPECT_EQ(number_of(*store, "name"), 42);
  other.run("DELETE FROM holdfast_locks");
  EXPECT_TRUE(store->transact("name", change).ok());
  EXPECT_EQ(number_of(*store, "name"), 1);
}

// ---- the file itself

TEST_F(faults, a_truncated_file_is_noticed_by_its_sessions_and_by_new_ones) {
  for (const long size : {0L, 100L}) {
    const std::string file = path(std::to_string(size));
    sqlite_options options;
    options.path = file;
    options.look_at_path_every = 0us;
    const session store = open(options);
    rule change = writes("text");
    ASSERT_TRUE(store->transact("name", change).ok());
    ASSERT_EQ(::truncate(file.c_str(), size), 0);
    const auto went_on = store->transact("name", change);
    ASSERT_FALSE(went_on.ok());
    EXPECT_EQ(went_on.error().code, errc::corrupt);
    EXPECT_NE(went_on.error().what.find("was truncated to " + std::to_string(size)),
              std::string::npos)
        << went_on.error().what;
    EXPECT_NE(refusal(file).what.find("was truncated"), std::string::npos);
  }
}

TEST_F(faults, a_deleted_file_whose_log_stays_is_made_anew) {
  const session store = open_watchful();
  rule change = increments();
  ASSERT_TRUE(store->transact("name", change).ok());
  fs::remove(path());
  ASSERT_TRUE(fs::exists(path() + "-wal"));
  const session anew = open(path());
  EXPECT_TRUE(anew->transact("name", change).ok());
}

TEST_F(faults, a_deleted_file_is_noticed) {
  const session store = open_watchful();
  rule change = increments();
  ASSERT_TRUE(store->transact("name", change).ok());
  fs::remove(path());
  expect_failure(store->transact("name", change), errc::unavailable, "was deleted");
  const std::vector<state_store::step> steps{{"name", &change}};
  expect_failure(store->transact(steps).front(), errc::unavailable, "was deleted");
  EXPECT_FALSE(store->entries().ok());
  EXPECT_EQ(change.calls, 1);
}

TEST_F(faults, a_replaced_file_is_noticed_and_a_restored_one_works_again) {
  const session store = open_watchful();
  rule change = increments();
  ASSERT_TRUE(store->transact("name", change).ok());
  fs::rename(path(), path("aside"));
  write_bytes(path(), "");
  expect_failure(store->transact("name", change), errc::unavailable, "replaced");
  fs::rename(path("aside"), path());
  EXPECT_TRUE(store->transact("name", change).ok());
  EXPECT_EQ(number_of(*store, "name"), 2);
}

TEST_F(faults, by_default_the_path_is_checked_within_a_bounded_number_of_operations) {
  const session store = open(path());
  fs::remove(path());
  rule change = increments();
  int done = 0;
  while (done < 1'000'000 && store->transact("name", change)) ++done;
  EXPECT_LT(done, 1'000'000);
}

TEST_F(faults, damage_is_reported_and_the_file_is_not_made_worse) {
  {
    const session store = open(path());
    for (int i = 0; i < 500; ++i) {
      rule change = writes(std::string(200, 'x'));
      ASSERT_TRUE(store->transact("name " + std::to_string(i), change).ok());
    }
  }
  std::string bytes = bytes_of(path());
  for (std::size_t i = 4'096; i < bytes.size(); i += 100) bytes[i] = '\xff';
  write_bytes(path(), bytes);
  errc code{};
  std::string what;
  for (int i = 0; i < 500 && code == errc{}; ++i) {
    auto opened = holdfast::store::sqlite::open_sqlite({.path = path()});
    rule change = increments();
    const auto outcome =
        opened ? (*opened)->transact("name " + std::to_string(i), change) : status{opened.error()};
    if (!outcome) code = outcome.error().code, what = outcome.error().what;
  }
  EXPECT_EQ(code, errc::corrupt) << what;
  EXPECT_NE(what.find("remove it"), std::string::npos) << what;
}

TEST_F(faults, a_truncated_file_is_corrupt_or_not_ours) {
  {
    const session store = open(path());
    for (int i = 0; i < 100; ++i) {
      rule change = writes(std::string(200, 'x'));
      ASSERT_TRUE(store->transact("name " + std::to_string(i), change).ok());
    }
  }
  const std::string bytes = bytes_of(path());
  for (const std::size_t size : {std::size_t{50}, std::size_t{100}, std::size_t{2'048},
                                 std::size_t{3'000}, bytes.size() / 2}) {
    write_bytes(path(), bytes.substr(0, size));
    auto opened = holdfast::store::sqlite::open_sqlite({.path = path()});
    const auto listing = opened ? (*opened)->entries()
                                : holdfast::result<std::vector<state_store::entry>>{opened.error()};
    ASSERT_FALSE(listing.ok()) << size;
    const errc code = listing.error().code;
    EXPECT_TRUE(code == errc::corrupt || code == errc::foreign_data)
        << size << listing.error().what;
  }
}

// ---- what was tried

TEST_F(faults, a_failed_question_is_not_reported_as_a_change) {
  const session store = open(path());
  shell{path()}.run("DROP TABLE holdfast_locks");
  rule question = reads();
  question.asks = true;
  expect_failure(store->transact("name", question), errc::foreign_data, "reading the record in ");
  rule change = increments();
  expect_failure(store->transact("name", change), errc::foreign_data, "changing the record in ");
}

/// SQLite's files, whose locks for reading can be made to fail, as on a bad disk.
class failing_files {
 public:
  failing_files() {
    shim_ = *real_;
    shim_.zName = "failing_files";
    shim_.xOpen = [](sqlite3_vfs*, const char* name, sqlite3_file* file, int how, int* how_it_was) {
      const int code = real_->xOpen(real_, name, file, how, how_it_was);
      if (code != SQLITE_OK || (how & SQLITE_OPEN_MAIN_DB) == 0) return code;
      methods_ = *file->pMethods;
      shm_lock_ = methods_.xShmLock;
      methods_.xShmLock = [](sqlite3_file* of, int at, int count, int what) {
        return broken_ ? SQLITE_IOERR_SHMLOCK : shm_lock_(of, at, count, what);
      };
      file->pMethods = &methods_;
      return code;
    };
    sqlite3_vfs_register(&shim_, 1);
  }
  ~failing_files() {
    broken_ = false;
    sqlite3_vfs_unregister(&shim_);
  }
  static void fail() { broken_ = true; }

 private:
  static inline sqlite3_vfs* const real_ = sqlite3_vfs_find(nullptr);
  static inline sqlite3_vfs shim_{};
  static inline sqlite3_io_methods methods_{};
  static inline int (*shm_lock_)(sqlite3_file*, int, int, int) = nullptr;
  static inline bool broken_ = false;
};

TEST_F(faults, what_only_reads_has_changed_nothing_if_the_disk_fails) {
  failing_files files;
  const session store = open(path());
  rule question = reads();
  question.asks = true;
  ASSERT_TRUE(store->transact("name", question));
  failing_files::fail();
  expect_failure(store->transact("name", question), errc::unavailable, "reading the record in ");
  const auto all = store->entries();
  ASSERT_FALSE(all);
  expect_failure(all.error(), errc::unavailable, "look at the kernel log");
  rule change = increments();
  const auto changed = store->transact("name", change);
  ASSERT_FALSE(changed);
  EXPECT_TRUE(changed.error().outcome_unknown) << changed.error().what;
}

// ---- no memory

/// SQLite has no memory for the first request.
class without_memory_at_first final : public harness::passing_on {
 public:
  using passing_on::passing_on;
  holdfast::result<holdfast::store::permits_reply> permits(
      std::string_view name, const holdfast::store::permits_command& c) override {
    if (std::exchange(was_, true)) return inner_->permits(name, c);
    const auto before = sqlite3_hard_heap_limit64(1);
    auto reply = inner_->permits(name, c);
    sqlite3_hard_heap_limit64(before);
    EXPECT_EQ(reply ? errc{} : reply.error().code, errc::overloaded);
    return reply;
  }

 private:
  bool was_ = false;
};

TEST_F(faults, no_memory_for_a_moment_ends_no_wait) {
  holdfast::session_options options;
  options.decorate = [](auto inner) {
    return std::make_unique<without_memory_at_first>(std::move(inner));
  };
  holdfast::mutex m{holdfast::open("sqlite:" + path(), options), "m"};
  EXPECT_TRUE(m.try_acquire_for(1min));
}

}  // namespace
}  // namespace sqlite_test
