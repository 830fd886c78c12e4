#pragma once

#include <functional>
#include <holdfast/store/identity.hpp>
#include <span>

#include "store/redis/node.hpp"

namespace holdfast::store::redis {

/// One command about one name.
struct request {
  std::string_view name;      ///< decides which server has it
  std::string_view commands;  ///< encoded; one reply
  bool durable = false;       ///< see node::ask
  bool is_key = false;        ///< the name is a whole key, of a dialect
  bool stamped = true;        ///< see message
  bool once = false;          ///< see message
  bool raw = false;           ///< an error counts as an answer
  message as_message() const noexcept {
    return {.bytes = commands, .stamped = stamped, .once = once};
  }
};

struct reply {
  resp_value value;
  bool repeated = false;  ///< it may have been carried out before
  acknowledged replicas{};
  address from{};  ///< in a cluster: the node that has the name
};

/// Turns an error reply into a failure; of unknown outcome, if the server may have carried out the
/// same command before.
result<reply> judged(reply r, const request& of);

/// The servers behind a URL, one or many: which server has a name, and the connection to it.
/// Thread-safe.
class servers {
 public:
  virtual ~servers() = default;
  virtual status open() = 0;
  virtual result<reply> ask(const request& r) = 0;
  /// As link::post, to the server that should have the name. Sends it as an ordinary request and
  /// returns false if it cannot be posted now.
  bool post(const request& r, link::listener then);
  /// Returns when every request posted so far has been answered or has failed.
  virtual void settle() = 0;
  /// Sends several requests; the answers are in the same order. For renewals, which are soon
  /// retried anyway.
  virtual std::vector<result<reply>> ask(std::span<const request> all) = 0;
  /// Calls `look` for each server that has names of its own, until one fails. Calls `begin` before
  /// the first server, and again whenever the iteration restarts: everything found until then is to
  /// be discarded.
  virtual status for_each(const std::function<void()>& begin,
                          const std::function<status(node&)>& look) = 0;
  /// The only server; null if there are several.
  virtual node* only_one() noexcept { return nullptr; }
  /// The identity of the servers, and the start time of the one that was started last.
  result<store::identity> identify();
  /// The INFO of each server.
  result<store::facts> facts();
  /// As session_store::remembers_for.
  result<std::optional<std::chrono::microseconds>> remembers_for();
  /// The options for the connection that receives notifications.
  virtual redis_options for_notifications() = 0;

 private:
  virtual bool try_post(const request& r, link::listener& then) = 0;
};

}  // namespace holdfast::store::redis
