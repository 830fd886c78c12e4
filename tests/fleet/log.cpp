#include "fleet/log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <system_error>

namespace fleet {

void write_line(const std::string& path, const std::string& line) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), path);
  const std::string whole = line + "\n";
  const auto written = ::write(fd, whole.data(), whole.size());
  ::close(fd);
  if (written != static_cast<ssize_t>(whole.size())) throw std::runtime_error("half a line");
}

void judge::broken(const std::string& line, const std::string& rule) {
  found_.violations.push_back(line + ": " + rule);
}

void judge::refuse(const std::string& worker, const std::string& line, const std::string& rule) {
  ++found_.refused;
  if (!disturbed_.contains(worker)) broken(line, rule);
}

void judge::enter(const std::string& worker, std::uint64_t fence, const std::string& line) {
  if (fence <= found_.fence)
    return refuse(worker, line, "the fence is not greater than all before");
  if (!found_.inside.empty() && !excused_) broken(line, found_.inside + " is inside");
  for (const auto& [name, r] : readers_) {
    if (!r.excused) broken(line, name + " reads");
  }
  readers_.clear();
  found_.inside = worker;
  found_.fence = written_ = fence;
  excused_ = still_.contains(worker);
  ++found_.holds[worker];
  ++found_.entered;
}

void judge::leave(const std::string& worker, std::uint64_t fence, const std::string& line) {
  if (worker != found_.inside || fence != found_.fence)
    return refuse(worker, line, "left what it does not have");
  found_.inside.clear();
}

void judge::begin_reading(const std::string& worker, std::uint64_t fence, const std::string& line) {
  if (fence <= written_) return refuse(worker, line, "a writer before has a greater fence");
  if (!found_.inside.empty() && !excused_) broken(line, found_.inside + " is inside");
  found_.inside.clear();
  found_.fence = std::max(found_.fence, fence);
  readers_[worker] = {fence, still_.contains(worker)};
  ++found_.reads[worker];
}

void judge::end_reading(const std::string& worker, std::uint64_t fence, const std::string& line) {
  const auto found = readers_.find(worker);
  if (found == readers_.end() || found->second.fence != fence)
    return refuse(worker, line, "ends reading, and does not read");
  readers_.erase(found);
}

void judge::read(const std::string& line) {
  std::istringstream words(line);
  std::string what, worker;
  std::uint64_t fence = 0;
  words >> what >> worker >> fence;
  if (what == "enter") {
    enter(worker, fence, line);
  } else if (what == "leave") {
    leave(worker, fence, line);
  } else if (what == "read") {
    begin_reading(worker, fence, line);
  } else if (what == "done") {
    end_reading(worker, fence, line);
  } else if (what == "kill" || what == "stop") {
    disturbed_.insert(worker);
    still_.insert(worker);
    excused_ |= worker == found_.inside;
    if (const auto reads = readers_.find(worker); reads != readers_.end())
      reads->second.excused = true;
  } else if (what == "go") {
    still_.erase(worker);
  } else {
    broken(line, "is no line of the log");
  }
}

const verdict& judge::look() {
  std::ifstream file(path_);
  file.seekg(read_);
  for (std::string line; std::getline(file, line);) {
    if (file.eof()) break;  // it is being written
    read_ = file.tellg();
    read(line);
  }
  return found_;
}

}  // namespace fleet
