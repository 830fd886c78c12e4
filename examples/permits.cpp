// Three licences for any number of workers; a job takes as many as it needs, or waits.
#include <chrono>
#include <holdfast/holdfast.hpp>
#include <iostream>

int main() {
  using namespace std::chrono_literals;
  auto session = holdfast::open("sqlite:locks.db");

  // #region permits
  holdfast::semaphore licences{session, "licences", 3};

  holdfast::lease render = licences.acquire(2);  // two of the three; a crash gives them back
  auto preview = licences.try_acquire();         // the third
  auto late = licences.try_acquire_for(10ms);    // none left
  std::cout << "preview " << preview.has_value() << ", late " << late.has_value() << '\n';

  // A permit for other programs: any that knows the id may extend it or give it back.
  render.release();
  holdfast::expiring_semaphore jobs{session, "licences", 3};
  const holdfast::permit ticket = jobs.acquire(30s);
  const bool longer = jobs.try_extend(ticket.id, 60s);
  const bool returned = jobs.release(ticket.id);
  // #endregion

  return preview && !late && longer && returned ? 0 : 1;
}
