// A price list that many read and one replaces, each in a process of its own.
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <shared_mutex>

int main() {
  auto session = holdfast::open("sqlite:locks.db");

  // #region readers_writer
  holdfast::shared_mutex prices{session, "price-list"};
  {
    std::shared_lock reading{prices};  // beside other readers
    holdfast::shared_mutex other{session, "price-list"};
    std::shared_lock also{other, std::try_to_lock};  // lets another reader in
    std::cout << "two readers: " << std::boolalpha << also.owns_lock() << '\n';
    if (!also || other.try_acquire()) return 1;  // no writer while they read
  }

  prices.lock();  // alone
  // … replace the list …
  prices.downgrade();  // keep reading what was written; no other writer gets in between
  const bool alone = prices.try_upgrade();  // the only reader may become the writer again
  alone ? prices.unlock() : prices.unlock_shared();
  // #endregion

  std::cout << "upgraded: " << alone << '\n';
  return alone ? 0 : 1;
}
