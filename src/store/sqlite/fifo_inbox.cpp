#include "store/sqlite/fifo_inbox.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

#include "base/readiness.hpp"
#include "store/sql/notification_text.hpp"
#include "store/sqlite/explain.hpp"
#include "store/sqlite/quiet_write.hpp"

namespace holdfast::store::sqlite {
namespace {

constexpr std::uint64_t pipe_key = 0;
constexpr std::uint64_t event_key = 1;
constexpr std::size_t most_pipes_kept = 64;
constexpr std::size_t longest_line = 4'096;  // PIPE_BUF
constexpr std::string_view draft_suffix = ".draft";

// The time-out of the next sleep in epoll_wait(), which counts in milliseconds. If less than a
// millisecond is left, sleeps here in poll() instead: epoll_wait() would end up to a millisecond
// late.
int whole_milliseconds(int poll, std::chrono::nanoseconds left) noexcept {
  using std::chrono::milliseconds;
  if (left == std::chrono::nanoseconds::max()) return -1;
  const auto whole = std::chrono::floor<milliseconds>(base::next_sleep(left)).count();
  if (whole > 0) return static_cast<int>(std::min<std::int64_t>(whole, INT_MAX));
  pollfd all{poll, POLLIN, 0};
  if (left > left.zero()) (void)base::sleep_until_ready({&all, 1}, left);
  return 0;
}

}  // namespace

fifo_inbox::fifo_inbox(const sidecar& beside, const sqlite::peer& self, const forkable& owner,
                       holdfast::clock& time)
    : beside_(beside), owner_(owner), self_(self), name_(to_string(self)), clock_(time) {}

result<std::unique_ptr<fifo_inbox>> fifo_inbox::open(const sidecar& beside,
                                                     const sqlite::peer& self,
                                                     const forkable& owner, holdfast::clock& time) {
  std::unique_ptr<fifo_inbox> made{new fifo_inbox{beside, self, owner, time}};
  if (auto listening = made->listen(); !listening) return listening.error();
  if (auto there = made->make_pipe(); !there) return there.error();
  made->wake_id_ = time.on_advance([inbox = made.get()] { inbox->wake(); });
  return made;
}

status fifo_inbox::listen() {
  poll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  event_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!poll_ || !event_ || !add_to_poll(event_.get(), event_key)) {
    return explain_errno(errno, "making an inbox");
  }
  watched_.emplace(self_, poll_.get());
  return done{};
}

// Open for both directions: without a writer of its own the pipe would end with each sender.
status fifo_inbox::make_pipe() {
  const std::string path = beside_.path() + "/" + name_;
  if (::mkfifoat(beside_.folder(), name_.c_str(), 0600) != 0) {
    return explain_errno(errno, "making the named pipe " + path);
  }
  pipe_.reset(
      ::openat(beside_.folder(), name_.c_str(), O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  const mode_t others_may_write = 0600 | (beside_.file_mode() & 0222);
  if (!pipe_ || !beside_.share(pipe_.get(), others_may_write) ||
      !add_to_poll(pipe_.get(), pipe_key)) {
    return explain_errno(errno, "opening the named pipe " + path);
  }
  return done{};
}

fifo_inbox::~fifo_inbox() {
  if (wake_id_) clock_.forget(*wake_id_);
  if (pipe_) ::unlinkat(beside_.folder(), name_.c_str(), 0);
}

bool fifo_inbox::add_to_poll(int fd, std::uint64_t key) const noexcept {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = key;
  return ::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

// ---- receiving

std::optional<notification> fifo_inbox::receive(boot_time until) {
  if (owner_.forked()) return std::nullopt;
  for (bool looked = false;; looked = true) {
    if (interrupted_.exchange(false)) return std::nullopt;
    if (auto found = next()) return found;
    if (looked && clock_.now() >= until) return std::nullopt;
    sleep(until);
  }
}

void fifo_inbox::sleep(boot_time until) {
  std::array<epoll_event, 16> events{};
  const int n = ::epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()),
                             whole_milliseconds(poll_.get(), clock_.sleep_for(until)));
  for (int i = 0; i < n; ++i) {
    const std::uint64_t key = events[static_cast<std::size_t>(i)].data.u64;
    if (key == pipe_key) {
      read_pipe();
    } else if (key == event_key) {
      std::uint64_t count = 0;
      (void)!::read(event_.get(), &count, sizeof count);
    } else {
      watched_->note_end(key);
    }
  }
}

void fifo_inbox::read_pipe() {
  std::array<char, 16'384> buffer;
  const ssize_t n = ::read(pipe_.get(), buffer.data(), buffer.size());
  if (n <= 0) return;
  partial_.append(buffer.data(), static_cast<std::size_t>(n));
  take_lines();
}

// Every user who may write to the database may write here, so no line is trusted. Lines that are
// not notifications are dropped. A notification is only a hint that makes the engine poll, or a
// grant that the engine verifies by its owner.
void fifo_inbox::take_lines() {
  std::size_t from = 0;
  for (auto end = partial_.find('\n'); end != std::string::npos; end = partial_.find('\n', from)) {
    if (auto found = sql::decode(std::string_view{partial_}.substr(from, end - from))) {
      found->peer = name_;
      arrived_.push_back(std::move(*found));
    }
    from = end + 1;
  }
  partial_.erase(0, from);
  if (partial_.size() > longest_line) partial_.clear();
}

std::optional<notification> fifo_inbox::next() {
  if (!arrived_.empty()) {
    notification first = std::move(arrived_.front());
    arrived_.pop_front();
    return first;
  }
  if (auto who = watched_->next_ended()) {
    return notification{.what = notification_kind::departed, .peer = std::move(*who)};
  }
  return std::nullopt;
}

void fifo_inbox::interrupt() noexcept {
  interrupted_ = true;
  wake();
}

void fifo_inbox::wake() const noexcept {
  const std::uint64_t one = 1;
  (void)!::write(event_.get(), &one, sizeof one);
}

// ---- watching others

void fifo_inbox::watch(std::string_view who) {
  if (!owner_.forked() && watched_->watch(who)) wake();
}

void fifo_inbox::unwatch(std::string_view who) noexcept {
  if (!owner_.forked()) watched_->unwatch(who);
}

// ---- sending

bool fifo_inbox::send(const notification& to) {
  const std::string line = sql::encode(to);
  if (line.empty()) return true;
  const std::lock_guard lock{sending_};
  auto at = pipes_.find(to.peer);
  if (at == pipes_.end()) {
    file_descriptor pipe = open_pipe_of(to.peer);
    if (!pipe) return !is_certainly_closed(errno);
    if (pipes_.size() >= most_pipes_kept) pipes_.clear();
    at = pipes_.emplace(to.peer, std::move(pipe)).first;
  }
  if (write_quietly(at->second.get(), line) != EPIPE) return true;
  pipes_.erase(at);
  return false;
}

file_descriptor fifo_inbox::open_pipe_of(const std::string& who) const noexcept {
  errno = EINVAL;
  if (!parse_peer(who)) return {};
  constexpr int how = O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC;
  return file_descriptor{::openat(beside_.folder(), who.c_str(), how)};
}

// A session removes its pipe when it closes. If this session's own pipe is missing, too, the folder
// was emptied, and nothing is certain.
bool fifo_inbox::is_certainly_closed(int error_number) const noexcept {
  struct stat ours{};
  return error_number == ENXIO ||
         (error_number == ENOENT &&
          ::fstatat(beside_.folder(), name_.c_str(), &ours, AT_SYMLINK_NOFOLLOW) == 0);
}

void fifo_inbox::abandon() noexcept {
  pipe_.reset();
  event_.reset();
  poll_.reset();
}

void remove_inboxes_of_the_dead(const sidecar& beside, const peer& self) noexcept {
  const int listing = ::openat(beside.folder(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const entries = listing >= 0 ? ::fdopendir(listing) : nullptr;
  if (entries == nullptr) return;
  while (const dirent* entry = ::readdir(entries)) {
    std::string_view name = entry->d_name;
    if (name.ends_with(draft_suffix)) name.remove_suffix(draft_suffix.size());
    const auto owner = parse_peer(name);
    if (owner && departed(*owner, self)) ::unlinkat(beside.folder(), entry->d_name, 0);
  }
  ::closedir(entries);
}

}  // namespace holdfast::store::sqlite
