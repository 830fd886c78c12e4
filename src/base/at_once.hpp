#pragma once

#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace holdfast::base {

/// Runs all of them at the same time (ADR 159), each in a thread, and returns when all are done: if
/// several of them wait, the waits overlap. Those for which there is no thread run afterwards on
/// the calling thread, as does a single one. If some throw, the exception of the first of them is
/// rethrown.
template <class Do>
void all_at_once(std::size_t count, Do one) {
  std::vector<std::exception_ptr> wrong(count);
  const auto done = [&](std::size_t i) noexcept {
    try {
      one(i);
    } catch (...) {
      wrong[i] = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  others.reserve(count);
  try {
    while (others.size() + 1 < count) others.emplace_back(done, others.size());
  } catch (...) {
    // No thread: the rest runs below.
  }
  for (std::size_t i = others.size(); i < count; ++i) done(i);
  for (auto& t : others) t.join();
  for (const auto& w : wrong) {
    if (w) std::rethrow_exception(w);
  }
}

}  // namespace holdfast::base
