#include <poll.h>
#include <algorithm>
#include <thread>

#include "base/wake_fd.hpp"
#include "quorum/quorum.hpp"
#include "wait/asked_once.hpp"

namespace holdfast::engine {

using namespace std::chrono_literals;
using store::permits_outcome;

namespace {

// Whether a node is trusted, by its own answer: a node that forgot a hold must not help another
// client to acquire the lock.
result<bool> is_trusted(session_impl& session, std::chrono::nanoseconds trust_after) {
  const auto since = session.remembers_for();
  if (!since) return since.error();
  return !*since || saturated_nanoseconds(**since) >= trust_after;
}

vote vote_of(const result<store::permits_reply>& reply, bool trusted) {
  if (!reply) return vote::failed;
  if (!trusted) return vote::untrusted;
  const bool yes = reply->outcome == permits_outcome::granted ||
                   reply->outcome == permits_outcome::done ||
                   reply->outcome == permits_outcome::absent;
  return yes ? vote::granted : vote::refused;
}

// The pause if another thread reads that node's answers now, which may stop before ours arrives.
constexpr auto retry_after = 1ms;
constexpr auto longest_poll = 100ms;

int poll_time(boot_time now, boot_time until, bool some_are_read_by_others) {
  const auto most = some_are_read_by_others ? retry_after : longest_poll;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now);
  return static_cast<int>(std::clamp<std::chrono::milliseconds>(left, 0ms, most).count());
}

}  // namespace

/// Wakes the waiter from poll() for answers that other threads have read.
class quorum_round::bell {
 public:
  int fd() const noexcept { return wake_.fd(); }
  void ring() const noexcept {
    if (std::this_thread::get_id() != waiter_) wake_.set();
  }
  void clear() const noexcept { (void)wake_.clear(); }

 private:
  const std::thread::id waiter_ = std::this_thread::get_id();
  const base::wake_fd wake_;
};

void quorum_round::ask(std::size_t node, const store::permits_command& c, asked how) {
  const bool ask_who_it_is = how == asked::of_trusted && quorum_->trust_after > 0ms;
  const bool may_post = !news_ && !ask_who_it_is;
  {
    const std::lock_guard guard{mutex_};
    answers_[node].said = vote::silent;
    ++outstanding_;
  }
  quorum_->nodes[node]->asked(quorum_->now());
  try {
    if (may_post && post(node, c)) return;
  } catch (...) {
    return on_answer(node, without_memory(true), boot_time{}, true);
  }
  ask_runner(node, c, ask_who_it_is);
}

bool quorum_round::post(std::size_t node, const store::permits_command& c) {
  const auto& to = *quorum_->nodes[node];
  if (!to.may_post()) return false;
  const boot_time sent = quorum_->now();
  store::posting_store::listener then = [self = shared_from_this(), node,
                                         sent](result<store::permits_reply> reply) {
    self->on_posted(node, std::move(reply), sent);
  };
  {
    const std::lock_guard guard{mutex_};
    posted_[node] = {true, {}, c};
  }
  const auto give_up = [&] {
    const std::lock_guard guard{mutex_};
    if (!posted_[node].under_way) return false;  // it has been answered
    posted_[node] = {};
    return true;
  };
  try {
    if (to.session()->post(to.what()->name, c, then)) return true;
  } catch (...) {
    // The request may have been sent all the same. Then its answer, if it is not here yet, is
    // ignored.
    if (!give_up()) return true;
    throw;
  }
  (void)give_up();
  return false;
}

void quorum_round::ask_runner(std::size_t node, const store::permits_command& c,
                              bool trusted_only) noexcept {
  const auto& to = quorum_->nodes[node];
  to->given_to_runner();
  try {
    asked_once::doubt trusted;
    if (trusted_only) {
      trusted = [session = to->session().get(), after = quorum_->trust_after] {
        return is_trusted(*session, after);
      };
    }
    asked_once::start(
        to->session(), to->what(), c,
        [self = shared_from_this(), node](result<store::permits_reply> reply, boot_time sent,
                                          bool has_vote) {
          self->quorum_->nodes[node]->answered_by_runner();
          self->on_answer(node, std::move(reply), sent, has_vote);
        },
        std::move(trusted));
  } catch (...) {
    to->answered_by_runner();
    on_answer(node, without_memory(true), boot_time{}, true);
  }
}

// A connection that was closed while idle is not a vote: the waiter asks again. No other thread
// may, because its request could be sent after a release.
void quorum_round::on_posted(std::size_t node, result<store::permits_reply> reply, boot_time sent) {
  session_impl::observe();
  std::unique_lock lock{mutex_};
  if (!std::exchange(posted_[node].under_way, false)) return;  // it has been answered
  if (!reply && waiter_ != nullptr) {
    posted_[node].broke = std::move(reply.error());
    waiter_->ring();
    return;
  }
  lock.unlock();
  on_answer(node, std::move(reply), sent, true);
}

void quorum_round::on_answer(std::size_t node, result<store::permits_reply> reply, boot_time sent,
                             bool trusted) {
  quorum_->nodes[node]->answered(reply, sent, quorum_->now());
  answer a{vote_of(reply, trusted), {}, sent, {}};
  if (reply) {
    a.reply = std::move(*reply);
  } else {
    a.why = std::move(reply.error());
  }
  if (each_) each_(node, a);
  {
    const std::lock_guard guard{mutex_};
    answers_[node] = std::move(a);
    --outstanding_;
    rouse_waiter();
  }
  if (news_) news_();
}

// ---- to wait

bool quorum_round::anything_posted() const {
  return std::any_of(posted_.begin(), posted_.end(),
                     [](const posting& p) { return p.under_way || p.broke; });
}

template <class Then>
void quorum_round::take_broken(std::unique_lock<std::mutex>& lock, const Then& then) {
  for (std::size_t i = 0; i < posted_.size(); ++i) {
    if (!posted_[i].broke) continue;
    posting taken = std::exchange(posted_[i], {});
    lock.unlock();
    then(i, taken);
    lock.lock();
  }
}

bool quorum_round::settled(const condition& enough) {
  const std::lock_guard guard{mutex_};
  return outstanding_ == 0 || enough(answers_);
}

quorum_round::answers quorum_round::so_far() {
  const std::lock_guard guard{mutex_};
  return answers_;
}

void quorum_round::rouse_waiter() {
  changed_.notify_all();
  if (waiter_ != nullptr) waiter_->ring();
}

void quorum_round::wait(boot_time until, const condition& enough, const std::stop_token& stop) {
  auto& clock = quorum_->first().clock();
  const std::stop_callback on_stop{stop, [this] {
                                     const std::lock_guard guard{mutex_};
                                     rouse_waiter();
                                   }};
  std::unique_lock lock{mutex_};
  std::optional<bell> mine;
  if (anything_posted()) waiter_ = &mine.emplace();
  const leaves_its_bell at_the_end{*this, lock};
  while (outstanding_ > 0 && clock.now() < until && !stop.stop_requested() && !enough(answers_)) {
    if (mine && mine->fd() >= 0 && anything_posted()) {
      read_answers(lock, *mine, until);
      take_broken(lock, [&](std::size_t i, const posting& p) { ask_runner(i, p.command, false); });
    } else {
      clock.wait_until(lock, changed_, until);
    }
  }
}

quorum_round::leaves_its_bell::~leaves_its_bell() {
  if (!lock.owns_lock()) lock.lock();
  of.waiter_ = nullptr;
  try {
    of.take_broken(lock, [&](std::size_t i, posting& p) {
      of.on_answer(i, std::move(*p.broke), boot_time{}, true);
    });
  } catch (...) {
    return;  // no memory for that either
  }
}

void quorum_round::read_answers(std::unique_lock<std::mutex>& lock, bell& by, boot_time until) {
  std::vector<std::size_t> nodes;
  nodes.reserve(posted_.size());
  for (std::size_t i = 0; i < posted_.size(); ++i) {
    if (posted_[i].under_way) nodes.push_back(i);
  }
  lock.unlock();
  std::vector<pollfd> all{{by.fd(), POLLIN, 0}};
  std::vector<store::posting_store::source> from;
  all.reserve(nodes.size() + 1);
  from.reserve(nodes.size());
  bool others_read = false;
  for (const std::size_t i : nodes) {
    from.push_back(quorum_->nodes[i]->session()->answers());
    all.push_back({from.back().descriptor, POLLIN, 0});  // poll() ignores descriptors below 0
    others_read = others_read || from.back().descriptor < 0;
  }
  (void)::poll(all.data(), all.size(), poll_time(quorum_->now(), until, others_read));
  if (all.front().revents != 0) by.clear();
  // Also reads without a descriptor: the connection may have broken while the request was sent.
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (all[i + 1].revents != 0 || all[i + 1].fd < 0) quorum_->nodes[nodes[i]]->catch_up();
  }
  lock.lock();
}

}  // namespace holdfast::engine
