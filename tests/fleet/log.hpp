#pragma once

#include <cstdint>
#include <ios>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

/// The resource that a fleet of programs shares, one for each name: a file that all append lines
/// to. Each line is one write, so the lines are in the order in which things happened.
///     enter WORKER FENCE      a program has the lock, and begins
///     leave WORKER FENCE      it ends, still with the lock as far as it knows
///     read WORKER FENCE       the same for a reader, which may be there together with others
///     done WORKER FENCE
///     kill WORKER             from here on this program may die
///     stop WORKER             from here on it may stand still …
///     go WORKER               … until here
namespace fleet {

/// Appends one line.
void write_line(const std::string& path, const std::string& line);

struct verdict {
  std::vector<std::string> violations;
  std::map<std::string, std::size_t> holds;  ///< how often each worker was alone inside
  std::map<std::string, std::size_t> reads;  ///< how often it was a reader
  std::size_t entered = 0;                   ///< the sum of `holds`
  std::size_t refused = 0;                   ///< lines with a stale fence, which a resource refuses
  std::string inside;                        ///< the worker that has entered and not left; or empty
  std::uint64_t fence = 0;                   ///< the greatest
};

/// What a resource that refuses stale fences sees, and each violation of these rules:
///   - no program enters while another one is inside, unless that one was killed or stopped there;
///     readers count as inside for a writer, and not for each other
///   - each fence is greater than all before it, in whatever language those programs are written;
///     that of a reader is greater than those of all writers before it. Only a program that was
///     stopped may come with an older fence, and is refused
class judge {
 public:
  explicit judge(std::string path) : path_(std::move(path)) {}
  /// Judges all lines that were written until now.
  const verdict& look();

 private:
  void read(const std::string& line);
  void enter(const std::string& worker, std::uint64_t fence, const std::string& line);
  void leave(const std::string& worker, std::uint64_t fence, const std::string& line);
  void begin_reading(const std::string& worker, std::uint64_t fence, const std::string& line);
  void end_reading(const std::string& worker, std::uint64_t fence, const std::string& line);
  void refuse(const std::string& worker, const std::string& line, const std::string& rule);
  void broken(const std::string& line, const std::string& rule);

  const std::string path_;
  std::streamoff read_ = 0;
  verdict found_{};
  bool excused_ = false;       // the program inside was killed or stopped there
  std::uint64_t written_ = 0;  // the greatest fence of a writer
  struct reader {
    std::uint64_t fence = 0;
    bool excused = false;
  };
  std::map<std::string, reader> readers_{};
  std::set<std::string> disturbed_{};  // the programs that were ever killed or stopped
  std::set<std::string> still_{};      // the programs that are stopped now
};

}  // namespace fleet
