#include "base/files.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "harness/temp_dir.hpp"

// Files that a URL names: none of them blocks a caller.
namespace {

using namespace holdfast::base;
using holdfast::errc;

class named_files : public testing::Test {
 protected:
  std::string file(const std::string& content) const {
    std::ofstream(dir_.file("file")) << content;
    return dir_.file("file");
  }
  std::string fifo() const {
    EXPECT_EQ(::mkfifo(dir_.file("fifo").c_str(), 0600), 0);
    return dir_.file("fifo");
  }
  harness::temp_dir dir_;
};

TEST_F(named_files, the_first_line_is_read_without_its_end) {
  EXPECT_EQ(*first_line(file("secret\nmore\n")), "secret");
  EXPECT_EQ(*first_line(file("secret\r\nmore\n")), "secret");
  EXPECT_EQ(*first_line(file("secret")), "secret");
  EXPECT_EQ(*first_line(file("")), "");
  EXPECT_EQ(*first_line(file(std::string(10'000, 'x') + '\n')), std::string(10'000, 'x'));
}

TEST_F(named_files, a_line_without_an_end_is_refused) {
  const auto line = first_line(file(std::string(100'000, 'x')));
  ASSERT_FALSE(line);
  EXPECT_EQ(line.error().code, errc::invalid_argument);
}

TEST_F(named_files, a_missing_file_is_refused_with_the_reason) {
  const auto line = first_line(dir_.file("none"));
  ASSERT_FALSE(line);
  EXPECT_EQ(line.error().what, "No such file or directory");
  EXPECT_FALSE(first_line(dir_.path().string()));
}

TEST_F(named_files, a_fifo_without_a_writer_is_empty_and_one_with_a_writer_is_read) {
  const auto path = fifo();
  EXPECT_EQ(*first_line(path), "");
  const int writer = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::write(writer, "secret\n", 7), 7);
  EXPECT_EQ(*first_line(path), "secret");
  ::close(writer);
}

TEST_F(named_files, a_fifo_is_refused_for_files_that_others_open) {
  EXPECT_TRUE(check_no_fifo("ca", file("x")));
  EXPECT_TRUE(check_no_fifo("ca", dir_.file("none")));
  EXPECT_TRUE(check_no_fifo("ca", "/dev/null"));
  const auto refused = check_no_fifo("ca", fifo());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("is a FIFO"), std::string::npos);
}

}  // namespace
