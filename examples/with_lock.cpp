// Work that must not run twice at the same time. with_lock returns the result of the work, and
// releases the lock also if the work throws.
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <stdexcept>

int main() {
  auto session = holdfast::open("sqlite:locks.db");
  int balance = 100;

  // #region with_lock
  holdfast::mutex account{session, "account:7"};

  const int after = holdfast::with_lock(account, [&](holdfast::lease& held) {
    held.check();  // throws if the lock was lost, before anything is changed
    balance -= 30;
    return balance;
  });

  auto deposit = account.wrap([&](int amount) { return balance += amount; });
  const int richer = deposit(5);

  try {
    holdfast::with_lock(account, [] { throw std::runtime_error{"card refused"}; });
  } catch (const std::runtime_error&) {
    // the lock is free again
  }
  // #endregion

  std::cout << after << ' ' << richer << '\n';
  return after == 70 && richer == 75 && account.try_lock() ? 0 : 1;
}
