#pragma once

#include <algorithm>
#include <cstdint>
#include <holdfast/store/contender_store.hpp>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/reconnect_pause.hpp"
#include "store/contender_text/renewed.hpp"
#include "store/zookeeper/client.hpp"
#include "store/zookeeper/names.hpp"

/// The store itself, shared by its source files: zookeeper.cpp (the session, time and names),
/// nodes.cpp (the queue of a name) and records.cpp (its record).
namespace holdfast::store::zookeeper {

using link = std::shared_ptr<connection>;

/// An empty container may be removed at any moment, between two requests.
inline constexpr int max_attempts = 5;

/// Thread-safe.
class zookeeper_store final : public contender_store {
 public:
  explicit zookeeper_store(zookeeper_options o);

  status open();

  const capabilities& can() const noexcept override { return can_; }
  const std::string& url() const noexcept override { return options_.url; }
  const std::string& peer() const noexcept override { return peer_; }
  boot_time safe_until(std::uint64_t session) const noexcept override {
    const auto now = present();
    const bool lives = now->session() == session && !now->over();
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
    return path_of(name, node);
  }
  std::vector<result<bool>> confirm(std::span<const node_of> nodes) override;
  result<versioned> record(std::string_view name, bool waits, alarm on_change) override;
  result<std::optional<revision>> replace(std::string_view name, std::string_view text,
                                          revision version, std::int64_t keep_us) override;
  result<moment> time() override;
  result<store::facts> facts() override;
  result<std::vector<used_name>> names() override;

 private:
  link present() const { return session_.present(); }
  /// Must not be called on a thread of the client, because it looks up the servers' names.
  result<link> current();
  const ACL_vector* acl() const {
    return options_.private_acl ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
  }
  std::string path_of(std::string_view name) const { return options_.base + "/" + escape(name); }
  std::string path_of(std::string_view name, std::string_view node) const {
    return path_of(name) + "/" + std::string(node);
  }

  /// A write without effect: a majority has to agree to it, and afterwards the connected member has
  /// seen everything that was agreed before. zoo_async promises less: a leader answers it alone.
  template <class Token>
  int ask_all(connection& c, Token* token) {
    const std::string nobody = options_.base + "/%nobody";
    return zoo_adelete(c.handle(), nobody.c_str(), -1, &requests::on_void, token);
  }

  template <class Token>
  static int ask_line(connection& c, const std::string& parent, Token* token) {
    return zoo_aget_children(c.handle(), parent.c_str(), 0, &requests::on_names, token);
  }

  /// Sends `count` requests by send(i, link, requests) and waits for their answers.
  template <class Send>
  result<std::vector<answer>> ask(std::size_t count, bool to_leader, Send send);
  status make_base();
  status make(const std::string& path, int mode);
  result<entered> enter_behind_all(std::string_view name, const std::string& prefix,
                                   const std::string& data);
  result<entered> enter_in_place_of(std::string_view name, const std::string& prefix,
                                    const std::string& data, std::span<const std::string> leaving);
  status count_anew(std::string_view name, const std::string& last);
  void know_time(boot_time at, std::int64_t wall_ms);
  failure wrong(int rc, bool writes = false) const { return explain(rc, options_, writes); }

  const zookeeper_options options_;
  const capabilities can_;
  std::string peer_;
  contender_text::renewed<connection> session_;
  /// When the next session may begin, after one with what is no ZooKeeper. Guarded by session_.
  base::reconnect_pause next_;
  std::mutex mutex_;
  boot_time time_known_at_{};
  std::int64_t wall_at_ = 0;
};

template <class Send>
result<std::vector<answer>> zookeeper_store::ask(std::size_t count, bool to_leader, Send send) {
  auto to = current();
  if (!to) return std::move(to.error());
  const auto all = std::make_shared<requests>(count);
  const boot_time sent = options_.clock->now();
  auto kept = (*to)->keep();
  const boot_time counts_from = (*to)->asks(*all, sent);
  for (std::size_t i = 0; i < count; ++i) {
    auto token = all->expect(i);
    const bool over = (*to)->handle() == nullptr;
    const int rc = over ? int{ZINVALIDSTATE} : send(i, **to, *all, token.get());
    requests::sent(std::move(token), rc);
  }
  kept.unlock();
  auto answers = all->wait(*options_.clock, saturated_add(sent, options_.command_timeout));
  const auto has_none = [](const answer& a) { return a.rc == ZOPERATIONTIMEOUT; };
  if (std::any_of(answers.begin(), answers.end(), has_none)) (*to)->leave_if_silent();
  if (to_leader && leader_answered(answers.front().rc)) (*to)->proved(counts_from);
  return answers;
}

}  // namespace holdfast::store::zookeeper
