#include "store/redis/redis.hpp"

#include <algorithm>

#include "store/redis/commands.hpp"
#include "store/redis/errors.hpp"
#include "store/redis/keys.hpp"
#include "store/redis/link.hpp"
#include "store/redis/scripts.hpp"
#include "store/redis/subscription.hpp"

namespace holdfast::store::redis {

namespace {

capabilities promises() {
  capabilities c;
  c.sees_death = false;
  // Replication is asynchronous: a replica that takes over may not know of the last grants.
  c.survives_failover = false;
  return c;
}

void append(std::string& to, std::initializer_list<std::string_view> words) {
  append_command(to, std::span(words.begin(), words.size()));
}

bool has_no_script(const std::vector<resp_value>& replies) {
  for (const auto& r : replies) {
    if (r.is_error() && r.text.starts_with("NOSCRIPT")) return true;
  }
  return false;
}

class redis_store final : public session_store {
 public:
  explicit redis_store(redis_options options)
      : options_(std::move(options)),
        channels_(channel_prefix(options_)),
        capabilities_(promises()),
        link_(options_),
        inbox_(options_) {}

  status open() {
    if (auto ok = link_.open(); !ok) return ok;
    return inbox_.open();
  }

  const capabilities& can() const noexcept override { return capabilities_; }
  const std::string& url() const noexcept override { return options_.url; }
  store::inbox& inbox() noexcept override { return inbox_; }

  result<permits_reply> permits(std::string_view name, const permits_command& c) override {
    std::string bytes;
    append_permits(bytes, frame(), name, c);
    auto answer = run(bytes, 1);
    if (!answer) return std::move(answer.error());
    return settle(answer->replies.front(), c.verb, answer->repeated);
  }

  result<countdown_reply> countdown(std::string_view name, const countdown_command& c) override {
    std::string bytes;
    append_countdown(bytes, frame(), name, c);
    auto answer = run(bytes, 1);
    if (!answer) return std::move(answer.error());
    return read_countdown(answer->replies.front(), c.verb);
  }

  std::vector<result<permits_reply>> renew(std::span<const renewal> batch) override {
    std::string bytes;
    for (const auto& r : batch) append_permits(bytes, frame(), r.name, r.command);
    const auto answer = run(bytes, batch.size());
    std::vector<result<permits_reply>> replies;
    replies.reserve(batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (answer) replies.push_back(settle(answer->replies[i], batch[i].command.verb, answer->repeated));
      else replies.push_back(answer.error());
    }
    return replies;
  }

  // Keys with a suffix do not end with the brace.
  result<std::vector<std::string>> names() override {
    std::vector<std::string> found;
    std::string cursor = "0";
    const std::string pattern = options_.prefix + ":{*}";
    do {
      std::string bytes;
      append(bytes, {"SCAN", cursor, "MATCH", pattern, "COUNT", "1000"});
      auto answer = run(bytes, 1);
      if (!answer) return std::move(answer.error());
      const resp_value& page = answer->replies.front();
      if (page.is_error()) return server_says(page.text);
      if (page.items.size() != 2) return strange_answer("SCAN");
      cursor = page.items[0].text;
      if (auto ok = add_used(page.items[1].items, found); !ok) return std::move(ok.error());
    } while (cursor != "0");
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

 private:
  script_frame frame() const noexcept { return {options_.prefix, channels_, {}}; }

  // A server that was restarted, or whose scripts were flushed, is told them again.
  result<link::answer> run(std::string_view bytes, std::size_t count) {
    auto answer = link_.ask(bytes, count);
    if (answer && has_no_script(answer->replies)) {
      std::string again;
      append(again, {"SCRIPT", "LOAD", permits_script().text});
      append(again, {"SCRIPT", "LOAD", countdown_script().text});
      again += bytes;
      answer = link_.ask(again, count + 2);
      if (answer) answer->replies.erase(answer->replies.begin(), answer->replies.begin() + 2);
    }
    if (answer && answer->replies.front().is_error() && ends_connection(answer->replies.front().text)) {
      link_.renew_connection();
    }
    return answer;
  }

  // Whoever lets go for the second time, because the first answer was lost, has let go.
  static result<permits_reply> settle(const resp_value& answer, permits_verb verb, bool repeated) {
    auto reply = read_permits(answer, verb);
    if (reply && repeated && verb == permits_verb::release && reply->outcome == permits_outcome::absent) {
      reply->outcome = permits_outcome::done;
    }
    return reply;
  }

  // A record with capacity 0 is only the last fence of a name that is free.
  status add_used(const std::vector<resp_value>& keys, std::vector<std::string>& found) {
    if (keys.empty()) return done{};
    std::string bytes;
    for (const auto& key : keys) append(bytes, {"GETRANGE", key.text, "0", "40"});
    const auto answer = run(bytes, keys.size());
    if (!answer) return answer.error();
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const std::string& record = answer->replies[i].text;
      const auto after_kind = record.find(' ', 4);
      const bool idle = record.starts_with("hf1 ") && after_kind != record.npos &&
                        record.compare(after_kind, 3, " 0 ") == 0;
      if (!record.empty() && !idle) found.push_back(name_of_key(keys[i].text));
    }
    return done{};
  }

  const redis_options options_;
  const std::string channels_;
  const capabilities capabilities_;
  link link_;
  subscription inbox_;
};

}  // namespace

result<std::unique_ptr<session_store>> open_redis(redis_options options) {
  auto store = std::make_unique<redis_store>(std::move(options));
  if (auto ok = store->open(); !ok) return std::move(ok.error());
  return std::unique_ptr<session_store>(std::move(store));
}

}  // namespace holdfast::store::redis
