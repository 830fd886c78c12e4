#include <functional>
#include <future>
#include <map>
#include <stop_token>

#include "fixture.hpp"
#include "store/redis/scripts.hpp"

// A user's rights, and the errors when they do not suffice. The conformance tests, too, log in with
// the rights that docs/stores/redis.md lists.
namespace {

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::lease;
using holdfast::session;
using redis_test::contains;
using redis_test::outcome_of;
using rights = std::vector<std::string>;
namespace redis = holdfast::store::redis;

/// A wait that does not end by itself has failed, too.
constexpr auto limit = 20s;

void give_back(lease& held) {
  if (const auto e = held.release())
    throw holdfast::error({static_cast<errc>(e.value()), "the release: " + e.message()});
}

/// An asynchronous call that waits for another one: it ends before the objects it uses.
template <class T>
class patient {
 public:
  template <class Begin>
  explicit patient(Begin begin) : answer_(begin(stop_.get_token()).future()) {}
  ~patient() {
    stop_.request_stop();
    if (answer_.valid()) answer_.wait();
  }
  patient(const patient&) = delete;

  T get() { return answer_.get().value(); }
  /// Waits until `so` is true; throws if the call has failed.
  void until(const std::function<bool()>& so) {
    const auto is_over = [&] { return answer_.wait_for(0s) == std::future_status::ready; };
    harness::eventually("it waits", [&] { return is_over() || so(); });
    if (is_over()) (void)get();
  }

 private:
  std::stop_source stop_;
  std::future<holdfast::result<T>> answer_;
};

/// A user who has some of the documented rights.
class redis_rights : public testing::Test {
 protected:
  session open(const std::string& options = {}) const {
    return holdfast::open(harness::as_documented_user(server_.url("?database=1" + options)));
  }
  bool waits(const std::string& name, std::size_t n) const {
    return whole_.show(name).waiters.size() == n;
  }

  // ---- calls that need the rights, in our own layout
  void four_contend() const {
    const auto a = open(), b = open(), c = open(), d = open();
    holdfast::mutex first{a, "m"}, second{b, "m"}, third{c, "m"}, fourth{d, "m"};
    lease held = first.acquire();
    patient<lease> one([&](auto stop) { return async_acquire(second, limit, stop); });
    one.until([&] { return waits("m", 1); });
    patient<lease> two([&](auto stop) { return async_acquire(third, limit, stop); });
    two.until([&] { return waits("m", 2); });
    patient<lease> three([&](auto stop) { return async_acquire(fourth, limit, stop); });
    three.until([&] { return waits("m", 3); });
    held.extend();
    give_back(held);
    for (auto* const p : {&one, &two, &three}) {
      lease next = p->get();
      give_back(next);
    }
  }
  void permits_are_shared() const {
    const auto a = open(), b = open();
    holdfast::semaphore mine{a, "s", 3}, theirs{b, "s", 3};
    lease held = mine.acquire(2);
    patient<lease> next([&](auto stop) { return async_acquire(theirs, 2, limit, stop); });
    next.until([&] { return waits("s", 1); });
    held.extend();
    give_back(held);
    lease other = next.get();
    give_back(other);
  }
  void all_arrive() const {
    const auto a = open(), b = open();
    holdfast::latch mine{a, "l", 2}, theirs{b, "l", 2};
    patient<holdfast::done> opened([&](auto stop) { return async_wait(theirs, limit, stop); });
    opened.until([&] { return waits("l", 1); });
    mine.count_down();
    mine.count_down();
    (void)opened.get();
    mine.remove();
    holdfast::barrier here{a, "b", 2}, there{b, "b", 2};
    patient<holdfast::done> first(
        [&](auto stop) { return async_arrive_and_wait(there, limit, stop); });
    first.until([&] { return waits("b", 1); });
    (void)async_arrive_and_wait(here, limit).future().get().value();
    (void)first.get();
  }
  void tokens_come_back() const {
    const auto a = open();
    holdfast::rate_limiter limiter{a, "r", {{.tokens = 5, .per = 1h}}};
    limiter.refund(limiter.try_take(2));
    (void)a.show("r");
  }
  void names_are_listed() const {
    const auto a = open();
    holdfast::mutex lock{a, "n"};
    lease held = lock.acquire();
    EXPECT_FALSE(a.names().empty());
    give_back(held);
  }

  // ---- and in the dialects
  void a_lock_is_taken(const std::string& dialect) const {
    const auto a = open(dialect), b = open(dialect);
    holdfast::mutex mine{a, "m"}, theirs{b, "m"};
    lease held = mine.acquire();
    EXPECT_FALSE(theirs.try_lock());
    held.extend();
    (void)b.show("m");
    give_back(held);
  }
  void java_s_other_locks_are_taken(const std::string& dialect) const {
    server_.ask({"EVAL", "redis.call('SELECT', '1') redis.call('RPUSH', KEYS[1], 'of:1')", "1",
                 "redisson_lock_queue:{shop-f}"});  // dead long ago
    const auto a = open(dialect), b = open(dialect);
    holdfast::fair_mutex mine{a, "f"}, theirs{b, "f"};
    lease held = mine.acquire();
    patient<lease> next([&](auto stop) { return async_acquire(theirs, limit, stop); });
    next.until([&] { return in_java_s_queue() == "1"; });
    give_back(held);
    lease other = next.get();
    give_back(other);
  }
  void java_s_readers_write(const std::string& dialect) const {
    const auto a = open(dialect), b = open(dialect);
    holdfast::shared_mutex mine{a, "rw"}, theirs{b, "rw"};
    lease one = mine.acquire_shared(), two = theirs.acquire_shared();
    give_back(one);
    EXPECT_TRUE(theirs.try_upgrade(two));
    theirs.downgrade(two);
    give_back(two);
  }
  void java_s_permits_are_shared(const std::string& dialect) const {
    const auto a = open(dialect);
    holdfast::semaphore some{a, "s", 2};
    lease held = some.acquire();
    give_back(held);
    holdfast::expiring_semaphore others{a, "e", 2};
    const auto permit = others.acquire(60s);
    EXPECT_TRUE(others.try_extend(permit.id, 60s));
    EXPECT_TRUE(others.release(permit.id));
    holdfast::latch l{a, "l", 2};
    l.count_down(2);
    l.remove();
    holdfast::rate_limiter limiter{a, "r", {{.tokens = 5, .per = 1h}}};
    limiter.refund(limiter.try_take(2));
  }
  std::string in_java_s_queue() const {
    return server_.ask({"EVAL", "redis.call('SELECT', '1') return redis.call('LLEN', KEYS[1])", "1",
                        "redisson_lock_queue:{shop-f}"});
  }

  using work = std::vector<std::function<void()>>;
  work ours() const {
    return {[this] { four_contend(); }, [this] { permits_are_shared(); }, [this] { all_arrive(); },
            [this] { tokens_come_back(); }, [this] { names_are_listed(); }};
  }
  work of_dialect(const std::string& name) const {
    const auto options = "&prefix=shop-&dialect=" + name;
    work all{[=, this] { a_lock_is_taken(options); }};
    if (name != "redisson") return all;
    all.push_back([=, this] { a_lock_is_taken(options + "&redisson_lock=fenced"); });
    all.push_back([=, this] { java_s_other_locks_are_taken(options); });
    all.push_back([=, this] { java_s_readers_write(options); });
    all.push_back([=, this] { java_s_permits_are_shared(options); });
    return all;
  }

  void expect_all_works(const rights& all, const work& what) const {
    harness::give_just(server_, all);
    for (const auto& one : what) {
      const auto o = outcome_of(one);
      EXPECT_FALSE(o.failed) << o.text;
    }
  }
  /// Without one right the calls that need it report that, and the others work.
  void expect_each_is_missed(const rights& all, const work& what,
                             const std::map<std::string, std::string>& but) const {
    for (const auto& right : all) {
      SCOPED_TRACE("without " + right);
      rights others = all;
      std::erase(others, right);
      harness::give_just(server_, others);
      int refused = 0;
      for (const auto& one : what) {
        server_.ask({"FLUSHALL"});  // the one before may have left a lock that nobody releases
        const auto o = outcome_of(one);
        if (!o.failed) continue;
        ++refused;
        EXPECT_EQ(o.reason, errc::not_permitted) << o.text;
        const bool of_release = contains(o.text, "the release");
        EXPECT_TRUE(of_release || contains(o.text, "docs/stores/redis.md")) << o.text;
      }
      EXPECT_TRUE(refused > 0 || but.contains(right)) << "nothing needs it";
    }
    server_.ask({"FLUSHALL"});  // half a script leaves data that nobody ends
  }

  const harness::redis_server server_;
  /// A session whose rights never change.
  const session whole_ = holdfast::open(server_.url("?database=1"));
};

const std::map<std::string, std::string> missed_by_nobody_in_a_test{
    {"+hello", "since 6.2 the servers let everybody say it"},
    {"+auth", "since 6.0 the servers let everybody say it"},
    {"+info", "open() does not check a server that does not say what it is"},
    {"+ping", "only after a silence of ten seconds"},
    {"+pttl",
     "of our layout: only a release that says what is late, where another kind has the "
     "name; its script is checked below"},
    {"+subscribe", "of dialects: waiters poll"},
    {"+unsubscribe", "what is heard then is for nobody"},
};
TEST_F(redis_rights, that_are_documented_are_enough) {
  expect_all_works(harness::documented_redis_rights("everywhere"), ours());
}

TEST_F(redis_rights, that_are_documented_are_all_needed_and_named_in_the_error) {
  auto but = missed_by_nobody_in_a_test;
  but.erase("+subscribe");
  expect_each_is_missed(harness::documented_redis_rights("everywhere"), ours(), but);
}

class redis_dialect_rights : public redis_rights, public testing::WithParamInterface<const char*> {
 protected:
  redis_dialect_rights() {
    const std::string dialect = GetParam();
    if (dialect == "redlock") return;
    server_.may_stay("*shop-*", "times of setnx, Redisson's semaphores, limiters and tokens");
  }
  rights all() const { return harness::documented_redis_rights(GetParam(), "dialects"); }
};

INSTANTIATE_TEST_SUITE_P(dialects, redis_dialect_rights,
                         testing::Values("redlock", "redisson", "setnx"),
                         [](const auto& p) { return std::string(p.param); });

TEST_P(redis_dialect_rights, that_are_documented_are_enough) {
  expect_all_works(all(), of_dialect(GetParam()));
}

TEST_P(redis_dialect_rights, that_are_documented_are_all_needed_and_named_in_the_error) {
  auto but = missed_by_nobody_in_a_test;
  but.erase("+pttl");
  expect_each_is_missed(all(), of_dialect(GetParam()), but);
}

/// Finds commands as the "zadd" of "call('ZADD', …", on every path through a script.
void expect_documented(std::string_view script, const rights& documented) {
  constexpr std::string_view begins = "call('";
  for (auto at = script.find(begins); at != script.npos; at = script.find(begins, at)) {
    at += begins.size();
    std::string right = "+";
    for (; script.at(at) != '\''; ++at)
      right += static_cast<char>(std::tolower(static_cast<unsigned char>(script[at])));
    EXPECT_NE(std::find(documented.begin(), documented.end(), right), documented.end()) << right;
  }
}

TEST(redis_rights_of_scripts, each_command_of_each_script_is_documented) {
  using redis::dialect;
  using redis::publication;
  const auto everywhere = harness::documented_redis_rights("everywhere");
  for (const auto& s : redis::scripts_of(dialect::none)) expect_documented(s.text, everywhere);
  rights in_a_cluster = harness::documented_redis_rights("in a cluster");
  in_a_cluster.insert(in_a_cluster.end(), everywhere.begin(), everywhere.end());
  for (const auto& s : redis::scripts_of(dialect::none, publication::to_the_slot))
    expect_documented(s.text, in_a_cluster);
  for (const auto& [name, d] :
       {std::pair("redlock", dialect::redlock), std::pair("redisson", dialect::redisson),
        std::pair("setnx", dialect::setnx)}) {
    for (const auto& s : redis::scripts_of(d))
      expect_documented(s.text, harness::documented_redis_rights(name, "dialects"));
  }
}

}  // namespace
