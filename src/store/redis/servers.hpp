#pragma once

#include <functional>
#include <holdfast/store/identity.hpp>
#include <span>

#include "store/redis/node.hpp"

namespace holdfast::store::redis {

/// One command about one name.
struct request {
  std::string_view name;      ///< says which server has it
  std::string_view commands;  ///< encoded; one reply
  bool durable = false;       ///< see node::ask
  bool is_key = false;        ///< the name is the whole key: of a dialect
  bool stamped = true;        ///< see message
  bool once = false;          ///< see message
  bool raw = false;           ///< an error is an answer like any other
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

/// What a server says against a command is a failure: of unknown outcome, if it may have carried
/// out the same command before.
result<reply> judged(reply r, const request& of);

/// The servers behind a URL, be it one or many: who has a name, and how to get there. Thread-safe.
class servers {
 public:
  virtual ~servers() = default;
  virtual status open() = 0;
  virtual result<reply> ask(const request& r) = 0;
  /// As link::post, to where the name should be; if it cannot be posted now, it is asked: false.
  bool post(const request& r, link::listener then);
  /// Returns when what was posted so far has been answered, or has failed.
  virtual void settle() = 0;
  /// Several, in the order of the answers; for renewals, which are tried again soon by themselves.
  virtual std::vector<result<reply>> ask(std::span<const request> all) = 0;
  /// Each that has names of its own, until one fails. `begin` comes before the first, and again
  /// where they are looked at anew: what was found until then does not count.
  virtual status for_each(const std::function<void()>& begin,
                          const std::function<status(node&)>& look) = 0;
  /// The only server there is; null where there are several.
  virtual node* only_one() noexcept { return nullptr; }
  /// Who they are, and since when the one runs that was started last.
  result<store::identity> identify();
  /// Of each, what INFO says.
  result<store::facts> facts();
  /// As session_store::remembers_for.
  result<std::optional<std::chrono::microseconds>> remembers_for();
  /// How to get a connection for notifications.
  virtual redis_options for_notifications() = 0;

 private:
  virtual bool try_post(const request& r, link::listener& then) = 0;
};

}  // namespace holdfast::store::redis
