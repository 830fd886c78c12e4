#include "store/postgres/opening.hpp"

#include <algorithm>
#include <string>

#include "base/readiness.hpp"
#include "base/store_url.hpp"

namespace holdfast::store::postgres {

namespace {

/// The value that libpq uses if none is given.
std::string usual(std::string_view name) {
  const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> all(PQconndefaults(),
                                                                           &PQconninfoFree);
  for (auto* o = all.get(); o != nullptr && o->keyword != nullptr; ++o) {
    if (name == o->keyword) return o->val == nullptr ? "" : o->val;
  }
  return {};
}

std::string list_of(std::string_view name, const address& a) {
  std::string named = value_of(name, a);
  return named.empty() ? usual(name) : named;
}

std::string list_of_hosts(const address& a) {
  std::string names = list_of("host", a);
  return names.empty() ? list_of("hostaddr", a) : names;
}

std::string turned(const std::string& list, std::size_t first) {
  auto parts = base::between_commas(list);
  first %= parts.size();
  std::rotate(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(first), parts.end());
  std::string all;
  for (std::size_t i = 0; i < parts.size(); ++i) all.append(i == 0 ? "" : ",").append(parts[i]);
  return all;
}

/// The number of hosts. One, and libpq's business, if a service is named: its file may contain
/// parameters that are not in the URL, and libpq prefers them to the defaults.
std::size_t hosts_in(const address& a) {
  if (!value_of("service", a).empty()) return 1;
  return base::between_commas(list_of_hosts(a)).size();
}

/// Rotates the lists that belong together: each host has its address and its port.
address beginning_with(std::size_t first, address a) {
  for (const char* const name : {"host", "hostaddr", "port"}) {
    std::string list = turned(list_of(name, a), first);
    if (!list.empty()) a.parameters.emplace_back(name, std::move(list));  // the last one counts
  }
  return a;
}

/// The index of the connection's host; 0 if that cannot be determined.
std::size_t place_of(const wire& w, const address& a) {
  const std::string names = list_of_hosts(a), ports = list_of("port", a);
  const auto host = base::between_commas(names), port = base::between_commas(ports);
  for (std::size_t i = 0; i < host.size(); ++i) {
    if (host[i] == w.host() && (port.size() == 1 || port[i % port.size()] == w.port())) return i;
  }
  return 0;
}

}  // namespace

opening::opening(const address& to, boot_time until)
    : to_(to), until_(until), begins_(*to.answered_last), hosts_(hosts_in(to)) {
  begin();
}

void opening::begin() {
  const auto now = boot_clock::now();
  share_ends_ = now + (until_ - now) / static_cast<std::int64_t>(hosts_ - tried_);
  const auto first = (begins_ + tried_) % hosts_;
  made_ = wire::begin_open(first == 0 ? to_ : beginning_with(first, to_));
}

// The host that answered last may refuse now because it has become a standby. libpq has not looked
// further than that host, so the next attempt begins with the first host of the list.
result<bool> opening::step(boot_time whole_by) {
  const auto open = made_->go_on_opening(whole_by);
  if (!open) {
    *to_.answered_last = 0;
    return open.error();
  }
  if (*open && hosts_ > 1) *to_.answered_last = place_of(*made_, to_);
  if (!*open && tried_ + 1 < hosts_ && boot_clock::now() >= share_ends_) {
    ++tried_;
    begin();
  }
  return *open;
}

result<std::unique_ptr<wire>> connect(const address& to, boot_time deadline,
                                      std::string_view limit) {
  opening made(to, deadline);
  while (true) {
    const auto open = made.step(deadline);
    if (!open) return open.error();
    if (*open) return made.take();
    const bool ready = base::wait_until_ready(made.fd(), made.wants(), made.next());
    if (!ready && boot_clock::now() >= deadline) {
      return failure{errc::unavailable,
                     "no answer within " + std::string(limit) +
                         ": is a PostgreSQL server running there, and is that its address?"};
    }
  }
}

}  // namespace holdfast::store::postgres
