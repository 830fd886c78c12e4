#include "tool/nearest.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace holdfast::tool {

namespace {

/// The number of insertions, deletions, replacements and swaps of neighbours that make `a` into
/// `b`.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> now(b.size() + 1);
  std::iota(last.begin(), last.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      now[j] = std::min({change, last[j] + 1, now[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) now[j] = std::min(now[j], before_last[j - 2] + 1);
    }
    before_last.swap(last);
    last.swap(now);
  }
  return last[b.size()];
}

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  const std::string* best = nullptr;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& c : candidates) {
    const bool part =
        word.size() >= 2 && (c.starts_with(word) || c.ends_with('-' + std::string(word)));
    const std::size_t d = part ? 1 : distance(word, c);
    // A word that differs in half of its letters is another word: -q is not -h.
    if (d >= best_distance || 2 * d >= c.size()) continue;
    best = &c;
    best_distance = d;
  }
  return best ? *best : std::string{};
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  const std::string best = nearest(word, candidates);
  return best.empty() ? best : "; did you mean " + best + "?";
}

}  // namespace holdfast::tool
