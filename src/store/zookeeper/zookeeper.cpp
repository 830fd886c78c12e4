#include "store/zookeeper/zookeeper.hpp"

#include <algorithm>
#include <holdfast/store/micros.hpp>
#include <string>

#include "store/contender_text/text.hpp"
#include "store/zookeeper/zookeeper_store.hpp"

namespace holdfast::store::zookeeper {

namespace {

using namespace std::chrono_literals;

/// The server's clock is read again after this time.
constexpr auto time_is_known_for = 60s;
/// escape() never returns a name like this.
constexpr const char* clock_node = "%clock-";

}  // namespace

zookeeper_store::zookeeper_store(zookeeper_options o)
    : options_(std::move(o)), can_(contender_text::promises(options_.command_timeout)) {}

// ---- the session

status zookeeper_store::open() {
  const auto first = current();
  if (!first) return first.error();
  const auto until = saturated_add(options_.clock->now(), options_.connect_timeout);
  if (auto ok = (*first)->wait_connected(until); !ok) return ok;
  peer_ = "z" + (*first)->id();
  return make_base();
}

result<link> zookeeper_store::current() {
  return session_.current([this](const connection* former) -> result<link> {
    if (former != nullptr && former->refused()) return wrong(ZAUTHFAILED);
    auto foreign = former != nullptr ? former->foreign() : std::nullopt;
    const boot_time now = options_.clock->now();
    if (foreign && now < next_.until()) return std::move(*foreign);
    next_.begin(!foreign, now);
    return connection::open(options_);
  });
}

// The node of a name needs the base path, which may be gone: an operator removed it, or the servers
// lost their data.
status zookeeper_store::make(const std::string& path, int mode) {
  for (bool again = false;; again = true) {
    const auto made = ask(1, true, [&](auto, connection& c, requests&, auto* token) {
      return zoo_acreate(c.handle(), path.c_str(), "", 0, acl(), mode, &requests::on_text, token);
    });
    if (!made) return made.error();
    const int rc = made->front().rc;
    if (rc == ZOK || rc == ZNODEEXISTS) return done{};
    if (rc != ZNONODE || mode != ZOO_CONTAINER || again) return wrong(rc);
    if (auto ok = make_base(); !ok) return ok;
  }
}

status zookeeper_store::make_base() {
  if (options_.base.empty()) return done{};
  const auto there = ask(1, false, [&](auto, connection& c, requests&, auto* token) {
    return zoo_aexists(c.handle(), options_.base.c_str(), 0, &requests::on_stat, token);
  });
  if (!there) return there.error();
  if (there->front().rc == ZOK) return done{};
  if (there->front().rc != ZNONODE) return wrong(there->front().rc);
  for (auto slash = options_.base.find('/', 1);; slash = options_.base.find('/', slash + 1)) {
    auto made = make(options_.base.substr(0, slash), ZOO_PERSISTENT);
    const bool whole = slash == std::string::npos;
    // Some of the nodes above it may exist although this user must not touch them.
    if (!made && (whole || made.error().code != errc::not_permitted)) {
      if (made.error().code == errc::not_permitted) {
        made.error().what = "the base path " + options_.base +
                            " does not exist, and cannot be created: " + made.error().what;
      }
      return made;
    }
    if (whole) return done{};
  }
}

// The client knows only these two: the server reports the rest of its state to administrators only.
result<store::facts> zookeeper_store::facts() {
  auto to = current();
  if (!to) return std::move(to.error());
  const auto kept = (*to)->keep();
  zhandle_t* const handle = (*to)->handle();
  if (handle == nullptr) return wrong(ZSESSIONEXPIRED);
  const char* const server = zoo_get_current_server(handle);
  return store::facts{{{}, "server", server != nullptr ? server : ""},
                      {{}, "session_ms", std::to_string(zoo_recv_timeout(handle))},
                      {{}, "session_ms_asked", std::to_string(options_.session.count())}};
}

// ---- time and names

void zookeeper_store::know_time(boot_time at, std::int64_t wall_ms) {
  const std::lock_guard guard{mutex_};
  time_known_at_ = at;
  wall_at_ = wall_ms * 1'000;
}

// The server returns its time with a write.
result<moment> zookeeper_store::time() {
  const boot_time now = options_.clock->now();
  {
    const std::lock_guard guard{mutex_};
    if (wall_at_ != 0 && now - time_known_at_ < time_is_known_for) {
      const std::int64_t wall = wall_at_ + micros(now - time_known_at_);
      return moment{wall, wall, false};
    }
  }
  // One name for a session: a node left by a lost answer is found again and removed.
  const std::string path = options_.base + "/" + clock_node + present()->id();
  for (int i = 0; i < max_attempts; ++i) {
    const auto told = ask(2, true, [&](std::size_t r, connection& c, requests&, auto* token) {
      if (r == 1) return zoo_aset(c.handle(), path.c_str(), "", 0, -1, &requests::on_stat, token);
      return zoo_acreate(c.handle(), path.c_str(), "", 0, acl(), ZOO_EPHEMERAL, &requests::on_text,
                         token);
    });
    if (!told) return told.error();
    const int made = told->front().rc;
    const answer& a = told->back();
    if (made == ZNONODE) {
      if (auto ok = make_base(); !ok) return std::move(ok.error());
      continue;
    }
    if (made != ZOK && made != ZNODEEXISTS) return wrong(made);
    if (a.rc == ZNONODE) continue;  // another thread asked, too, and has removed it
    if (a.rc != ZOK) return wrong(a.rc);
    know_time(options_.clock->now(), a.stat.mtime);
    (void)ask(1, true, [&](auto, connection& c, requests&, auto* token) {
      return zoo_adelete(c.handle(), path.c_str(), -1, &requests::on_void, token);
    });
    return moment{a.stat.mtime * 1'000, a.stat.mtime * 1'000, false};
  }
  return failure{
      errc::unavailable,
      "the node that this session creates to learn the servers' time was removed each time"};
}

result<std::vector<contender_store::used_name>> zookeeper_store::names() {
  const std::string path = options_.base.empty() ? "/" : options_.base;
  const auto parts = ask(2, true, [&](std::size_t i, connection& c, requests&, auto* token) {
    if (i == 0) return ask_all(c, token);
    return zoo_aget_children(c.handle(), path.c_str(), 0, &requests::on_names, token);
  });
  if (!parts) return parts.error();
  if (!leader_answered(parts->front().rc)) return wrong(parts->front().rc);
  if (parts->back().rc == ZNONODE) return std::vector<used_name>{};
  if (parts->back().rc != ZOK) return wrong(parts->back().rc);
  std::vector<std::string> found;
  for (const auto& part : parts->back().names) {
    auto name = contender_text::unescape(part);
    if (!name.empty()) found.push_back(std::move(name));
  }
  if (found.empty()) return std::vector<used_name>{};
  const auto lines =
      ask(found.size(), false, [&](std::size_t i, connection& c, requests&, auto* token) {
        return zoo_aget_children(c.handle(), path_of(found[i]).c_str(), 0, &requests::on_names,
                                 token);
      });
  if (!lines) return lines.error();
  std::vector<used_name> used;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const answer& a = (*lines)[i];
    // A name that this user may not read, or cannot ask for: a request for that name reports the
    // reason.
    const bool hidden = a.rc == ZNOAUTH || a.rc == ZBADARGUMENTS;
    if (a.rc != ZOK && a.rc != ZNONODE && !hidden) return wrong(a.rc);
    const auto line = in_order(a.names);
    const bool only_record = line.size() == 1 && line.front().node == record_node;
    if (hidden || !line.empty()) used.push_back({std::move(found[i]), only_record});
  }
  return used;
}

result<std::unique_ptr<contender_store>> open_zookeeper(zookeeper_options options) {
  auto opened = std::make_unique<zookeeper_store>(std::move(options));
  if (auto ok = opened->open(); !ok) return std::move(ok.error());
  return std::unique_ptr<contender_store>(std::move(opened));
}

}  // namespace holdfast::store::zookeeper
