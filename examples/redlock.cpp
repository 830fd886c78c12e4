// One lock over five stores, of which two may be away. Here they are in memory; yours are servers.
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <vector>

int main() {
  // #region redlock
  std::vector<holdfast::session> nodes;
  for (const auto* url : {"memory:a", "memory:b", "memory:c", "memory:d", "memory:e"}) {
    nodes.push_back(holdfast::open(url));
  }
  holdfast::redlock billing{nodes, "billing", {.trust_after = std::chrono::seconds(30)}};

  holdfast::quorum_lease held = billing.acquire();
  // … bill; the ledger refuses a fence that is smaller than one that it has seen …
  std::cout << "fence " << held.fence() << '\n';
  for (const holdfast::vote v : held.votes()) std::cout << to_string(v) << '\n';
  // #endregion

  return held.release() ? 1 : 0;
}
