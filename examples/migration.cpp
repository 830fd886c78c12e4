// A fleet moves from a lock on the old store to one on the new store, program by program.
#include <holdfast/both.hpp>
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <string>
#include <vector>

namespace {

// With the URLs of some Redis servers, which other programs use for their Redlock.
int share_a_redlock(const std::vector<std::string>& urls) {
  // #region redlock
  std::vector<holdfast::session> nodes;
  for (const auto& url : urls) nodes.push_back(holdfast::open(url + "?dialect=redlock"));
  holdfast::redlock orders{nodes, "orders"};  // the resource, as the others call it

  if (auto held = orders.try_acquire_for(std::chrono::seconds(5))) {
    held->check();  // throws if a majority was lost
  }
  // #endregion
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) return share_a_redlock({argv + 1, argv + argc});
  // In real life "redis://cache?dialect=setnx" and "redis://cache".
  auto old_store = holdfast::open("sqlite:old.db");
  auto new_store = holdfast::open("sqlite:new.db");
  bool kept_out_of_old = false, kept_out_of_new = false;

  // #region both
  holdfast::mutex old_lock{old_store, "orders"};
  holdfast::mutex new_lock{new_store, "orders"};
  holdfast::both lock{old_lock, new_lock};  // in this order in every program

  if (auto held = lock.try_acquire()) {
    // a program that knows only one of the two locks is kept out by that lock
    kept_out_of_old = !holdfast::mutex(old_store, "orders").try_acquire();
    kept_out_of_new = !holdfast::mutex(new_store, "orders").try_acquire();
    held->check();  // throws if either was lost
  }
  // #endregion

  const bool free_again = old_lock.try_acquire() && new_lock.try_acquire();
  std::cout << (kept_out_of_old && kept_out_of_new && free_again ? "moved\n" : "failed\n");
  return kept_out_of_old && kept_out_of_new && free_again ? 0 : 1;
}
