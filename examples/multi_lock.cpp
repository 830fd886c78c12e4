// A transfer takes both accounts, the rates as a reader, and one of three licences: all of them, or
// none.
#include <holdfast/holdfast.hpp>
#include <iostream>

int main() {
  using namespace std::chrono_literals;
  auto session = holdfast::open("sqlite:locks.db");

  // #region multi_lock
  holdfast::mutex from{session, "account:17"};
  holdfast::mutex to{session, "account:4"};
  holdfast::shared_mutex rates{session, "rates"};
  holdfast::semaphore licences{session, "licences", 3};

  holdfast::multi_lock transfer{from, to, shared(rates), permits(licences, 1)};
  if (const auto held = transfer.try_acquire_for(500ms)) {
    const auto fences = held->fences();  // in the order of the members
    // … write both accounts, each with its fence …
    held->check();  // all of them are still ours
  }
  // #endregion

  std::cout << session.names().size() << " names left in use\n";
  return session.names().empty() ? 0 : 1;
}
