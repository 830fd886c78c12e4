#pragma once

#include <holdfast/store/contender_store.hpp>
#include <holdfast/store/queue_inbox.hpp>
#include <holdfast/store/store.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "family/contender_latch.hpp"
#include "family/contenders.hpp"
#include "family/own_entries.hpp"

/// The family's class, shared by the files that implement it: contender_family.cpp (renewal,
/// leaving, and background work), contender_turn.cpp (entering the queue, and whose turn it is) and
/// contender_weight.cpp (upgrade, downgrade, and returning permits).
namespace holdfast::family {

/// Implements sessions over a contender store.
class contender_family final : public store::session_store {
 public:
  using contender_store = store::contender_store;
  using permits_command = store::permits_command;
  using permits_reply = store::permits_reply;
  using owner_id = store::owner_id;

  contender_family(std::unique_ptr<contender_store> port, clock& on)
      : clock_(on),
        watches_([this](auto... what) { has_changed(what...); }),
        entries_(on, watches_),
        inbox_(port->peer(), on),
        latch_(*port, entries_, watches_, on,
               [this](std::string_view name, const owner_id& owner) {
                 return give_up_first(name, owner);
               }),
        port_(std::move(port)),
        thread_([this] { tidy(); }) {}

  ~contender_family() override {
    entries_.stop();
    thread_.join();
  }

  const store::capabilities& can() const noexcept override { return port_->can(); }
  const std::string& url() const noexcept override { return port_->url(); }
  store::inbox& inbox() noexcept override { return inbox_; }
  result<store::facts> facts() override { return port_->facts(); }
  result<std::vector<std::string>> names() override;

  result<store::countdown_reply> countdown(std::string_view name,
                                           const store::countdown_command& c) override {
    return latch_.apply(name, c);
  }

  result<permits_reply> permits(std::string_view name, const permits_command& c) override {
    auto reply = carry_out(name, c);
    if (reply && reply->now_at == 0) reply->now_at = micros(clock_.now());
    return reply;
  }

  std::vector<result<permits_reply>> execute_batch(
      std::span<const store::named_command> batch) override;
  result<store::standing> standing_of(std::string_view name, const owner_id& owner) override;

 private:
  result<permits_reply> carry_out(std::string_view name, const permits_command& c);
  result<permits_reply> acquire(std::string_view name, const permits_command& c);
  result<permits_reply> release(std::string_view name, const permits_command& c);
  result<permits_reply> resize(std::string_view name, const permits_command& c);

  result<bool> enter(std::string_view name, const permits_command& c, line& seen);
  void try_again(own_entries::one_job job) noexcept;
  status give_up_first(std::string_view name, const owner_id& owner);
  result<bool> find_again(std::string_view name, const owner_id& owner);
  result<std::optional<permits_reply>> take_turn(std::string_view name, const permits_command& c,
                                                 line seen);
  result<std::optional<permits_reply>> clash(std::string_view name, const permits_command& c,
                                             const line& all, std::size_t me);
  result<bool> look_ahead(std::string_view name, const permits_command& c, line& all,
                          const decision& d);
  result<std::optional<permits_reply>> granted(std::string_view name, const permits_command& c);
  result<std::optional<permits_reply>> not_granted(std::string_view name, const permits_command& c,
                                                   const line& all, const decision& d);
  permits_reply in_line(const permits_command& c, std::uint32_t position);
  permits_reply holds(const own_entry& mine, const permits_command& c);
  std::vector<std::size_t> renew(std::span<const store::named_command> batch,
                                 std::span<const std::size_t> renewals,
                                 std::span<result<permits_reply>> replies);
  bool has_moved_on(std::string_view name, const owner_id& owner, const std::string& from) const;
  permits_reply kept(std::string_view name, const permits_command& c);
  result<permits_reply> weaken(std::string_view name, const permits_command& c, own_entry mine);
  result<permits_reply> strengthen(std::string_view name, const permits_command& c, own_entry mine);
  result<bool> keep_first(std::string_view name, const owner_id& owner, const own_entry& mine);
  void forget(std::string_view name, const owner_id& owner);
  void give_up_later(std::string_view name, const owner_id& owner, std::vector<std::string> nodes,
                     bool unsure, boot_time at);
  void give_up_unless_known(std::string_view name, const owner_id& owner,
                            std::vector<std::string> nodes, bool unsure);
  result<bool> put_away(std::string_view name, const owner_id& owner,
                        std::vector<std::string> nodes, bool unsure);
  result<bool> leave(std::string_view name, const owner_id& owner,
                     const std::vector<std::string>& nodes);

  void step_out(std::string_view name, const owner_id& owner);

  void has_changed(std::string_view name, const owner_id& owner, std::string_view watched);
  void call(std::string_view name, const owner_id& owner);
  static own_entries::job look_for_arrivals(std::string_view name, const owner_id& owner);
  /// Returns false if the queue could not be read: that has to be retried.
  bool see_arrivals(const own_entries::job& look);
  void tidy();
  bool tidy_up(own_entries::job& job);

  clock& clock_;
  shared_watches watches_;
  own_entries entries_;
  store::queue_inbox inbox_;
  contender_latch latch_;
  std::unique_ptr<contender_store> port_;  // its threads call the members above
  std::thread thread_;
};

}  // namespace holdfast::family
