#pragma once

#include <map>

#include "store/redis/servers.hpp"
#include "store/redis/slot_map.hpp"

namespace holdfast::store::redis {

/// A cluster: a link to each node that is needed, and a map of the slots, which one of the nodes
/// returned. The nodes correct an outdated map: MOVED changes it, ASK is followed once, and
/// TRYAGAIN and CLUSTERDOWN are retried until command_timeout. After a node that does not answer,
/// another node is asked for the map.
class cluster final : public servers {
 public:
  explicit cluster(const redis_options& options);

  status open() override;
  result<reply> ask(const request& r) override;
  std::vector<result<reply>> ask(std::span<const request> all) override;
  status for_each(const std::function<void()>& begin,
                  const std::function<status(node&)>& look) override;
  redis_options for_notifications() override;
  void settle() override;

 private:
  bool try_post(const request& r, link::listener& then) override;

  /// A request on its way to an answer.
  struct routed_part {
    const request* what;
    result<reply>* answer;
    slot_number slot;
    std::shared_ptr<node> to;  ///< null: the node that has the slot
    bool asking = false;
    bool repeated = false;  ///< it may have been carried out already
  };
  using routed_parts = std::vector<routed_part>;
  /// The outcome of one round of requests.
  struct round {
    routed_parts again;
    bool later = false;             ///< a retry needs a pause first
    std::vector<const node*> dead;  ///< the nodes that did not answer
    bool stale = false;             ///< the map is outdated
    /// These say that the cluster is down. If the others have replaced one, it does not know that.
    std::vector<std::shared_ptr<node>> cut_off;
  };
  /// The answer to a map request that no thread waits for.
  struct map_news {
    std::mutex mutex;
    std::optional<resp_value> answer;
    address from{};
    std::uint64_t after = 0;  ///< the number of maps adopted before the request
  };

  void run(routed_parts todo, bool patient);
  round send_first(std::span<routed_part> todo);
  round send_to_each(std::span<routed_part> todo);
  static void leave_unasked(std::span<routed_part> together);
  void send(std::span<routed_part> together, round& r);
  void judge(routed_part& e, reply got, round& r);
  void keep_what_has_hope(round& r);
  void pause(std::chrono::nanoseconds d);

  std::shared_ptr<node> node_at(const address& a);
  std::shared_ptr<node> owner(slot_number slot);
  std::vector<address> candidates() const;
  status refresh(std::span<const node* const> avoid);
  status adopt(const address& from);
  status adopt(const resp_value& slots, const address& from);
  void look_around(node& at);
  status check_the_others(const address& checked);
  address next_for_notifications();
  bool is_known(const address& a) const;  ///< on the map; under mutex_

  const redis_options options_;
  clock& clock_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  slot_map map_;
  std::map<address, std::shared_ptr<node>> nodes_;
  std::size_t notifications_from_;
  address answered_last_;
  boot_time look_at_{};  ///< when to ask for the map although nothing shows that it is outdated
  std::uint64_t adopted_ = 0;
  const std::shared_ptr<map_news> news_ = std::make_shared<map_news>();

  std::mutex refreshing_;
  boot_time refreshed_at_{};  ///< under refreshing_
};

}  // namespace holdfast::store::redis
