// One of several instances imports. The others stand by, and know its address.
#include <holdfast/holdfast.hpp>
#include <iostream>

int main() {
  using namespace std::chrono_literals;
  auto session = holdfast::open("sqlite:locks.db");

  // #region election
  holdfast::election importer{session, "importer", {.note = "10.0.0.1:8080"}};

  importer.on_leader([&](std::stop_token end, const holdfast::leadership& lead) {
    // Work until the leadership is lost or the program asks to stop.
    for (int batch = 0; batch < 3 && !end.stop_requested(); ++batch) {
      std::cout << "importing in term " << lead.term() << '\n';
    }
  });
  // #endregion

  // #region observe
  holdfast::leadership lead = importer.campaign();
  auto stream = holdfast::election{session, "importer"}.observe();
  const holdfast::leader now = stream.next();  // the leader now; the next call waits for another
  std::cout << now.note << " leads since term " << now.term << '\n';
  // #endregion
  return now.note == "10.0.0.1:8080" && now.term == lead.term() ? 0 : 1;
}
