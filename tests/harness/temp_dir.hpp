#pragma once

#include <filesystem>
#include <string>

namespace harness {

/// A fresh folder of this test's own; removed with its contents.
class temp_dir {
 public:
  /// In the machine's folder for temporary files, or in another one.
  explicit temp_dir(const std::filesystem::path& in = std::filesystem::temp_directory_path());
  ~temp_dir();
  temp_dir(const temp_dir&) = delete;
  temp_dir& operator=(const temp_dir&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace harness
