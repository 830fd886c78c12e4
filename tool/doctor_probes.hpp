#pragma once

#include <functional>
#include <holdfast/session.hpp>
#include <string>

#include "tool/doctor_names.hpp"
#include "tool/finding.hpp"
#include "tool/stopwatch.hpp"

namespace holdfast::tool {

/// What doctor finds out by trying, under a name that no other program uses; at the end it leaves
/// nothing at the store.
class probes {
 public:
  /// `watch` is the session's decorator.
  probes(session s, stopwatch watch);

  findings round_trip();
  /// Acquires and releases each kind that this store has: a failure shows which right is missing.
  findings rights();
  /// The findings about the names in use, or a note where the store cannot list them.
  findings names(const circumstances& c) const;
  /// The difference between this machine's clock and the store's, by which ages are shown.
  findings clock();
  /// Whether a waiter of another session is notified. `another` opens one with that decorator.
  using decorator = decltype(session_options::decorate);
  findings notifications(const std::function<session(decorator)>& another);

 private:
  findings listing() const;
  finding tried(const std::string& what, const std::function<void()>& act) const;

  const session session_;
  const stopwatch watch_;
  const std::string name_;
};

/// A failure of the library as a finding, with a remedy.
finding problem_of(const std::string& topic, const error& e);

}  // namespace holdfast::tool
