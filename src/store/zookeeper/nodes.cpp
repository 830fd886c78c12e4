#include "store/contender_text/text.hpp"
#include "store/zookeeper/zookeeper_store.hpp"

namespace holdfast::store::zookeeper {

namespace {

// A session's requests are carried out in order, so a list requested together with the new entry
// contains it. A list that did not arrive is requested again.
contender_store::entered entered_at(const std::string& path, const struct Stat& stat, bool replaced,
                                    const answer& line) {
  contender_store::entered in;
  in.node = path.substr(path.rfind('/') + 1);
  in.fence = static_cast<std::uint64_t>(stat.czxid);
  in.session = static_cast<std::uint64_t>(stat.ephemeralOwner);
  in.replaced = replaced;
  if (line.rc == ZOK) in.line = in_order(line.names);
  return in;
}

contender_data contender_data_of(const answer& a) {
  contender_data p = contender_text::read_contender_data(a.text);
  p.fence = static_cast<std::uint64_t>(a.stat.czxid);
  p.since_wall_at = a.stat.ctime * 1'000;
  p.session = static_cast<std::uint64_t>(a.stat.ephemeralOwner);
  return p;
}

}  // namespace

result<contender_store::entered> zookeeper_store::enter(std::string_view name, const contender& who,
                                                        const contender_data& says,
                                                        std::span<const std::string> leaving) {
  const std::string prefix = path_of(name, node_prefix(who));
  const std::string data = contender_text::write(says);
  if (leaving.empty()) return enter_behind_all(name, prefix, data);
  auto in = enter_in_place_of(name, prefix, data, leaving);
  if (!in || !in->node.empty()) return in;
  auto behind = enter_behind_all(name, prefix, data);
  if (behind) {
    behind->replaced = in->replaced;
  } else if (in->replaced) {
    behind.error().outcome_unknown = true;  // those that were to leave have left
  }
  return behind;
}

result<contender_store::entered> zookeeper_store::enter_behind_all(std::string_view name,
                                                                   const std::string& prefix,
                                                                   const std::string& data) {
  const std::string parent = path_of(name);
  for (int i = 0; i < max_attempts; ++i) {
    const auto made = ask(2, true, [&](std::size_t r, connection& c, requests&, auto* token) {
      if (r == 1) return ask_line(c, parent, token);
      return zoo_acreate2(c.handle(), prefix.c_str(), data.data(), static_cast<int>(data.size()),
                          acl(), ZOO_EPHEMERAL_SEQUENTIAL, &requests::on_text_stat, token);
    });
    if (!made) return made.error();
    const answer& a = made->front();
    if (a.rc == ZOK && counter_used_up(a.text)) {
      if (auto anew = count_anew(name, a.text); !anew) return std::move(anew.error());
      continue;
    }
    if (a.rc == ZOK) {
      know_time(options_.clock->now(), a.stat.ctime);
      return entered_at(a.text, a.stat, false, made->back());
    }
    if (a.rc != ZNONODE) return wrong(a.rc, true);
    if (auto ok = make(parent, ZOO_CONTAINER); !ok) {
      return failure{ok.error().code, std::move(ok.error().what)};
    }
  }
  return failure{errc::unavailable, "the node of the name was removed each time it was made"};
}

// Nodes with the same number have no order, so the last one is removed. A name that has no other
// nodes is removed, too: its counter begins anew.
status zookeeper_store::count_anew(std::string_view name, const std::string& last) {
  const std::string parent = path_of(name);
  const auto gone = ask(2, true, [&](std::size_t i, connection& c, requests&, auto* token) {
    const std::string& path = i == 0 ? last : parent;
    return zoo_adelete(c.handle(), path.c_str(), -1, &requests::on_void, token);
  });
  if (!gone) return failure{gone.error().code, gone.error().what, true};
  const int left = gone->front().rc, rc = gone->back().rc;
  if (left != ZOK && left != ZNONODE) return wrong(left, true);
  if (rc == ZOK || rc == ZNONODE) return done{};
  return failure{errc::unavailable,
                 "the servers have numbered 2^31 requests for this name, and cannot tell the order "
                 "of more: they begin anew when nobody holds the name or waits for it"};
}

// Both in one step. If the leaving entries are gone already, nothing was done; returns no node
// then.
result<contender_store::entered> zookeeper_store::enter_in_place_of(
    std::string_view name, const std::string& prefix, const std::string& data,
    std::span<const std::string> leaving) {
  std::vector<std::string> paths;
  for (const auto& node : leaving) paths.push_back(path_of(name, node));
  std::vector<zoo_op_t> steps(paths.size() + 1);
  if (steps.size() > requests::max_steps) return entered{};
  const std::string parent = path_of(name);
  const auto made = ask(2, true, [&](std::size_t i, connection& c, requests& r, auto* token) {
    if (i == 1) return ask_line(c, parent, token);
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
  if (counter_used_up(a.text)) {
    if (auto anew = count_anew(name, a.text); !anew) {
      anew.error().outcome_unknown = true;  // those that were to leave have left
      return std::move(anew.error());
    }
    entered nowhere;
    nowhere.replaced = true;
    return nowhere;
  }
  const auto stat = ask(1, false, [&](auto, connection& c, requests&, auto* token) {
    return zoo_aexists(c.handle(), a.text.c_str(), 0, &requests::on_stat, token);
  });
  if (!stat) return failure{errc::unavailable, stat.error().what, true};
  if (stat->front().rc != ZOK) return wrong(stat->front().rc, true);
  return entered_at(a.text, stat->front().stat, true, made->back());
}

// A session's requests are carried out in the order in which they were sent, even after a change of
// the server: the leader refuses requests that still come through the previous server. So the
// latest list is also a settled one.
result<std::vector<contender>> zookeeper_store::contenders(std::string_view name, as_of when,
                                                           alarm on_arrival) {
  const std::string path = path_of(name);
  const bool latest = when != as_of::seen;
  void* watch = nullptr;
  const auto answers =
      ask(latest ? 2 : 1, latest, [&](std::size_t i, connection& c, requests&, auto* token) {
        if (latest && i == 0) return ask_all(c, token);
        if (!on_arrival) return ask_line(c, path, token);
        watch = c.watch(std::move(on_arrival));
        return zoo_awget_children(c.handle(), path.c_str(), &connection::on_watch, watch,
                                  &requests::on_names, token);
      });
  if (!answers) return answers.error();
  const answer& a = answers->back();
  if (a.rc != ZOK && watch != nullptr) present()->unwatch(watch);  // no watch was set
  if (latest && !leader_answered(answers->front().rc)) return wrong(answers->front().rc);
  if (a.rc == ZNONODE) return std::vector<contender>{};
  if (a.rc != ZOK) return wrong(a.rc);
  return in_order(a.names);
}

result<bool> zookeeper_store::leave(std::string_view name, std::span<const std::string> nodes) {
  const auto gone =
      ask(nodes.size(), true, [&](std::size_t i, connection& c, requests&, auto* token) {
        return zoo_adelete(c.handle(), path_of(name, nodes[i]).c_str(), -1, &requests::on_void,
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

result<std::optional<contender_data>> zookeeper_store::read(std::string_view name,
                                                            const std::string& node,
                                                            alarm on_change) {
  const std::string path = path_of(name, node);
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
  if (a.rc == ZNONODE) return std::optional<contender_data>{};
  if (a.rc != ZOK) return wrong(a.rc);
  return std::optional(contender_data_of(a));
}

result<std::vector<std::optional<contender_data>>> zookeeper_store::read(
    std::string_view name, std::span<const contender> line) {
  std::vector<std::optional<contender_data>> said(line.size());
  if (line.empty()) return said;
  const auto answers =
      ask(line.size(), false, [&](std::size_t i, connection& c, requests&, auto* token) {
        return zoo_aget(c.handle(), path_of(name, line[i].node).c_str(), 0, &requests::on_data,
                        token);
      });
  if (!answers) return answers.error();
  for (std::size_t i = 0; i < line.size(); ++i) {
    const answer& a = (*answers)[i];
    if (a.rc == ZOK) said[i] = contender_data_of(a);
    if (a.rc != ZOK && a.rc != ZNONODE) return wrong(a.rc);
  }
  return said;
}

result<bool> zookeeper_store::write(std::string_view name, const std::string& node,
                                    const contender_data& says) {
  const std::string path = path_of(name, node);
  const std::string data = contender_text::write(says);
  const auto answers = ask(1, true, [&](auto, connection& c, requests&, auto* token) {
    return zoo_aset(c.handle(), path.c_str(), data.data(), static_cast<int>(data.size()), -1,
                    &requests::on_stat, token);
  });
  if (!answers) return answers.error();
  const int rc = answers->front().rc;
  if (rc == ZOK || rc == ZNONODE) return rc == ZOK;
  return wrong(rc, true);
}

// The connected member may have lost contact with the others: its view of the entries counts only
// after the leader has answered through it.
std::vector<result<bool>> zookeeper_store::confirm(std::span<const node_of> nodes) {
  const auto answers =
      ask(nodes.size() + 1, true, [&](std::size_t i, connection& c, requests&, auto* token) {
        if (i == 0) return ask_all(c, token);
        const auto& p = nodes[i - 1];
        return zoo_aexists(c.handle(), path_of(p.name, p.node).c_str(), 0, &requests::on_stat,
                           token);
      });
  using each = std::vector<result<bool>>;
  if (!answers) return each(nodes.size(), answers.error());
  if (!leader_answered(answers->front().rc)) return each(nodes.size(), wrong(answers->front().rc));
  each there;
  for (std::size_t i = 1; i <= nodes.size(); ++i) {
    const int rc = (*answers)[i].rc;
    const bool known = rc == ZOK || rc == ZNONODE;
    there.push_back(known ? result<bool>(rc == ZOK) : result<bool>(wrong(rc)));
  }
  return there;
}

}  // namespace holdfast::store::zookeeper
