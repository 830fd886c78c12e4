#include "store/redis/servers.hpp"

#include <algorithm>
#include <cstdlib>

#include "store/redis/cluster.hpp"
#include "store/redis/errors.hpp"
#include "store/redis/sentinel.hpp"

namespace holdfast::store::redis {

namespace {

std::string line_of(const std::string& info, std::string_view begins) {
  const auto at = info.find(begins);
  if (at == info.npos) return {};
  const auto from = at + begins.size();
  return info.substr(from, info.find_first_of("\r\n", from) - from);
}

/// All names are on one server, wherever it may be.
class one_server final : public servers {
 public:
  explicit one_server(const redis_options& options) : node_(options) {}

  status open() override { return node_.open(); }
  node* only_one() noexcept override { return &node_; }
  redis_options for_notices() override { return node_.options(); }
  status for_each(const std::function<status(node&)>& look) override { return look(node_); }

  result<reply> ask(const request& r) override {
    auto got = node_.ask(r.commands, 1, r.durable);
    if (!got) return std::move(got.error());
    return reply{std::move(got->replies.front()), got->repeated, got->replicas};
  }

  void settle() override { node_.settle(); }

  std::vector<result<reply>> ask(std::span<const request> all) override {
    std::string bytes;
    bool durable = false;
    for (const auto& r : all) bytes += r.commands, durable = durable || r.durable;
    auto got = node_.ask(bytes, all.size(), durable);
    std::vector<result<reply>> replies;
    replies.reserve(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (got)
        replies.push_back(reply{std::move(got->replies[i]), got->repeated, got->replicas});
      else
        replies.push_back(got.error());
    }
    return replies;
  }

 private:
  bool try_post(const request& r, link::listener& then) override {
    return node_.post(r.commands, then);
  }

  node node_;
};

}  // namespace

// That a server was started anew, and has forgotten what it did not save, shows here only.
result<store::identity> servers::identify() {
  store::identity found;
  const auto ok = for_each([&](node& n) -> status {
    std::string bytes;
    append_command(bytes, {"INFO", "server"});
    const auto answer = n.ask(bytes, 1, false);
    if (!answer) return answer.error();
    const auto& info = answer->replies.front();
    if (info.is_error()) return server_says(info.text);
    found.run_id += line_of(info.text, "run_id:");
    // The difference of two whole seconds: up to one more than it was.
    const auto up = std::strtoll(line_of(info.text, "uptime_in_seconds:").c_str(), nullptr, 10) - 1;
    found.up_for = std::min(found.up_for.value_or(std::chrono::microseconds::max()),
                            std::chrono::microseconds(std::chrono::seconds(up)));
    return done{};
  });
  if (!ok) return ok.error();
  return found;
}

bool servers::post(const request& r, link::listener then) {
  if (try_post(r, then)) return true;
  auto got = ask(r);
  if (!got) return then(std::move(got.error())), false;
  link::answer one{{}, got->repeated};
  one.replies.push_back(std::move(got->value));
  return then(std::move(one)), false;
}

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
