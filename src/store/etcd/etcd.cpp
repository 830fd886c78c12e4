#include "store/etcd/etcd.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <map>

#include "store/contender_text/renewed.hpp"
#include "store/contender_text/text.hpp"
#include "store/etcd/names.hpp"
#include "store/etcd/requests.hpp"
#include "store/etcd/session_lease.hpp"
#include "store/etcd/watches.hpp"

namespace holdfast::store::etcd {

namespace {

using link = std::shared_ptr<session_lease>;

/// An etcd with default settings accepts no more steps in one transaction.
constexpr std::size_t max_steps = 100;

/// A record as it was written: in that revision, with that lease.
struct held_record {
  std::int64_t version = 0;
  std::int64_t lease = 0;
};

std::int64_t seconds_for(std::int64_t keep_us) {
  return std::max<std::int64_t>((keep_us + 999'999) / 1'000'000, 1);
}

std::int64_t lease_in(const wire::ResponseOp& r) {
  const auto& found = r.response_range();
  return found.kvs().empty() ? 0 : found.kvs(0).lease();
}

std::string_view text_in(const wire::ResponseOp& r) {
  const auto& found = r.response_range();
  return found.kvs().empty() ? std::string_view() : std::string_view(found.kvs(0).value());
}

/// Other threads of the session may settle a queue between any two requests.
constexpr int max_attempts = 100;

std::uint64_t number_of(std::int64_t lease) { return static_cast<std::uint64_t>(lease); }

contender_data contender_data_at(const wire::KeyValue& kv) {
  contender_data p = contender_data_of(kv.value(), kv.create_revision());
  p.session = number_of(kv.lease());
  return p;
}

// 0 if the key does not exist.
std::int64_t version_in(const wire::ResponseOp& r) {
  const auto& found = r.response_range();
  return found.kvs().empty() ? 0 : found.kvs(0).mod_revision();
}

/// Reads the entry `key` from the answer to a transaction that ends with the queue. Without the
/// key, the fence is 0.
contender_store::entered entered_at(const std::string& key, const std::string& prefix,
                                    const wire::TxnResponse& done) {
  const auto& all = done.responses().rbegin()->response_range();
  contender_store::entered in;
  in.node = key.substr(prefix.size());
  in.line = line_of(all, prefix);
  for (const auto& kv : all.kvs()) {
    if (kv.key() == key) in.fence = static_cast<std::uint64_t>(kv.create_revision());
  }
  return in;
}

class etcd_store final : public contender_store {
 public:
  explicit etcd_store(etcd_options o)
      : options_(std::move(o)),
        can_(contender_text::promises(options_.command_timeout)),
        to_(options_),
        watches_(to_) {}

  status open();

  const capabilities& can() const noexcept override { return can_; }
  const std::string& url() const noexcept override { return options_.url; }
  const std::string& peer() const noexcept override { return peer_; }
  boot_time safe_until(std::uint64_t session) const noexcept override {
    const auto now = present();
    const bool lives = number_of(now->id()) == session && !now->over();
    return lives ? now->safe_until() : boot_time{};
  }
  std::chrono::nanoseconds safe_span() const noexcept override { return present()->safe_span(); }

  result<entered> enter(std::string_view name, const contender& who, const contender_data& says,
                        std::span<const std::string> leaving) override;
  result<std::vector<contender>> contenders(std::string_view name, as_of when,
                                            alarm on_arrival) override;
  result<bool> leave(std::string_view name, std::span<const std::string> nodes) override;
  result<std::optional<contender_data>> read(std::string_view name, const std::string& node,
                                             alarm on_change) override;
  result<std::vector<std::optional<contender_data>>> read(std::string_view name,
                                                          std::span<const contender> line) override;
  result<bool> write(std::string_view name, const std::string& node,
                     const contender_data& says) override;
  std::string address(std::string_view name, const std::string& node) const override {
    return prefix_of(name) + node;
  }
  std::vector<result<bool>> confirm(std::span<const node_of> nodes) override;
  result<versioned> record(std::string_view name, bool waits, alarm on_change) override;
  result<std::optional<revision>> replace(std::string_view name, std::string_view text,
                                          revision version, std::int64_t keep_us) override;
  /// etcd has no clock that can be queried: a record ends with a lease of its own.
  result<moment> time() override { return moment{1, 1, false}; }
  result<store::facts> facts() override;
  result<std::vector<used_name>> names() override;

 private:
  link present() const { return session_.present(); }
  result<link> current() {
    return session_.current([this](const session_lease*) {
      return session_lease::grant(to_, [this] { watches_.call_all(); });
    });
  }
  std::string prefix_of(std::string_view name) const {
    return options_.base + "/" + escape(name) + "/";
  }
  result<wire::TxnResponse> transact(const wire::TxnRequest& t, bool* repeated = nullptr);
  result<wire::RangeResponse> ask(const wire::RangeRequest& r);
  /// A key of that session, outside all names.
  std::string mark_of(const session_lease& mine) const;
  wire::Compare nothing_settled_since(const session_lease& mine) const {
    return as_of_version(mark_of(mine), mine.settled_at());
  }
  result<std::vector<contender>> settle(session_lease& mine, const std::string& prefix);
  void exclude_the_earlier(session_lease& mine, const std::string& prefix, entered& in);
  static session_lease::history seen_by(const link& session) noexcept {
    return session ? session->seen() : session_lease::history{};
  }
  static void went(const link& session, const wire::ResponseHeader& h,
                   const session_lease::history& before) {
    if (session) session->goes({h.raft_term(), h.revision()}, before);
  }
  result<entered> enter_with(session_lease& mine, std::string_view name, const contender& who,
                             const contender_data& says, std::span<const std::string> leaving);
  status confirm_some(std::span<const node_of> nodes, std::vector<result<bool>>& there);
  using version_now = std::optional<revision>;
  result<version_now> make_record(const std::string& key, std::string_view text,
                                  std::int64_t keep_us);
  result<version_now> change_record(const std::string& key, std::string_view text,
                                    std::int64_t version, std::int64_t keep_us);
  result<version_now> remove_record(const std::string& key, std::int64_t version);
  std::int64_t keep_longer(const std::string& key, std::string_view text, const held_record& now,
                           std::int64_t keep_us);
  result<std::int64_t> lease_for(std::int64_t keep_us);
  void revoke(std::int64_t lease);
  std::int64_t keep(std::int64_t lease);
  using leases = std::multimap<std::string, std::int64_t>;
  void doubt(leases& those, const std::string& key, std::int64_t lease);
  void revoke_all(leases& those, const std::string& key, std::int64_t has);

  const etcd_options options_;
  const capabilities can_;
  std::string peer_;
  channel to_;
  watches watches_;
  contender_text::renewed<session_lease> session_;
  std::mutex mutex_;
  /// Leases that a record may have got, or may still get. They are revoked after the next write to
  /// the record, so that a request that is still on its way fails.
  leases doubtful_;
  /// Leases of records that may have been removed. No request attaches them to a record.
  leases removed_;
};

// ---- the session

status etcd_store::open() {
  wire::StatusResponse server;
  const auto up = to_.call(method::status, wire::StatusRequest(), server, options_.connect_timeout);
  if (!up) return failure{up.error().code, up.error().what};
  int major = 0;
  int minor = 0;
  (void)std::sscanf(server.version().c_str(), "%d.%d", &major, &minor);
  if (major < 3 || (major == 3 && minor < 4)) {
    return failure{errc::unsupported, "the server is etcd " + server.version() +
                                          "; 3.4 is the first that this store can use"};
  }
  // Checks the user's rights: the server grants leases to every user.
  auto look = all_below(options_.base + "/");
  look.set_limit(1);
  if (const auto may = ask(look); !may) return may.error();
  const auto mine = current();
  if (!mine) return mine.error();
  char id[24];
  std::snprintf(id, sizeof id, "e%llx", static_cast<unsigned long long>((*mine)->id()));
  peer_ = id;
  return done{};
}

// The facts of the member that answers.
result<store::facts> etcd_store::facts() {
  wire::StatusResponse said;
  if (auto up = to_.call(method::status, wire::StatusRequest(), said); !up) {
    return std::move(up.error());
  }
  store::facts found{{{}, "version", said.version()},
                     {{}, "db_size", std::to_string(said.db_size())},
                     {{}, "leader", said.leader() == 0 ? "none" : "known"},
                     {{}, "members_named", std::to_string(options_.hosts.size())}};
  for (const auto& error : said.errors()) found.push_back({{}, "alarm", error});
  return found;
}

result<wire::TxnResponse> etcd_store::transact(const wire::TxnRequest& t, bool* repeated) {
  wire::TxnResponse answer;
  const auto session = present();
  const auto before = seen_by(session);
  const boot_time asked = options_.clock->now();
  const auto again = to_.call(method::txn, t, answer);
  if (!again) return again.error();
  if (repeated != nullptr) *repeated = *again;
  went(session, answer.header(), before);
  present()->agreed(answer.header().raft_term(), asked);
  return answer;
}

// The read also asks a majority, so the data is never older than the request.
result<wire::RangeResponse> etcd_store::ask(const wire::RangeRequest& r) {
  wire::RangeResponse answer;
  const auto session = present();
  const auto before = seen_by(session);
  if (auto ok = to_.call(method::range, r, answer); !ok) return std::move(ok.error());
  went(session, answer.header(), before);
  return answer;
}

// ---- entries

// escape() never returns a part like that.
std::string etcd_store::mark_of(const session_lease& mine) const {
  char id[24];
  std::snprintf(id, sizeof id, "%llx", static_cast<unsigned long long>(mine.id()));
  return options_.base + "/%settled/" + id;
}

result<contender_store::entered> etcd_store::enter(std::string_view name, const contender& who,
                                                   const contender_data& says,
                                                   std::span<const std::string> leaving) {
  for (bool again = false;; again = true) {
    const auto mine = current();
    if (!mine) return failure{mine.error().code, mine.error().what};
    auto in = enter_with(**mine, name, who, says, leaving);
    if (in || in.error().code != errc::lost) return in;
    (*mine)->end();  // the servers have ended it, and nothing was done
    if (again) return failure{errc::unavailable, std::move(in.error().what)};
  }
}

// The owner is in the key, so a repeated request finds the entry that the first one made.
result<contender_store::entered> etcd_store::enter_with(session_lease& mine, std::string_view name,
                                                        const contender& who,
                                                        const contender_data& says,
                                                        std::span<const std::string> leaving) {
  const std::string prefix = prefix_of(name);
  const std::string key = prefix + place_for(mine.id(), who);
  auto stamped = says;
  stamped.since_wall_at = std::chrono::duration_cast<std::chrono::microseconds>(
                              std::chrono::system_clock::now().time_since_epoch())
                              .count();
  for (int i = 0; i < max_attempts; ++i) {
    wire::TxnRequest t;
    *t.add_compare() = not_there(key);
    *t.add_compare() = nothing_settled_since(mine);
    *t.add_success() = put(key, value_of(stamped), mine.id());
    for (const auto& node : leaving) *t.add_success() = remove(prefix + node);
    *t.add_success()->mutable_request_range() = keys_below(prefix);
    *t.add_failure()->mutable_request_range() = one(mark_of(mine));
    *t.add_failure()->mutable_request_range() = keys_below(prefix);
    bool repeated = false;
    const auto done = transact(t, &repeated);
    if (!done) return done.error();
    auto in = entered_at(key, prefix, *done);
    in.session = number_of(mine.id());
    in.repeated = repeated;
    if (in.fence != 0) {
      in.replaced = !done->succeeded() && !leaving.empty();
      for (const auto& r : done->responses())
        in.replaced |= r.response_delete_range().deleted() > 0;
      if (repeated) exclude_the_earlier(mine, prefix, in);
      return in;
    }
    mine.settled_at(version_in(done->responses(0)));
  }
  return failure{errc::unavailable, "another request of this session overtook each attempt"};
}

result<std::vector<contender>> etcd_store::contenders(std::string_view name, as_of when,
                                                      alarm on_arrival) {
  const std::string prefix = prefix_of(name);
  const auto watch =
      on_arrival ? watches_.add(prefix, end_of(prefix), std::move(on_arrival)) : std::int64_t{0};
  if (when == as_of::settled) {
    auto sure = settle(*present(), prefix);
    if (!sure && sure.error().code != errc::lost) watches_.forget(watch);
    if (sure || sure.error().code != errc::lost) return sure;
    // The session's lease has ended: no request can create an entry with it any more.
  }
  const auto all = ask(keys_below(prefix));
  if (!all) return watches_.forget(watch), all.error();
  return line_of(*all, prefix);
}

// Entering and leaving compare the revision of this key. So a request that is still on its way,
// because it was sent again over another member, fails from now on.
result<std::vector<contender>> etcd_store::settle(session_lease& mine, const std::string& prefix) {
  wire::TxnRequest t;
  *t.add_success() = put(mark_of(mine), {}, mine.id());
  *t.add_success()->mutable_request_range() = keys_below(prefix);
  const auto done = transact(t);
  if (!done) return done.error();
  mine.settled_at(done->header().revision());
  return line_of(done->responses().rbegin()->response_range(), prefix);
}

// An earlier request that is still on its way would make the key anew, under the same name, after
// somebody has taken the lock away: its former holder would then go on as if it held the lock.
void etcd_store::exclude_the_earlier(session_lease& mine, const std::string& prefix, entered& in) {
  auto line = settle(mine, prefix);
  if (!line) return;  // it stays `repeated`
  in.line = std::move(*line);
  in.repeated = false;
}

result<bool> etcd_store::leave(std::string_view name, std::span<const std::string> nodes) {
  const std::string prefix = prefix_of(name);
  const auto mine = present();
  bool any = false;
  for (int i = 0; i < max_attempts; ++i) {
    wire::TxnRequest t;
    *t.add_compare() = nothing_settled_since(*mine);
    for (const auto& node : nodes) *t.add_success() = remove(prefix + node);
    *t.add_failure()->mutable_request_range() = one(mark_of(*mine));
    bool repeated = false;
    const auto gone = transact(t, &repeated);
    if (!gone) return gone.error();
    any |= repeated;
    for (const auto& r : gone->responses()) any |= r.response_delete_range().deleted() > 0;
    if (!gone->succeeded()) {
      mine->settled_at(version_in(gone->responses(0)));
      continue;
    }
    if (!repeated) return any;
    // A request that is still on its way must not remove a contender that enters under the same
    // key.
    const auto sure = settle(*mine, prefix);
    if (sure || sure.error().code == errc::lost) return any;
    return failure{sure.error().code, sure.error().what, true};
  }
  return failure{errc::unavailable, "another request of this session overtook each attempt", any};
}

result<std::optional<contender_data>> etcd_store::read(std::string_view name,
                                                       const std::string& node, alarm on_change) {
  const std::string key = prefix_of(name) + node;
  const auto watch = on_change ? watches_.add(key, {}, std::move(on_change)) : 0;
  const auto found = ask(one(key));
  if (!found || found->kvs().empty()) watches_.forget(watch);
  if (!found) return found.error();
  if (found->kvs().empty()) return std::optional<contender_data>{};
  return std::optional(contender_data_at(found->kvs(0)));
}

result<std::vector<std::optional<contender_data>>> etcd_store::read(
    std::string_view name, std::span<const contender> line) {
  std::vector<std::optional<contender_data>> said(line.size());
  if (line.empty()) return said;
  const std::string prefix = prefix_of(name);
  const auto all = ask(all_below(prefix));
  if (!all) return all.error();
  for (const auto& kv : all->kvs()) {
    const auto at = std::find_if(line.begin(), line.end(),
                                 [&](const auto& c) { return prefix + c.node == kv.key(); });
    if (at == line.end()) continue;
    said[static_cast<std::size_t>(at - line.begin())] = contender_data_at(kv);
  }
  return said;
}

result<bool> etcd_store::write(std::string_view name, const std::string& node,
                               const contender_data& says) {
  const std::string key = prefix_of(name) + node;
  wire::TxnRequest t;
  *t.add_compare() = there(key);
  *t.add_success() = put_again(key, value_of(says));
  const auto done = transact(t);
  if (!done) return done.error();
  return done->succeeded();
}

status etcd_store::confirm_some(std::span<const node_of> nodes, std::vector<result<bool>>& there) {
  wire::TxnRequest t;
  for (const auto& p : nodes) {
    auto& look = *t.add_success()->mutable_request_range();
    look = one(prefix_of(p.name) + p.node);
    look.set_keys_only(true);
  }
  const auto found = transact(t);
  if (!found) return failure{found.error().code, found.error().what};
  for (const auto& r : found->responses()) there.emplace_back(!r.response_range().kvs().empty());
  return done{};
}

std::vector<result<bool>> etcd_store::confirm(std::span<const node_of> nodes) {
  std::vector<result<bool>> there;
  while (there.size() < nodes.size()) {
    const auto rest = nodes.subspan(there.size());
    const auto some = confirm_some(rest.first(std::min(rest.size(), max_steps)), there);
    while (!some && there.size() < nodes.size()) there.emplace_back(some.error());
  }
  return there;
}

// ---- records

result<contender_store::versioned> etcd_store::record(std::string_view name, bool waits,
                                                      alarm on_change) {
  const std::string key = prefix_of(name) + std::string(record_key);
  const auto watch = on_change ? watches_.add(key, {}, std::move(on_change)) : 0;
  const auto found = ask(one(key));
  if (!found) return watches_.forget(watch), found.error();
  const auto lease = found->kvs().empty() ? 0 : found->kvs(0).lease();
  revoke_all(removed_, key, lease);
  if (found->kvs().empty()) return versioned{};
  if (waits) keep(lease);
  return versioned{found->kvs(0).value(), found->kvs(0).mod_revision()};
}

result<std::int64_t> etcd_store::lease_for(std::int64_t keep_us) {
  wire::LeaseGrantRequest request;
  request.set_ttl(seconds_for(keep_us));
  wire::LeaseGrantResponse answer;
  if (auto ok = to_.call(method::grant, request, answer); !ok) return std::move(ok.error());
  return answer.id();
}

void etcd_store::revoke(std::int64_t lease) {
  if (lease == 0) return;
  wire::LeaseRevokeRequest request;
  request.set_id(lease);
  wire::LeaseRevokeResponse answer;
  (void)to_.call(method::revoke, request, answer);
}

// Returns how many seconds the lease lives from now on: for ever without a lease, or without an
// answer.
std::int64_t etcd_store::keep(std::int64_t lease) {
  constexpr auto for_ever = std::numeric_limits<std::int64_t>::max();
  if (lease == 0) return for_ever;
  wire::LeaseKeepAliveRequest request;
  request.set_id(lease);
  wire::LeaseKeepAliveResponse answer;
  return to_.call(method::keep_alive, request, answer) ? answer.ttl() : for_ever;
}

void etcd_store::doubt(leases& those, const std::string& key, std::int64_t lease) {
  const std::lock_guard guard{mutex_};
  those.emplace(key, lease);
}

// Revokes the leases of that key, except the one that its record has.
void etcd_store::revoke_all(leases& those, const std::string& key, std::int64_t has) {
  std::vector<std::int64_t> over;
  {
    const std::lock_guard guard{mutex_};
    const auto [from, to] = those.equal_range(key);
    for (auto at = from; at != to; ++at) over.push_back(at->second);
    those.erase(from, to);
  }
  for (const auto one : over) {
    if (one != has) revoke(one);
  }
}

// A revision of etcd is never used twice, so it identifies the record.
result<std::optional<contender_store::revision>> etcd_store::replace(std::string_view name,
                                                                     std::string_view text,
                                                                     revision was,
                                                                     std::int64_t keep_us) {
  const auto version = was.number;
  const std::string key = prefix_of(name) + std::string(record_key);
  if (text.empty()) return remove_record(key, version);
  return version < 0 ? make_record(key, text, keep_us) : change_record(key, text, version, keep_us);
}

// A lease that the record does not have is revoked: then a repeated request fails.
result<etcd_store::version_now> etcd_store::make_record(const std::string& key,
                                                        std::string_view text,
                                                        std::int64_t keep_us) {
  const auto lease = lease_for(keep_us);
  if (!lease) return lease.error();
  wire::TxnRequest t;
  *t.add_compare() = not_there(key);
  *t.add_success() = put(key, text, *lease);
  *t.add_failure()->mutable_request_range() = one(key);
  auto done = transact(t);
  if (!done) {
    failure& why = done.error();
    const bool over = why.code == errc::lost;  // the record's lease, not that of the session
    if (why.outcome_unknown) {
      doubt(doubtful_, key, *lease);
    } else if (!over) {
      revoke(*lease);
    }
    if (over) {
      why.code = errc::unavailable;
      why.what =
          "the record's lease was over before the record was written; do the servers take longer "
          "to answer than the record is kept?";
    }
    return std::move(why);
  }
  const auto has = done->succeeded() ? *lease : lease_in(done->responses(0));
  if (has != *lease) revoke(*lease);
  revoke_all(doubtful_, key, has);
  return done->succeeded() ? version_now(done->header().revision()) : version_now();
}

result<etcd_store::version_now> etcd_store::change_record(const std::string& key,
                                                          std::string_view text,
                                                          std::int64_t version,
                                                          std::int64_t keep_us) {
  wire::TxnRequest t;
  *t.add_compare() = as_of_version(key, version);
  *t.add_success() = put_again(key, text);
  *t.add_success()->mutable_request_range() = one(key);
  const auto done = transact(t);
  if (!done) return done.error();
  if (!done->succeeded()) return version_now();
  const held_record now{done->header().revision(), lease_in(done->responses(1))};
  revoke_all(doubtful_, key, now.lease);
  if (keep(now.lease) >= seconds_for(keep_us)) return version_now(now.version);
  return version_now(keep_longer(key, text, now, keep_us));
}

// Moves the record to a longer lease, unless another session has changed the record meanwhile.
// Returns its new version.
std::int64_t etcd_store::keep_longer(const std::string& key, std::string_view text,
                                     const held_record& now, std::int64_t keep_us) {
  const auto longer = lease_for(keep_us);
  if (!longer) return now.version;
  wire::TxnRequest t;
  *t.add_compare() = as_of_version(key, now.version);
  *t.add_success() = put(key, text, *longer);
  *t.add_failure()->mutable_request_range() = one(key);
  const auto done = transact(t);
  if (!done) {
    if (!done.error().outcome_unknown) return revoke(*longer), now.version;
    for (const auto one : {now.lease, *longer}) doubt(doubtful_, key, one);
    return now.version;
  }
  if (done->succeeded()) return revoke(now.lease), done->header().revision();
  const bool changed_before = lease_in(done->responses(0)) == *longer;
  revoke(changed_before ? now.lease : *longer);
  // A later write by another session is not this session's version.
  return changed_before && text_in(done->responses(0)) == text ? version_in(done->responses(0))
                                                               : now.version;
}

// Also revokes the record's lease, which would live on for as long as the record was to be kept.
// Reads the lease before: if the request is sent again, the first one may have removed the record
// without an answer.
result<etcd_store::version_now> etcd_store::remove_record(const std::string& key,
                                                          std::int64_t version) {
  const auto before = ask(one(key));
  if (!before) return before.error();
  const auto lease = before->kvs().empty() ? 0 : before->kvs(0).lease();
  wire::TxnRequest t;
  *t.add_compare() = as_of_version(key, std::max<std::int64_t>(version, 0));
  *t.add_success() = remove(key);
  *t.add_failure()->mutable_request_range() = one(key);
  const auto done = transact(t);
  if (!done) {
    if (done.error().outcome_unknown) doubt(removed_, key, lease);
    return done.error();
  }
  const auto has = done->succeeded() ? 0 : lease_in(done->responses(0));
  if (has != lease) revoke(lease);
  return done->succeeded() ? version_now(done->header().revision()) : version_now();
}

result<std::vector<contender_store::used_name>> etcd_store::names() {
  const std::string prefix = options_.base + "/";
  auto look = all_below(prefix);
  look.set_keys_only(true);
  const auto all = ask(look);
  if (!all) return all.error();
  std::vector<used_name> used;
  for (const auto& kv : all->kvs()) {
    auto name = name_in_use(kv, prefix);
    const bool seen = !used.empty() && used.back().name == name;
    if (!name.empty() && !seen) used.push_back({std::move(name)});
  }
  return used;
}

}  // namespace

result<std::unique_ptr<contender_store>> open_etcd(etcd_options options) {
  if (auto ok = channel::usable_here(); !ok) return std::move(ok.error());
  auto opened = std::make_unique<etcd_store>(std::move(options));
  if (auto ok = opened->open(); !ok) return std::move(ok.error());
  return std::unique_ptr<contender_store>(std::move(opened));
}

}  // namespace holdfast::store::etcd
