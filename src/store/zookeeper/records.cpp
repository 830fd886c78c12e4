#include <algorithm>

#include "base/hex.hpp"
#include "base/random.hpp"
#include "base/words.hpp"
#include "store/zookeeper/zookeeper_store.hpp"

/// The record of a name, which is written version by version. The versions of a node restart with
/// each new node, so a second node identifies the life of the record:
///
///     /locks/NAME/record
///     /locks/NAME/life/5f0c2b9d1e8a7346     a number that is unique to this life
///
/// One step creates all three, and one step removes them. Older builds, which do not know lives,
/// create and remove the record alone.
namespace holdfast::store::zookeeper {

namespace {

/// 0: none.
std::uint64_t life_in(const std::vector<std::string>& names) {
  std::uint64_t life = 0;
  return names.size() == 1 && base::parse_number(names.front(), life, 16) ? life : 0;
}

/// The steps of one request, which are carried out together or not at all. The paths and the text
/// belong to the caller until the request is sent.
class steps {
 public:
  explicit steps(const ACL_vector* acl) : acl_(acl) {}
  void check(const std::string& path) { zoo_check_op_init(&next(), path.c_str(), -1); }
  void make(const std::string& path, std::string_view text = "") {
    zoo_create_op_init(&next(), path.c_str(), text.data(), static_cast<int>(text.size()), acl_,
                       ZOO_PERSISTENT, nullptr, 0);
  }
  void write(const std::string& path, std::string_view text, std::int32_t version) {
    zoo_set_op_init(&next(), path.c_str(), text.data(), static_cast<int>(text.size()), version,
                    nullptr);
  }
  void remove(const std::string& path, std::int32_t version = -1) {
    zoo_delete_op_init(&next(), path.c_str(), version);
  }
  int send(connection& c, requests& r, const requests::token* token) {
    return zoo_amulti(c.handle(), count_, all_, r.results(), &requests::on_made, token);
  }

 private:
  zoo_op_t& next() { return all_[count_++]; }
  const ACL_vector* acl_;
  zoo_op_t all_[requests::max_steps];
  int count_ = 0;
};

}  // namespace

// Reads the life before the record: if the life is still the same when the record is written, it
// belongs to the record that was read.
result<contender_store::versioned> zookeeper_store::record(std::string_view name, bool,
                                                           alarm on_change) {
  const std::string path = path_of(name, record_node);
  const std::string lives = path_of(name, life_node);
  const std::size_t count = on_change ? 4 : 3;
  void* watch = nullptr;
  const auto answers = ask(count, true, [&](std::size_t i, connection& c, requests&, auto* token) {
    if (i == 0) return ask_all(c, token);
    if (i == 1) return ask_line(c, lives, token);
    // Watches before it reads: so a change in between is reported.
    if (i == count - 1) return zoo_aget(c.handle(), path.c_str(), 0, &requests::on_data, token);
    watch = c.watch(std::move(on_change));
    return zoo_awexists(c.handle(), path.c_str(), &connection::on_watch, watch, &requests::on_stat,
                        token);
  });
  if (!answers) return answers.error();
  const auto there_or_not = [](const answer& a) { return a.rc == ZOK || a.rc == ZNONODE; };
  const auto missing = std::find_if_not(answers->begin() + 1, answers->end(), there_or_not);
  const bool asked_leader = leader_answered(answers->front().rc);
  if (watch != nullptr && !(asked_leader && missing == answers->end())) present()->unwatch(watch);
  if (!asked_leader) return wrong(answers->front().rc);
  if (missing != answers->end()) return wrong(missing->rc);
  const answer& a = answers->back();
  const std::uint64_t life = life_in((*answers)[1].names);
  if (a.rc == ZNONODE) return versioned{{}, {-1, life}};
  return versioned{a.text, {a.stat.version, life}};
}

result<std::optional<contender_store::revision>> zookeeper_store::replace(std::string_view name,
                                                                          std::string_view text,
                                                                          revision was,
                                                                          std::int64_t) {
  const auto version = static_cast<std::int32_t>(was.number);  // as record() returned it
  const std::string path = path_of(name, record_node);
  const std::string lives = path_of(name, life_node);
  const std::string former = lives + "/" + base::in_hex(was.life);
  const bool goes_on = was.life != 0 && was.is_of_a_record() && !text.empty();
  const std::uint64_t life = goes_on ? was.life : base::random_bits();
  const std::string latter = lives + "/" + base::in_hex(life);
  const auto send = [&](auto, connection& c, requests& r, auto* token) {
    steps all{acl()};
    if (goes_on) {
      all.check(former);
    } else {
      // Creating the node detects that there is none. A life without a record was left by an older
      // build.
      was.life == 0 ? all.make(lives) : all.remove(former);
      text.empty() ? all.remove(lives) : all.make(latter);
    }
    if (text.empty()) {
      all.remove(path, version);
    } else if (was.is_of_a_record()) {
      all.write(path, text, version);
    } else {
      all.make(path, text);
    }
    return all.send(c, r, token);
  };
  using version_now = std::optional<revision>;
  for (int i = 0; i < max_attempts; ++i) {
    const auto answers = ask(1, true, send);
    if (!answers) return answers.error();
    const int rc = answers->front().rc;
    if (rc == ZOK) return version_now(text.empty() ? revision{} : revision{was.number + 1, life});
    if (rc == ZBADVERSION || rc == ZNODEEXISTS) return version_now();
    if (rc == ZNONODE && was != revision{}) return version_now();
    if (rc != ZNONODE) return wrong(rc, true);
    if (auto ok = make(path_of(name), ZOO_CONTAINER); !ok) return std::move(ok.error());
  }
  return failure{errc::unavailable, "the node of the name was removed each time it was made"};
}

}  // namespace holdfast::store::zookeeper
