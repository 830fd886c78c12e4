#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "harness/concurrently.hpp"
#include "harness/eventually.hpp"
#include "harness/temp_dir.hpp"
#include "tool/default_store.hpp"
#include "tool/failure.hpp"
#include "tool/open_store.hpp"

// Which store a command uses, and how its child finds the same.
namespace holdfast::tool {

namespace {

/// A variable of the environment, for the length of a test; null: unset.
class variable {
 public:
  variable(const char* name, const char* value) : name_(name) {
    if (const char* const now = std::getenv(name)) before_ = now;
    set(value);
  }
  variable(const variable&) = delete;
  ~variable() { set(before_ ? before_->c_str() : nullptr); }

 private:
  void set(const char* value) const {
    if (value)
      ::setenv(name_, value, 1);
    else
      ::unsetenv(name_);
  }
  const char* const name_;
  std::optional<std::string> before_;
};

common_options typed(const std::string& url) {
  common_options c;
  c.store = url;
  return c;
}

std::string first_line_of(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

std::string refusal_of(const std::string& folder) {
  try {
    (void)find_default_store(folder);
  } catch (const failure_exit& e) {
    EXPECT_EQ(e.code(), exit_code::config);
    return e.what();
  }
  return {};
}

}  // namespace

TEST(default_store, has_one_path_in_the_environment_of_any_login) {
  const harness::temp_dir home;
  const std::string without = default_folder();
  for (const char* name : {"XDG_RUNTIME_DIR", "XDG_STATE_HOME", "HOME", "TMPDIR", "USER"}) {
    for (const char* value : {home.path().c_str(), "/", static_cast<const char*>(nullptr)}) {
      const variable differs(name, value);
      EXPECT_EQ(default_folder(), without) << name;
    }
  }
  EXPECT_EQ(without, "/var/tmp/holdfast-" + std::to_string(::geteuid()));
}

TEST(default_store, is_a_private_folder_that_is_announced_once) {
  const harness::temp_dir below;
  const std::string folder = below.file("locks");
  const auto first = find_default_store(folder);
  EXPECT_EQ(first.url, "sqlite:" + folder + "/locks.db");
  EXPECT_FALSE(is_to_be_told(first, false)) << "cron would mail it";
  EXPECT_TRUE(is_to_be_told(first, true));
  EXPECT_FALSE(is_to_be_told(find_default_store(folder), true));
  struct stat s{};
  ASSERT_EQ(::stat(folder.c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777U, 0700U);
}

TEST(default_store, is_locked_against_being_cleaned_up_while_it_is_in_use) {
  const harness::temp_dir below;
  const unique_fd cleaner{::open(below.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  std::filesystem::permissions(below.path(), std::filesystem::perms(0700));
  {
    const auto one = find_default_store(below.path());
    const auto other = find_default_store(below.path());
    EXPECT_NE(::flock(cleaner.get(), LOCK_EX | LOCK_NB), 0);
  }
  EXPECT_EQ(::flock(cleaner.get(), LOCK_EX | LOCK_NB), 0);
}

TEST(default_store, is_not_used_while_it_is_being_cleaned_up) {
  const harness::temp_dir below;
  const unique_fd cleaner{::open(below.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  std::filesystem::permissions(below.path(), std::filesystem::perms(0700));
  ASSERT_EQ(::flock(cleaner.get(), LOCK_EX), 0);
  auto found = harness::concurrently([&] { return find_default_store(below.path()); });
  harness::eventually("it waits for the lock", [] {
    std::ifstream locks("/proc/locks");
    const std::string all{std::istreambuf_iterator<char>(locks), {}};
    return all.find("-> FLOCK  ADVISORY  READ " + std::to_string(::getpid()) + " ") != all.npos;
  });
  EXPECT_FALSE(std::filesystem::exists(below.file("told")));
  ASSERT_EQ(::flock(cleaner.get(), LOCK_UN), 0);
  EXPECT_TRUE(is_to_be_told(found.get(), true));
}

TEST(default_store, is_refused_where_the_folder_above_it_is_missing) {
  const harness::temp_dir below;
  EXPECT_NE(refusal_of(below.file("none/locks")).find("the folder above it is missing"),
            std::string::npos);
}

TEST(default_store, is_refused_where_others_can_enter_or_have_put_a_link) {
  const harness::temp_dir below;
  std::filesystem::create_directory(below.file("open"));
  std::filesystem::permissions(below.file("open"), std::filesystem::perms(0755));
  EXPECT_NE(refusal_of(below.file("open")).find("others can enter it"), std::string::npos);
  std::filesystem::create_directory_symlink("/tmp", below.file("link"));
  EXPECT_NE(refusal_of(below.file("link")).find("not a folder"), std::string::npos);
  std::ofstream(below.file("file")) << "x";
  EXPECT_NE(refusal_of(below.file("file")).find("not a folder"), std::string::npos);
}

TEST(passed_on, a_typed_url_without_a_secret_is_in_the_environment) {
  const auto p = pass_on(typed("redis://h/0"));
  EXPECT_EQ(p.url, "redis://h/0");
  EXPECT_FALSE(p.file);
}

TEST(passed_on, a_typed_url_with_a_secret_is_in_a_file_of_ours_for_as_long_as_we_keep_it) {
  const std::string url = "redis://me:hunter2@h/0?listen=postgres://x:hunter2%40y";
  auto p = pass_on(typed(url));
  ASSERT_TRUE(p.url.starts_with("file:/proc/")) << p.url;
  EXPECT_EQ(p.url.find("hunter2"), std::string::npos);
  const std::string path = p.url.substr(5);
  EXPECT_EQ(first_line_of(path), url);
  EXPECT_EQ(first_line_of(path), url) << "read from its beginning each time";
  struct stat s{};
  ASSERT_EQ(::stat(path.c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777U, 0400U);
  p.file.reset();
  EXPECT_EQ(first_line_of(path), "");
}

TEST(passed_on, a_url_with_a_secret_that_came_from_the_environment_goes_on_untouched) {
  const variable store("HOLDFAST_STORE", "redis://me:hunter2@h/0");
  EXPECT_EQ(pass_on({}).url, "redis://me:hunter2@h/0");
  const variable other("HOLDFAST_STORE", "file:/proc/1/fd/3");
  EXPECT_EQ(pass_on({}).url, "file:/proc/1/fd/3");
}

}  // namespace holdfast::tool
