#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "harness/program.hpp"
#include "harness/temp_dir.hpp"

// Which drivers the shared library loads, and which it refuses.
namespace {

namespace fs = std::filesystem;
using perms = fs::perms;

const std::string redis = "redis://127.0.0.1:1";  // nobody listens there

/// A copy of the library, with one driver in the folder beside it.
class rules : public testing::Test {
 protected:
  rules() {
    fs::copy_file(HOLDFAST_SHARED, place_ / "libholdfast.so.0.1");
    fs::create_directory(folder_);
    fs::permissions(folder_, perms::owner_all | perms::group_exec | perms::others_exec);
    fs::copy_file(fs::path(HOLDFAST_SHARED).parent_path() / HOLDFAST_DRIVER_FOLDER / redis_driver_,
                  folder_ / redis_driver_);
  }

  /// What the program says that opens this URL, and then which files are loaded.
  std::string said(const std::string& url, const std::string& libraries = "",
                   const fs::path& from = "/") const {
    harness::surroundings around;
    around.environment = {"LD_LIBRARY_PATH=" + (libraries.empty() ? place_.string() : libraries)};
    around.folder = from;
    const auto ended = harness::run_to_end({HOLDFAST_OPEN_URL, url}, around);
    EXPECT_EQ(ended.code, 0) << ended.err;
    return ended.out;
  }

  void expect_refused(const std::string& text, const std::string& why) const {
    EXPECT_NE(text.find(why), std::string::npos) << text;
    EXPECT_EQ(text.find("loaded " + place_.string() + "/holdfast"), std::string::npos) << text;
  }

  const harness::temp_dir dir_;
  const fs::path place_ = fs::canonical(dir_.path());
  const fs::path folder_ = place_ / HOLDFAST_DRIVER_FOLDER;
  const std::string redis_driver_ = "holdfast-store-redis.so";
};

TEST_F(rules, a_driver_is_loaded_when_a_url_needs_it) {
  const auto text = said(redis);
  EXPECT_NE(text.find("cannot connect"), std::string::npos) << text;
  EXPECT_NE(text.find("loaded " + (folder_ / redis_driver_).string()), std::string::npos) << text;
}

TEST_F(rules, a_store_in_memory_loads_no_driver_and_no_client) {
  const auto text = said("memory:x");
  EXPECT_TRUE(text.starts_with("opened\n")) << text;
  for (const char* const heavy : {"holdfast-store", "/libssl", "/libpq", "/libgrpc", "/libmariadb"})
    EXPECT_EQ(text.find(heavy), std::string::npos) << text;
}

TEST_F(rules, the_message_of_a_missing_driver_names_its_package) {
  fs::remove(folder_ / redis_driver_);
  const auto text = said(redis);
  expect_refused(text, "not supported");
  expect_refused(text, "there is no " + (folder_ / redis_driver_).string() +
                           "; the package holdfast-store-redis has it");
}

TEST_F(rules, a_third_party_driver_has_the_name_of_its_scheme) {
  expect_refused(said("mine://h"), "there is no store 'mine:'");
  fs::copy_file(HOLDFAST_DRIVER_OF_ANOTHER, folder_ / "holdfast-store-mine.so");
  EXPECT_NE(said("mine://h").find("mine was asked for mine://h"), std::string::npos);
}

TEST_F(rules, a_scheme_does_not_lead_out_of_the_folder) {
  fs::copy_file(HOLDFAST_DRIVER_OF_ANOTHER, place_ / "holdfast-store-mine.so");
  expect_refused(said("../holdfast-store-mine://h"), "holdfast-store-mine");
  fs::copy_file(HOLDFAST_DRIVER_OF_ANOTHER, folder_ / "holdfast-store-m.ine.so");
  expect_refused(said("m.ine://h"), "there is no store 'm.ine:'");
}

TEST_F(rules, a_world_writable_folder_is_refused) {
  fs::permissions(folder_, perms::others_write, fs::perm_options::add);
  expect_refused(said(redis), "is writable by every user");
}

TEST_F(rules, a_world_writable_file_is_refused) {
  fs::permissions(folder_ / redis_driver_, perms::others_write, fs::perm_options::add);
  expect_refused(said(redis), "is writable by every user");
}

TEST_F(rules, a_file_of_a_stranger_is_refused) {
  const auto file = folder_ / redis_driver_;
  if (chown(file.c_str(), 12345, static_cast<gid_t>(-1)) != 0) {
    // Only root can give a file away. Then the library is a stranger's for nobody, and its file
    // not.
    EXPECT_NE(geteuid(), 0U);
    return;
  }
  expect_refused(said(redis), "belongs to user 12345");
}

TEST_F(rules, a_folder_of_the_librarys_owner_is_trusted) {
  for (const auto& path : {place_ / "libholdfast.so.0.1", folder_, folder_ / redis_driver_}) {
    const bool given_away = chown(path.c_str(), 12345, static_cast<gid_t>(-1)) == 0;
    EXPECT_EQ(given_away, geteuid() == 0);
  }
  EXPECT_NE(said(redis).find("cannot connect"), std::string::npos);
}

TEST_F(rules, neither_the_current_folder_nor_the_path_of_libraries_is_searched) {
  const auto elsewhere = place_ / "elsewhere";
  fs::create_directory(elsewhere);
  fs::copy_file(folder_ / redis_driver_, elsewhere / redis_driver_);
  fs::rename(folder_, elsewhere / HOLDFAST_DRIVER_FOLDER);
  expect_refused(said(redis, place_.string() + ':' + elsewhere.string(), elsewhere),
                 "is not installed");
}

TEST_F(rules, a_library_that_was_found_by_a_relative_path_loads_nothing) {
  expect_refused(said(redis, ".", place_), "depends on the current folder");
}

TEST_F(rules, a_driver_for_another_version_is_refused) {
  fs::copy_file(HOLDFAST_SHARED, folder_ / redis_driver_, fs::copy_options::overwrite_existing);
  EXPECT_NE(said(redis).find("is for another version of holdfast"), std::string::npos);
}

TEST_F(rules, a_file_that_is_no_library_is_refused_with_the_message_of_the_linker) {
  std::ofstream(folder_ / redis_driver_) << "no library";
  EXPECT_NE(said(redis).find("cannot be loaded"), std::string::npos);
}

}  // namespace
