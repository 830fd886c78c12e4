#include "store/redis/topologies.hpp"

#include <mutex>
#include <utility>

#include "store/redis/cluster.hpp"
#include "store/redis/sentinel.hpp"

namespace holdfast::store::redis {

namespace {

/// The server of the last connection for commands.
class last_seen {
 public:
  void put(const whereabouts& w) {
    const std::lock_guard guard{mutex_};
    server_ = w;
  }
  whereabouts get() {
    const std::lock_guard guard{mutex_};
    return server_;
  }

 private:
  std::mutex mutex_;
  whereabouts server_;
};

redis_options followed(redis_options o) {
  const auto last = std::make_shared<last_seen>();
  o.commands_go_to = [last](const whereabouts& w) { last->put(w); };
  o.commands_at = [last] { return last->get(); };
  return o;
}

/// All names are on one server, whose address may change.
class one_server final : public servers {
 public:
  explicit one_server(redis_options options) : node_(followed(std::move(options))) {}

  status open() override { return node_.open(); }
  node* only_one() noexcept override { return &node_; }
  // Behind sentinels: goes where the commands go, even if the sentinels are wrong about the
  // primary.
  redis_options for_notifications() override {
    redis_options o = node_.options();
    if (!o.locate) return o;
    o.locate = [at = o.commands_at, ask = o.locate](boot_time until, int fd) -> result<address> {
      auto there = at().at;
      if (there.host.empty()) return ask(until, fd);
      return there;
    };
    return o;
  }
  status for_each(const std::function<void()>& begin,
                  const std::function<status(node&)>& look) override {
    begin();
    return look(node_);
  }

  result<reply> ask(const request& r) override {
    const message one = r.as_message();
    auto got = node_.ask({&one, 1}, r.durable);
    if (!got) return std::move(got.error());
    return judged({std::move(got->replies.front()), got->repeated, got->replicas}, r);
  }

  void settle() override { node_.settle(); }

  std::vector<result<reply>> ask(std::span<const request> all) override {
    std::vector<message> messages;
    messages.reserve(all.size());
    bool durable = false;
    for (const auto& r : all) messages.push_back(r.as_message()), durable = durable || r.durable;
    auto got = node_.ask(messages, durable);
    std::vector<result<reply>> replies;
    replies.reserve(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (got)
        replies.push_back(
            judged({std::move(got->replies[i]), got->repeated, got->replicas}, all[i]));
      else
        replies.push_back(got.error());
    }
    return replies;
  }

 private:
  bool try_post(const request& r, link::listener& then) override {
    return node_.post(r.as_message(), then);
  }

  node node_;
};

}  // namespace

std::unique_ptr<servers> make_servers(const redis_options& options) {
  switch (options.topology) {
    case topology::cluster:
      return std::make_unique<cluster>(options);
    case topology::sentinel:
      return std::make_unique<one_server>(found_by_sentinels(options));
    default:
      return std::make_unique<one_server>(options);
  }
}

}  // namespace holdfast::store::redis
