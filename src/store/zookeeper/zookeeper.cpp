#include "store/zookeeper/zookeeper.hpp"

#include <algorithm>
#include <string>

#include "store/places/text.hpp"
#include "store/zookeeper/client.hpp"
#include "store/zookeeper/names.hpp"

namespace holdfast::store::zookeeper {

namespace {

using namespace std::chrono_literals;
using link = std::shared_ptr<connection>;

/// The server's clock is read anew so often.
constexpr auto time_is_known_for = 60s;
/// A container that is empty may go at any moment, between two requests.
constexpr int max_attempts = 5;
/// Its name is none that escape() makes.
constexpr const char* clock_node = "%clock-";

capabilities promises() {
  capabilities c;
  c.preferences = false;
  c.expiring = false;
  return c;
}

std::int64_t micros(std::chrono::nanoseconds d) {
  return std::chrono::duration_cast<std::chrono::microseconds>(d).count();
}

/// The leader looked at it, whatever came of it.
bool leader_answered(int rc) {
  return rc == ZOK || rc == ZNONODE || rc == ZNODEEXISTS || rc == ZBADVERSION || rc == ZNOTEMPTY ||
         rc == ZNOAUTH;
}

class zookeeper_store final : public contender_store {
 public:
  explicit zookeeper_store(zookeeper_options o) : options_(std::move(o)), can_(promises()) {}

  status open();

  const capabilities& can() const noexcept override { return can_; }
  const std::string& url() const noexcept override { return options_.url; }
  const std::string& peer() const noexcept override { return peer_; }
  boot_time safe_until() const noexcept override { return present()->safe_until(); }
  std::chrono::nanoseconds safe_span() const noexcept override { return present()->safe_span(); }

  result<entered> enter(std::string_view name, const contender& who, const placard& says,
                        std::span<const std::string> leaving) override;
  result<std::vector<contender>> contenders(std::string_view name, as_of when,
                                            alarm on_arrival) override;
  result<bool> leave(std::string_view name, std::span<const std::string> places) override;
  result<std::optional<placard>> read(std::string_view name, const std::string& place,
                                      alarm on_change) override;
  result<std::vector<std::optional<placard>>> read(std::string_view name,
                                                   std::span<const contender> line) override;
  result<bool> write(std::string_view name, const std::string& place, const placard& says) override;
  std::vector<result<bool>> confirm(std::span<const place_of> places) override;
  result<versioned> record(std::string_view name, alarm on_change) override;
  result<std::optional<std::int64_t>> replace(std::string_view name, std::string_view text,
                                              std::int64_t version, std::int64_t keep_us) override;
  result<moment> time() override;
  result<std::vector<std::string>> names() override;

 private:
  link present() const;
  result<link> current();
  const ACL_vector* acl() const {
    return options_.private_acl ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
  }
  std::string path_of(std::string_view name) const { return options_.base + "/" + escape(name); }
  std::string path_of(std::string_view name, std::string_view node) const {
    return path_of(name) + "/" + std::string(node);
  }

  /// A change of nothing: a majority has to agree to it, and the member that we talk to has seen
  /// all that was agreed to before. zoo_async promises less: a leader answers it by itself.
  template <class Token>
  int ask_all(connection& c, Token* token) {
    const std::string nobody = options_.base + "/%nobody";
    return zoo_adelete(c.handle(), nobody.c_str(), -1, &requests::on_void, token);
  }

  /// Sends `count` requests by send(i, link, requests) and waits for their answers.
  template <class Send>
  result<std::vector<answer>> ask(std::size_t count, bool to_leader, Send send);
  status make_base();
  status make(const std::string& path, int mode);
  result<entered> enter_in_place_of(std::string_view name, const std::string& prefix,
                                    const std::string& data, std::span<const std::string> leaving);
  void know_time(boot_time at, std::int64_t wall_ms);
  failure wrong(int rc, bool writes = false) const { return explain(rc, options_, writes); }

  const zookeeper_options options_;
  const capabilities can_;
  std::string peer_;
  mutable std::mutex mutex_;
  link link_;
  boot_time time_known_at_{};
  std::int64_t wall_at_ = 0;
};

// ---- the session
// ---------------------------------------------------------------------------------

status zookeeper_store::open() {
  auto opened = connection::open(options_);
  if (!opened) return std::move(opened.error());
  link_ = std::move(*opened);
  const auto until = saturated_add(options_.clock->now(), options_.connect_timeout);
  if (auto ok = link_->wait_connected(until); !ok) return ok;
  peer_ = "z" + link_->id();
  return make_base();
}

link zookeeper_store::present() const {
  const std::lock_guard guard{mutex_};
  return link_;
}

// After the end of a session another one begins; never on a thread of the client.
result<link> zookeeper_store::current() {
  const std::lock_guard guard{mutex_};
  if (!link_->over()) return link_;
  if (link_->refused()) return wrong(ZAUTHFAILED);
  auto opened = connection::open(options_);
  if (!opened) return std::move(opened.error());
  link_ = std::move(*opened);
  return link_;
}

template <class Send>
result<std::vector<answer>> zookeeper_store::ask(std::size_t count, bool to_leader, Send send) {
  auto to = current();
  if (!to) return std::move(to.error());
  const auto all = std::make_shared<requests>(count);
  const boot_time sent = options_.clock->now();
  for (std::size_t i = 0; i < count; ++i) {
    auto* const token = all->expect(i);
    all->sent(token, send(i, **to, *all, token));
  }
  auto answers = all->wait(*options_.clock, saturated_add(sent, options_.command_timeout));
  if (to_leader && leader_answered(answers.front().rc)) (*to)->proved(sent);
  return answers;
}

status zookeeper_store::make(const std::string& path, int mode) {
  const auto made = ask(1, true, [&](auto, connection& c, requests&, auto* token) {
    return zoo_acreate(c.handle(), path.c_str(), "", 0, acl(), mode, &requests::on_text, token);
  });
  if (!made) return made.error();
  const int rc = made->front().rc;
  if (rc == ZOK || rc == ZNODEEXISTS) return done{};
  return wrong(rc);
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
    // Of those above it, some may be there that we must not touch.
    if (!made && (whole || made.error().code != errc::not_permitted)) {
      if (made.error().code == errc::not_permitted) {
        made.error().what = "the base path " + options_.base +
                            " is not there, and cannot be made: " + made.error().what;
      }
      return made;
    }
    if (whole) return done{};
  }
}

// ---- places
// --------------------------------------------------------------------------------------

result<contender_store::entered> zookeeper_store::enter(std::string_view name, const contender& who,
                                                        const placard& says,
                                                        std::span<const std::string> leaving) {
  const std::string prefix = path_of(name, node_prefix(who));
  const std::string data = places::write(says);
  if (!leaving.empty()) {
    auto in = enter_in_place_of(name, prefix, data, leaving);
    if (!in || in->replaced) return in;
  }
  for (int i = 0; i < max_attempts; ++i) {
    const auto made = ask(1, true, [&](auto, connection& c, requests&, auto* token) {
      return zoo_acreate2(c.handle(), prefix.c_str(), data.data(), static_cast<int>(data.size()),
                          acl(), ZOO_EPHEMERAL_SEQUENTIAL, &requests::on_text_stat, token);
    });
    if (!made) return made.error();
    const answer& a = made->front();
    if (a.rc == ZOK) {
      know_time(options_.clock->now(), a.stat.ctime);
      return entered{a.text.substr(a.text.rfind('/') + 1), static_cast<std::uint64_t>(a.stat.czxid),
                     false};
    }
    if (a.rc != ZNONODE) return wrong(a.rc, true);
    if (auto ok = make(path_of(name), ZOO_CONTAINER); !ok) {
      return failure{ok.error().code, std::move(ok.error().what)};
    }
  }
  return failure{errc::unavailable, "the node of the name was removed each time it was made"};
}

// One step for both; if those that leave are gone already, nothing was done.
result<contender_store::entered> zookeeper_store::enter_in_place_of(
    std::string_view name, const std::string& prefix, const std::string& data,
    std::span<const std::string> leaving) {
  std::vector<std::string> paths;
  for (const auto& place : leaving) paths.push_back(path_of(name, place));
  std::vector<zoo_op_t> steps(paths.size() + 1);
  if (steps.size() > requests::max_steps) return entered{};
  const auto made = ask(1, true, [&](auto, connection& c, requests& r, auto* token) {
    for (std::size_t p = 0; p < paths.size(); ++p) {
      zoo_delete_op_init(&steps[p], paths[p].c_str(), -1);
    }
    const auto room = r.path_made();
    zoo_create_op_init(&steps.back(), prefix.c_str(), data.data(), static_cast<int>(data.size()),
                       acl(), ZOO_EPHEMERAL_SEQUENTIAL, room.data(), static_cast<int>(room.size()));
    return zoo_amulti(c.handle(), static_cast<int>(steps.size()), steps.data(), r.results(),
                      &requests::on_made, token);
  });
  if (!made) return made.error();
  const answer& a = made->front();
  if (a.rc == ZNONODE) return entered{};
  if (a.rc != ZOK) return wrong(a.rc, true);
  const auto stat = ask(1, false, [&](auto, connection& c, requests&, auto* token) {
    return zoo_aexists(c.handle(), a.text.c_str(), 0, &requests::on_stat, token);
  });
  if (!stat) return failure{errc::unavailable, stat.error().what, true};
  if (stat->front().rc != ZOK) return wrong(stat->front().rc, true);
  return entered{a.text.substr(a.text.rfind('/') + 1),
                 static_cast<std::uint64_t>(stat->front().stat.czxid), true};
}

result<std::vector<contender>> zookeeper_store::contenders(std::string_view name, as_of when,
                                                           alarm on_arrival) {
  const std::string path = path_of(name);
  const bool latest = when == as_of::latest;
  void* watch = nullptr;
  const auto answers =
      ask(latest ? 2 : 1, latest, [&](std::size_t i, connection& c, requests&, auto* token) {
        if (latest && i == 0) return ask_all(c, token);
        if (!on_arrival) {
          return zoo_aget_children(c.handle(), path.c_str(), 0, &requests::on_names, token);
        }
        watch = c.watch(std::move(on_arrival));
        return zoo_awget_children(c.handle(), path.c_str(), &connection::on_watch, watch,
                                  &requests::on_names, token);
      });
  if (!answers) return answers.error();
  if (latest && !leader_answered(answers->front().rc)) return wrong(answers->front().rc);
  const answer& a = answers->back();
  if (a.rc == ZNONODE) return std::vector<contender>{};
  if (a.rc != ZOK) return wrong(a.rc);
  return in_order(a.names);
}

result<bool> zookeeper_store::leave(std::string_view name, std::span<const std::string> places) {
  const auto gone =
      ask(places.size(), true, [&](std::size_t i, connection& c, requests&, auto* token) {
        return zoo_adelete(c.handle(), path_of(name, places[i]).c_str(), -1, &requests::on_void,
                           token);
      });
  if (!gone) return gone.error();
  bool any = false;
  for (const answer& a : *gone) {
    if (a.rc != ZOK && a.rc != ZNONODE) return wrong(a.rc, true);
    any |= a.rc == ZOK;
  }
  return any;
}

namespace {

placard placard_of(const answer& a) {
  placard p = places::read_placard(a.text);
  p.fence = static_cast<std::uint64_t>(a.stat.czxid);
  p.since_wall_at = a.stat.ctime * 1'000;
  return p;
}

}  // namespace

result<std::optional<placard>> zookeeper_store::read(std::string_view name,
                                                     const std::string& place, alarm on_change) {
  const std::string path = path_of(name, place);
  void* watch = nullptr;
  const auto answers = ask(1, false, [&](auto, connection& c, requests&, auto* token) {
    if (!on_change) return zoo_aget(c.handle(), path.c_str(), 0, &requests::on_data, token);
    watch = c.watch(std::move(on_change));
    return zoo_awget(c.handle(), path.c_str(), &connection::on_watch, watch, &requests::on_data,
                     token);
  });
  if (!answers) return answers.error();
  const answer& a = answers->front();
  if (a.rc != ZOK && watch != nullptr) present()->unwatch(watch);
  if (a.rc == ZNONODE) return std::optional<placard>{};
  if (a.rc != ZOK) return wrong(a.rc);
  return std::optional(placard_of(a));
}

result<std::vector<std::optional<placard>>> zookeeper_store::read(std::string_view name,
                                                                  std::span<const contender> line) {
  std::vector<std::optional<placard>> said(line.size());
  if (line.empty()) return said;
  const auto answers =
      ask(line.size(), false, [&](std::size_t i, connection& c, requests&, auto* token) {
        return zoo_aget(c.handle(), path_of(name, line[i].place).c_str(), 0, &requests::on_data,
                        token);
      });
  if (!answers) return answers.error();
  for (std::size_t i = 0; i < line.size(); ++i) {
    const answer& a = (*answers)[i];
    if (a.rc == ZOK) said[i] = placard_of(a);
    if (a.rc != ZOK && a.rc != ZNONODE) return wrong(a.rc);
  }
  return said;
}

result<bool> zookeeper_store::write(std::string_view name, const std::string& place,
                                    const placard& says) {
  const std::string path = path_of(name, place);
  const std::string data = places::write(says);
  const auto answers = ask(1, true, [&](auto, connection& c, requests&, auto* token) {
    return zoo_aset(c.handle(), path.c_str(), data.data(), static_cast<int>(data.size()), -1,
                    &requests::on_stat, token);
  });
  if (!answers) return answers.error();
  const int rc = answers->front().rc;
  if (rc == ZOK || rc == ZNONODE) return rc == ZOK;
  return wrong(rc, true);
}

// The member that we are connected to may have lost the others: what it knows of our places is
// worth something after the leader has answered through it.
std::vector<result<bool>> zookeeper_store::confirm(std::span<const place_of> places) {
  const auto answers =
      ask(places.size() + 1, true, [&](std::size_t i, connection& c, requests&, auto* token) {
        if (i == 0) return ask_all(c, token);
        const auto& p = places[i - 1];
        return zoo_aexists(c.handle(), path_of(p.name, p.place).c_str(), 0, &requests::on_stat,
                           token);
      });
  using each = std::vector<result<bool>>;
  if (!answers) return each(places.size(), answers.error());
  if (!leader_answered(answers->front().rc)) return each(places.size(), wrong(answers->front().rc));
  each there;
  for (std::size_t i = 1; i <= places.size(); ++i) {
    const int rc = (*answers)[i].rc;
    const bool known = rc == ZOK || rc == ZNONODE;
    there.push_back(known ? result<bool>(rc == ZOK) : result<bool>(wrong(rc)));
  }
  return there;
}

// ---- records
// -------------------------------------------------------------------------------------

result<contender_store::versioned> zookeeper_store::record(std::string_view name, alarm on_change) {
  const std::string path = path_of(name, record_node);
  const std::size_t count = on_change ? 3 : 2;
  const auto answers = ask(count, true, [&](std::size_t i, connection& c, requests&, auto* token) {
    if (i == 0) return ask_all(c, token);
    if (i == 1) return zoo_aget(c.handle(), path.c_str(), 0, &requests::on_data, token);
    return zoo_awexists(c.handle(), path.c_str(), &connection::on_watch,
                        c.watch(std::move(on_change)), &requests::on_stat, token);
  });
  if (!answers) return answers.error();
  if (!leader_answered(answers->front().rc)) return wrong(answers->front().rc);
  const answer& a = (*answers)[1];
  if (a.rc == ZNONODE) return versioned{};
  if (a.rc != ZOK) return wrong(a.rc);
  return versioned{a.text, a.stat.version};
}

result<std::optional<std::int64_t>> zookeeper_store::replace(std::string_view name,
                                                             std::string_view text,
                                                             std::int64_t wanted, std::int64_t) {
  using version_now = std::optional<std::int64_t>;
  const auto version = static_cast<std::int32_t>(wanted);  // as it was told by record()
  const std::string path = path_of(name, record_node);
  const int size = static_cast<int>(text.size());
  const auto send = [&](auto, connection& c, requests&, auto* token) {
    if (text.empty()) {
      return zoo_adelete(c.handle(), path.c_str(), version, &requests::on_void, token);
    }
    if (version >= 0) {
      return zoo_aset(c.handle(), path.c_str(), text.data(), size, version, &requests::on_stat,
                      token);
    }
    return zoo_acreate(c.handle(), path.c_str(), text.data(), size, acl(), ZOO_PERSISTENT,
                       &requests::on_text, token);
  };
  for (int i = 0; i < max_attempts; ++i) {
    const auto answers = ask(1, true, send);
    if (!answers) return answers.error();
    const int rc = answers->front().rc;
    if (rc == ZOK) return version_now(answers->front().stat.version);  // 0 of one just made
    if (rc == ZBADVERSION || rc == ZNODEEXISTS) return version_now();
    if (rc == ZNONODE && version >= 0) return version_now();
    if (rc != ZNONODE) return wrong(rc, true);
    if (auto ok = make(path_of(name), ZOO_CONTAINER); !ok) return std::move(ok.error());
  }
  return failure{errc::unavailable, "the node of the name was removed each time it was made"};
}

// ---- time and names
// ------------------------------------------------------------------------------

void zookeeper_store::know_time(boot_time at, std::int64_t wall_ms) {
  const std::lock_guard guard{mutex_};
  time_known_at_ = at;
  wall_at_ = wall_ms * 1'000;
}

// The server tells its time with what it writes.
result<moment> zookeeper_store::time() {
  const boot_time now = options_.clock->now();
  {
    const std::lock_guard guard{mutex_};
    if (wall_at_ != 0 && now - time_known_at_ < time_is_known_for) {
      const std::int64_t wall = wall_at_ + micros(now - time_known_at_);
      return moment{wall, wall, false};
    }
  }
  const std::string path = options_.base + "/" + clock_node;
  const auto made = ask(1, true, [&](auto, connection& c, requests&, auto* token) {
    return zoo_acreate2(c.handle(), path.c_str(), "", 0, acl(), ZOO_EPHEMERAL_SEQUENTIAL,
                        &requests::on_text_stat, token);
  });
  if (!made) return made.error();
  const answer& a = made->front();
  if (a.rc != ZOK) return wrong(a.rc);
  know_time(options_.clock->now(), a.stat.ctime);
  (void)ask(1, true, [&](auto, connection& c, requests&, auto* token) {
    return zoo_adelete(c.handle(), a.text.c_str(), -1, &requests::on_void, token);
  });
  return moment{a.stat.ctime * 1'000, a.stat.ctime * 1'000, false};
}

result<std::vector<std::string>> zookeeper_store::names() {
  const std::string path = options_.base.empty() ? "/" : options_.base;
  const auto parts = ask(2, true, [&](std::size_t i, connection& c, requests&, auto* token) {
    if (i == 0) return ask_all(c, token);
    return zoo_aget_children(c.handle(), path.c_str(), 0, &requests::on_names, token);
  });
  if (!parts) return parts.error();
  if (!leader_answered(parts->front().rc)) return wrong(parts->front().rc);
  if (parts->back().rc != ZOK) return wrong(parts->back().rc);
  std::vector<std::string> found;
  for (const auto& part : parts->back().names) {
    auto name = places::unescape(part);
    if (!name.empty()) found.push_back(std::move(name));
  }
  if (found.empty()) return found;
  const auto lines =
      ask(found.size(), false, [&](std::size_t i, connection& c, requests&, auto* token) {
        return zoo_aget_children(c.handle(), path_of(found[i]).c_str(), 0, &requests::on_names,
                                 token);
      });
  if (!lines) return lines.error();
  std::vector<std::string> used;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const answer& a = (*lines)[i];
    if (a.rc != ZOK && a.rc != ZNONODE) return wrong(a.rc);
    if (!in_order(a.names).empty()) used.push_back(std::move(found[i]));
  }
  return used;
}

}  // namespace

result<std::unique_ptr<contender_store>> open_zookeeper(zookeeper_options options) {
  if (auto ok = check_options(options); !ok) return std::move(ok.error());
  auto opened = std::make_unique<zookeeper_store>(std::move(options));
  if (auto ok = opened->open(); !ok) return std::move(ok.error());
  return std::unique_ptr<contender_store>(std::move(opened));
}

}  // namespace holdfast::store::zookeeper
