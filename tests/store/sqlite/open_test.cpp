#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "fixture.hpp"
#include "harness/process.hpp"
#include "store/sqlite/database_path.hpp"

namespace sqlite_test {
namespace {

namespace fs = std::filesystem;

class opening : public sqlite_store {
 protected:
  void expect_refusal(const std::string& file, errc code, const std::string& words) {
    const failure f = refusal(file);
    EXPECT_EQ(f.code, code) << f.what;
    EXPECT_NE(f.what.find(words), std::string::npos) << f.what;
    EXPECT_FALSE(f.outcome_unknown);
  }
};

TEST_F(opening, a_new_file_is_made_and_opened_again) {
  const session one = open(path());
  const session other = open(path());
  EXPECT_EQ(one->url(), "sqlite:" + path());
  EXPECT_TRUE(one->can().sees_death);
  EXPECT_NE(one->inbox().peer(), other->inbox().peer());
}

TEST_F(opening, an_empty_file_becomes_ours) {
  write_bytes(path(), "");
  rule change = increments();
  EXPECT_TRUE(open(path())->transact("name", change).ok());
}

TEST_F(opening, impossible_paths_are_refused_with_an_advice) {
  expect_refusal("", errc::invalid_argument, "sqlite:PATH");
  expect_refusal(":memory:", errc::invalid_argument, "memory:");
  expect_refusal("file:locks.db?mode=ro", errc::invalid_argument, "sqlite:PATH");
  expect_refusal(dir_.path().string(), errc::invalid_argument, "directory");
  expect_refusal(dir_.path().string() + "/", errc::invalid_argument, "directory");
  expect_refusal("/dev/null", errc::invalid_argument, "not a regular file");
  expect_refusal(std::string{"a\0b", 3}, errc::invalid_argument, "NUL");
  expect_refusal("~/locks.db", errc::invalid_argument, "not your home folder");
  expect_refusal(path("missing/locks.db"), errc::invalid_argument,
                 "Correct the path, or make the directory first");
  expect_refusal(path(std::string(300, 'x')), errc::invalid_argument, "name too long");
}

TEST_F(opening, impossible_options_are_refused) {
  const auto refuse = [&](auto change) {
    sqlite_options options;
    options.path = path();
    change(options);
    return refusal(options);
  };
  EXPECT_NE(refuse([](auto& o) { o.synchronous = "extra"; }).what.find("normal"),
            std::string::npos);
  EXPECT_NE(refuse([](auto& o) { o.network = "yes"; }).what.find("allow"), std::string::npos);
  using namespace std::chrono_literals;
  EXPECT_EQ(refuse([](auto& o) { o.busy_timeout = -1ms; }).code, errc::invalid_argument);
  EXPECT_EQ(refuse([](auto& o) { o.busy_timeout = 2h; }).code, errc::invalid_argument);
  EXPECT_FALSE(fs::exists(path()));
}

TEST_F(opening, a_long_unknown_word_is_repeated_in_a_shortened_form) {
  const std::string endless(100'000, 'x');
  for (const auto member :
       {&sqlite_options::synchronous, &sqlite_options::network, &sqlite_options::access}) {
    sqlite_options options;
    options.path = path();
    options.*member = endless;
    const auto said = refusal(options).what;
    EXPECT_LT(said.size(), 200U);
    EXPECT_NE(said.find("'xxx"), std::string::npos) << said;
  }
}

TEST_F(opening, every_level_of_synchronous_works) {
  for (const char* level : {"off", "normal", "full"}) {
    sqlite_options options;
    options.path = path();
    options.synchronous = level;
    rule change = increments();
    EXPECT_TRUE(open(std::move(options))->transact("name", change).ok());
  }
  EXPECT_EQ(number_of(*open(path()), "name"), 3);
}

// The pipes would not fit into a socket's 108 bytes; SQLite's own limit is 512.
TEST_F(opening, a_path_of_several_hundred_bytes_works_and_a_longer_one_is_refused) {
  std::string folder = dir_.path().string();
  while (folder.size() < 300) {
    folder += "/" + std::string(60, 'd');
    fs::create_directory(folder);
  }
  const std::string file = folder + "/" + std::string(480 - folder.size(), 'f');
  const session one = open(file);
  const session other = open(file);
  notification n;
  n.name = "name";
  n.peer = other->inbox().peer();
  EXPECT_TRUE(one->tell(n));
  EXPECT_EQ(other->inbox().receive(holdfast::forever), n);
  expect_refusal(folder + "/" + std::string(530 - folder.size(), 'f'), errc::invalid_argument,
                 "no more than 500");
}

TEST_F(opening, all_links_to_a_file_lead_to_the_same_locks) {
  fs::create_symlink("locks.db", path("link.db"));
  expect_refusal(path("link.db"), errc::invalid_argument, "link to nowhere");
  const session direct = open(path());
  const session linked = open(path("link.db"));
  fs::create_directory_symlink(dir_.path(), path("folder"));
  const session around = open(path("folder") + "/locks.db");
  EXPECT_FALSE(fs::exists(path("link.db-holdfast")));
  for (const auto* each : {&direct, &linked, &around}) {
    rule change = increments();
    EXPECT_TRUE((*each)->transact("name", change).ok());
  }
  EXPECT_EQ(number_of(*direct, "name"), 3);
}

// Each name has a log of its own: two sessions would hold one lock.
TEST_F(opening, a_file_with_a_second_name_is_refused) {
  (void)open(path());
  fs::create_hard_link(path(), path("other.db"));
  for (const auto& name : {path(), path("other.db")})
    expect_refusal(name, errc::unsupported, "hard links");
  fs::remove(path("other.db"));
  EXPECT_NO_THROW((void)open(path()));
}

TEST_F(opening, a_file_that_is_mounted_without_its_folder_is_refused) {
  (void)open(path());
  fs::create_directory(path("elsewhere"));
  const auto file = path("elsewhere/locks.db");
  std::ofstream(file).flush();
  const auto me = std::to_string(::geteuid());
  // Users may mount only where the system gives them a namespace of their own.
  const auto has_mounts = [&] {
    if (::unshare(CLONE_NEWNS) == 0) return true;
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    std::ofstream("/proc/self/uid_map") << me << ' ' << me << " 1";
    return true;
  };
  EXPECT_TRUE(in_child([&] {
    const bool may = has_mounts() &&
                     ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                     ::mount(path().c_str(), file.c_str(), nullptr, MS_BIND, nullptr) == 0;
    return !may || refusal(file).code == errc::unsupported;
  }));
}

// /proc shows files of another file system, each mounted by itself.
TEST(mounts, of_a_file_by_itself_are_recognized) {
  using holdfast::store::sqlite::file_descriptor;
  const auto name = [](const char* what) { return file_descriptor(::open(what, O_PATH)); };
  const auto file = name("/proc/self/ns/mnt"), folder = name("/proc/self/ns");
  EXPECT_TRUE(holdfast::store::sqlite::is_mounted_alone(file.get(), folder.get()));
  EXPECT_FALSE(holdfast::store::sqlite::is_mounted_alone(name("/proc/self/status").get(),
                                                         name("/proc/self").get()));
  EXPECT_FALSE(holdfast::store::sqlite::is_mounted_alone(file.get(), -1));
}

// ---- files that are not ours

class others_files : public opening {
 protected:
  void expect_untouched(const std::string& file, errc code, const std::string& words) {
    const std::string before = bytes_of(file);
    expect_refusal(file, code, words);
    EXPECT_EQ(bytes_of(file), before);
    EXPECT_FALSE(fs::exists(file + "-wal"));
    EXPECT_FALSE(fs::exists(file + "-holdfast"));
  }
};

TEST_F(others_files, a_file_that_is_no_database_is_left_as_it_is) {
  write_bytes(path(), "orders,of,the,day\n" + std::string(5'000, '1'));
  expect_untouched(path(), errc::foreign_data, "not a SQLite database");
}

TEST_F(others_files, the_database_of_another_program_is_left_as_it_is) {
  shell{path()}.run("CREATE TABLE orders(id INTEGER PRIMARY KEY); INSERT INTO orders VALUES (1)");
  expect_untouched(path(), errc::foreign_data, "another program");
}

TEST_F(others_files, an_empty_database_that_another_program_marked_is_left_as_it_is) {
  shell{path()}.run("PRAGMA application_id = 77; PRAGMA user_version = 1");
  expect_untouched(path(), errc::foreign_data, "another program");
}

TEST_F(others_files, a_newer_format_is_left_as_it_is) {
  (void)open(path());
  fs::remove_all(path() + "-holdfast");
  shell{path()}.run("PRAGMA user_version = 2");
  fs::remove(path() + "-wal");
  expect_untouched(path(), errc::newer_format, "format 2");
}

TEST_F(others_files, a_file_of_ours_without_its_tables_is_refused) {
  (void)open(path());
  shell{path()}.run("DROP TABLE holdfast_locks");
  expect_refusal(path(), errc::foreign_data, "holdfast_locks");
}

TEST_F(others_files, tables_dropped_under_a_session_are_reported) {
  const session store = open(path());
  shell{path()}.run("DROP TABLE holdfast_locks");
  rule change = increments();
  const auto outcome = store->transact("name", change);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code, errc::foreign_data) << outcome.error().what;
}

// A transition decides about such a text; the driver passes it on and writes nothing.
TEST_F(others_files, foreign_text_in_a_record_is_handed_over_as_it_is) {
  const session store = open(path());
  shell{path()}.run("INSERT INTO holdfast_locks VALUES ('name', 'their note')");
  EXPECT_EQ(record_of(*store, "name"), "their note");
}

// ---- rights

class rights : public opening {
 protected:
  rights() { fs::permissions(dir_.path(), fs::perms{0755}); }
  void expect_files_of_others_to_be_refused(const std::string& file) {
    for (const char* const planted : {"", "-wal"}) {
      std::ofstream(file + planted, std::ios::app).flush();
      ASSERT_EQ(::chown((file + planted).c_str(), 12345, 12345), 0);
      ASSERT_EQ(::chown(path("sticky").c_str(), 12346, 12346), 0);
      expect_refusal(file, errc::not_permitted, "another user");
      ASSERT_EQ(::chown((file + planted).c_str(), 0, 0), 0);
    }
    fs::create_symlink(path("elsewhere.db"), path("sticky/link.db"));
    (void)open(path("elsewhere.db"));
    ASSERT_EQ(::lchown(path("sticky/link.db").c_str(), 12345, 12345), 0);
    expect_refusal(path("sticky/link.db"), errc::not_permitted, "another user");
  }
};

TEST_F(rights, a_file_without_write_permission_is_read_only) {
  (void)open(path());
  fs::permissions(path(), fs::perms{0444});
  const as_ordinary_user now;
  expect_refusal(path(), errc::read_only, "may not write");
}

TEST_F(rights, a_directory_without_write_permission_is_read_only) {
  fs::create_directory(path("closed"));
  fs::permissions(path("closed"), fs::perms{0555});
  {
    const as_ordinary_user now;
    expect_refusal(path("closed/locks.db"), errc::read_only, "closed/locks.db");
  }
  fs::permissions(path("closed"), fs::perms{0755});
}

TEST_F(rights, a_writable_file_in_a_directory_without_write_permission_is_read_only) {
  fs::create_directory(path("closed"));
  (void)open(path("closed/locks.db"));
  fs::remove_all(path("closed/locks.db-holdfast"));
  fs::permissions(path("closed/locks.db"), fs::perms{0666});
  fs::permissions(path("closed"), fs::perms{0555});
  {
    const as_ordinary_user now;
    expect_refusal(path("closed/locks.db"), errc::read_only, "closed/locks.db");
  }
  fs::permissions(path("closed"), fs::perms{0755});
}

TEST_F(rights, a_file_without_read_permission_is_not_permitted) {
  (void)open(path());
  fs::permissions(path(), fs::perms{0000});
  const as_ordinary_user now;
  expect_refusal(path(), errc::not_permitted, "grant");
}

TEST_F(rights, the_message_about_a_folder_that_may_not_be_entered_names_the_rights_to_read) {
  fs::create_directory(path("closed"));
  (void)open(path("closed/locks.db"));
  fs::permissions(path("closed"), fs::perms{0000});
  {
    const as_ordinary_user now;
    expect_refusal(path("closed/locks.db"), errc::not_permitted, "read the file");
  }
  fs::permissions(path("closed"), fs::perms{0755});
}

TEST_F(rights, a_folder_of_another_user_is_not_trusted) {
  (void)open(path());
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown((path() + "-holdfast").c_str(), 12345, 12345), 0);
    expect_refusal(path(), errc::not_permitted, "another user");
  }
  fs::remove_all(path() + "-holdfast");
  fs::create_symlink(dir_.path(), path() + "-holdfast");
  expect_refusal(path(), errc::unavailable, "locks.db-holdfast");
}

TEST_F(rights, a_database_of_another_user_in_a_world_writable_folder_is_refused) {
  fs::create_directory(path("sticky"));
  fs::permissions(path("sticky"), fs::perms{01777});
  const auto file = path("sticky/locks.db");
  (void)open(file);
  EXPECT_NO_THROW((void)open(file)) << "our own";
  if (::geteuid() == 0) expect_files_of_others_to_be_refused(file);
}

// Only root can make another user's file, so the test uses made-up results of stat().
TEST(planted, is_a_file_of_another_user_in_a_world_writable_folder) {
  using holdfast::store::sqlite::may_be_planted;
  constexpr uid_t me = 1000, other = 1001, owner = 1002, root = 0;
  const auto of = [](uid_t who, mode_t mode) {
    struct stat s{};
    s.st_uid = who, s.st_mode = mode;
    return s;
  };
  constexpr mode_t like_tmp = S_IFDIR | 01777;
  EXPECT_TRUE(may_be_planted(of(other, S_IFREG), of(owner, like_tmp), me));
  EXPECT_TRUE(may_be_planted(of(other, S_IFLNK), of(root, like_tmp), me));
  EXPECT_TRUE(may_be_planted(of(other, S_IFREG), of(me, like_tmp), me));
  EXPECT_TRUE(may_be_planted(of(other, S_IFREG), of(owner, like_tmp), root));
  for (const uid_t trusted : {me, owner, root})
    EXPECT_FALSE(may_be_planted(of(trusted, S_IFREG), of(owner, like_tmp), me)) << trusted;
  // Folders into which not everybody may put files, or in which such a user could remove ours as
  // well.
  for (const mode_t mode : {S_IFDIR | 01770U, S_IFDIR | 0777U, S_IFDIR | 0755U})
    EXPECT_FALSE(may_be_planted(of(other, S_IFREG), of(owner, mode), me)) << std::oct << mode;
}

// ---- file systems

TEST(file_systems, shared_ones_are_known_by_name) {
  using holdfast::store::sqlite::network_file_system_name;
  EXPECT_STREQ(network_file_system_name(0x6969), "NFS");
  EXPECT_STREQ(network_file_system_name(0xFF534D42), "CIFS");
  EXPECT_STREQ(network_file_system_name(0xFE534D42), "SMB2");
  EXPECT_NE(network_file_system_name(0x65735546), nullptr);  // FUSE
  EXPECT_EQ(network_file_system_name(0xEF53), nullptr);      // ext4
  EXPECT_EQ(network_file_system_name(0x01021994), nullptr);  // tmpfs
  EXPECT_EQ(network_file_system_name(0x58465342), nullptr);  // xfs
  EXPECT_EQ(network_file_system_name(0x9123683E), nullptr);  // btrfs
  EXPECT_EQ(network_file_system_name(0x794c7630), nullptr);  // overlay
}

// ---- at the same moment

const harness::role maker{"maker", [](const auto& args) {
                            harness::say("ready");
                            for (std::string file = harness::hear(); !file.empty();
                                 file = harness::hear()) {
                              sqlite_options patient;
                              patient.path = file;
                              patient.busy_timeout = std::chrono::minutes(1);
                              const session store = open(patient);
                              rule change = increments();
                              harness::say(store->transact("name", change).ok() ? "made" : "lost");
                            }
                            return args.empty() ? 0 : 1;
                          }};

TEST_F(opening, processes_that_make_the_file_at_the_same_moment_all_succeed) {
  std::vector<harness::child> makers;
  for (int i = 0; i < 4; ++i) makers.emplace_back("maker");
  for (auto& each : makers) EXPECT_EQ(each.expect_line(), "ready");
  for (int round = 0; round < 30; ++round) {
    const std::string file = path("locks " + std::to_string(round));
    for (auto& each : makers) each.tell(file);
    for (auto& each : makers) EXPECT_EQ(each.expect_line(), "made");
    EXPECT_EQ(number_of(*open(file), "name"), 4);
  }
}

TEST_F(opening, threads_that_open_and_close_all_the_time_lose_nothing) {
  {
    std::vector<std::jthread> all;
    for (int t = 0; t < 4; ++t) {
      all.emplace_back([this] {
        for (int i = 0; i < 25; ++i) {
          const session store = open(path());
          rule change = increments();
          EXPECT_TRUE(store->transact("name", change).ok());
        }
      });
    }
  }
  EXPECT_EQ(number_of(*open(path()), "name"), 100);
}

}  // namespace
}  // namespace sqlite_test
