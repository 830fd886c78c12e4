#include "store/redis/sentinel.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>

#include "base/time_share.hpp"
#include "base/words.hpp"
#include "store/redis/errors.hpp"
#include "store/redis/handshake.hpp"

namespace holdfast::store::redis {

namespace {

failure no_sentinel(std::string_view error) {
  return {errc::unsupported,
          "the server answered '" + std::string(error.substr(0, 200)) +
              "': it is an ordinary Redis server and no sentinel (sentinels usually listen on port "
              "26379); for the server itself write redis://HOST:PORT"};
}

class sentinels {
 public:
  explicit sentinels(const redis_options& options) : asked_(options), seeds_(options.seeds) {
    asked_.topology = topology::single;
    asked_.user = options.sentinel_user;
    asked_.password = options.sentinel_password;
    asked_.database = 0;
  }

  // Asks the sentinel first that answered last. Sentinels that do not answer share the time.
  result<address> locate(boot_time until, int wake_fd) {
    std::unique_lock lock{mutex_};
    auto order = seeds_;
    lock.unlock();
    std::string said;
    errc code = errc::unavailable;
    std::size_t no_sentinels = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto now = boot_clock::now();
      auto found = ask(order[i], {base::share_until(until, order.size() - i, now), wake_fd});
      if (found) return prefer(order[i]), found;
      said += (i > 0 ? "; " : "") + to_string(order[i]) + ": " + found.error().what;
      if (found.error().code == errc::not_permitted) code = errc::not_permitted;
      if (found.error().code == errc::unsupported) ++no_sentinels;
    }
    if (no_sentinels == order.size()) code = errc::unsupported;  // waiting does not help
    if (code == errc::not_permitted)
      said += "; the sentinels' own login is sentinel_user and sentinel_password_env";
    return failure{code,
                   "no sentinel says where the primary '" + asked_.primary_name + "' is: " + said};
  }

  // The sentinel that has answered may be cut off from the others, and name a former primary.
  void doubt() {
    const std::lock_guard guard{mutex_};
    std::rotate(seeds_.begin(), seeds_.begin() + 1, seeds_.end());
  }

 private:
  void prefer(const address& a) {
    const std::lock_guard guard{mutex_};
    std::swap(seeds_.front(), *std::find(seeds_.begin(), seeds_.end(), a));
  }

  result<address> ask(const address& sentinel, const patience& p) const {
    redis_options o = asked_;
    o.host = sentinel.host;
    o.port = sentinel.port;
    o.connect_timeout = std::chrono::ceil<std::chrono::milliseconds>(p.until - boot_clock::now());
    auto c = greet(o, purpose::notifications, p.wake_fd);
    if (!c) return std::move(c.error());
    std::string bytes;
    const std::array<std::string_view, 3> words{"SENTINEL", "get-master-addr-by-name",
                                                o.primary_name};
    append_command(bytes, words);
    auto replies = exchange(**c, bytes, 1, p);
    if (!replies) return std::move(replies.error());
    return read(replies->front());
  }

  result<address> read(const resp_value& v) const {
    if (v.is_error() && v.text.find("unknown command") != v.text.npos) return no_sentinel(v.text);
    if (v.is_error()) return server_says(v.text);
    if (v.items.size() != 2) return failure{errc::unavailable, "it knows no primary of this name"};
    address a{v.items[0].text, base::number_at_start<std::uint16_t>(v.items[1].text, 0)};
    if (a.host.empty() || a.port == 0) return strange_answer("SENTINEL get-master-addr-by-name");
    return a;
  }

  redis_options asked_;
  std::mutex mutex_;
  std::vector<address> seeds_;
};

}  // namespace

redis_options found_by_sentinels(redis_options o) {
  const auto all = std::make_shared<sentinels>(o);
  o.locate = [all](boot_time until, int wake_fd) { return all->locate(until, wake_fd); };
  o.doubt = [all] { all->doubt(); };
  return o;
}

}  // namespace holdfast::store::redis
