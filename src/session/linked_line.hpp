#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace holdfast::engine {

/// A queue linked through a member of its elements: pushing takes no memory, so a thread that must
/// not fail can use it. An element is in the queue at most once.
template <class Member, std::shared_ptr<Member> Member::* link>
class linked_line {
 public:
  linked_line() = default;
  linked_line(const linked_line&) = delete;
  linked_line& operator=(const linked_line&) = delete;
  ~linked_line() { clear(); }

  bool empty() const noexcept { return first_ == nullptr; }
  std::size_t size() const noexcept { return size_; }

  template <class F>
  void for_each(F f) const {
    for (const Member* m = first_.get(); m != nullptr; m = (m->*link).get()) f(*m);
  }

  void push(std::shared_ptr<Member> m) noexcept {
    Member* const last = m.get();
    (last_ == nullptr ? first_ : last_->*link) = std::move(m);
    last_ = last;
    ++size_;
  }

  /// Null if the queue is empty.
  std::shared_ptr<Member> pop() noexcept {
    auto first = std::move(first_);
    if (!first) return nullptr;
    first_ = std::exchange((*first).*link, nullptr);
    if (!first_) last_ = nullptr;
    --size_;
    return first;
  }

  /// Removes this element from anywhere in the queue; null if it is not in it.
  std::shared_ptr<Member> take(const Member& m) noexcept {
    Member* before = nullptr;
    std::shared_ptr<Member>* at = &first_;
    while (*at != nullptr && at->get() != &m) {
      before = at->get();
      at = &((**at).*link);
    }
    if (*at == nullptr) return nullptr;
    auto taken = std::move(*at);
    *at = std::exchange((*taken).*link, nullptr);
    if (last_ == taken.get()) last_ = before;
    --size_;
    return taken;
  }

  /// Iterative: destroying a long list recursively would overflow the stack.
  void clear() noexcept {
    while (pop()) {
    }
  }

 private:
  std::shared_ptr<Member> first_;
  Member* last_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace holdfast::engine
