#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "bench/server_statements.hpp"
#include "bench/workers.hpp"
#include "bench/workload.hpp"

namespace bench {
namespace {

std::int64_t cpu_ns() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto ns = [](const timeval& t) { return t.tv_sec * 1'000'000'000 + t.tv_usec * 1'000; };
  return ns(used.ru_utime) + ns(used.ru_stime);
}

void say(int fd, char what) {
  if (write(fd, &what, 1) != 1) throw std::runtime_error{"the conductor is gone"};
}

/// 0 when the conductor is gone.
char hear(int fd) {
  char what = 0;
  while (read(fd, &what, 1) < 0 && errno == EINTR) {
  }
  return what;
}

void sit_down(shared_state& a, unsigned number, subject& s, const workload& w) {
  a.participants[number].tid = static_cast<std::int32_t>(syscall(SYS_gettid));
  try {
    w.sit(a, number, s);
  } catch (const std::exception& e) {
    // Nothing useful can be measured any more.
    std::fprintf(stderr, "holdfast-bench: %s, %s: %s\n", a.workload, a.subject, e.what());
    _exit(1);
  }
}

class member {
 public:
  member(shared_state& a, unsigned number)
      : shared_state_{a},
        number_{number},
        workload_{*find_workload(a.workload)},
        subject_{find_subject(a.subject)->open({a.folder, a.url, workload_.variant})} {
    const auto [first, end] = participants_of(a, number);
    for (unsigned i = first; i < end; ++i) {
      threads_.emplace_back([this, i] { sit_down(shared_state_, i, *subject_, workload_); });
    }
    for (unsigned i = first; i < end; ++i) {
      while (shared_state_.participants[i].tid == 0) std::this_thread::yield();
    }
  }

  void obey(int commands, int answers) {
    for (char what = 0; (what = hear(commands)) != 0; say(answers, what)) {
      if (what == 'b') count(shared_state_.before[number_]);
      if (what == 'a') count(shared_state_.after[number_]);
      if (what == 'j') join();
    }
  }

  void join() {
    for (auto& t : threads_) t.join();
    threads_.clear();
  }

 private:
  void count(spent& s) const {
    const bool first = number_ == 0;
    s = {subject_->store_operations(), cpu_ns(), first ? store_cpu_ns(shared_state_.url) : 0,
         now_ns(), first ? server_statements(shared_state_.url) : 0};
  }

  shared_state& shared_state_;
  unsigned number_;
  const workload& workload_;
  std::unique_ptr<subject> subject_;
  std::vector<std::thread> threads_;
};

}  // namespace

participant_range participants_of(const shared_state& a, unsigned number) {
  const unsigned each = a.threads / a.processes, rest = a.threads % a.processes;
  if (number == 0) return {0, each + rest};
  return {number * each + rest, (number + 1) * each + rest};
}

int take_part(shared_state& a, unsigned number, int commands, int answers) {
  try {
    member m{a, number};
    say(answers, 'r');
    m.obey(commands, answers);
    return 0;
  } catch (const std::exception& e) {
    std::strncpy(a.problem, e.what(), sizeof a.problem - 1);
    return 1;
  }
}

}  // namespace bench
