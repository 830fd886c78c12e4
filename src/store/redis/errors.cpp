#include "store/redis/errors.hpp"

#include <array>
#include <string>

namespace holdfast::store::redis {

namespace {

struct meaning {
  std::string_view word;
  errc code;
  std::string_view advice;
};

constexpr std::array meanings{
    meaning{"NOAUTH", errc::not_permitted, "the server wants a login: redis://user:password@host"},
    meaning{"WRONGPASS", errc::not_permitted,
            "check user and password, or password_env and password_file"},
    meaning{"NOPERM", errc::not_permitted,
            "docs/stores/redis.md lists the rights that holdfast needs"},
    meaning{
        "DENIED", errc::not_permitted,
        "the server accepts no client of another machine: set a password, or bind it to the right "
        "addresses"},
    meaning{"LOADING", errc::unavailable, "the server is reading its data; try again soon"},
    meaning{"BUSY", errc::unavailable,
            "a script of another client keeps the server busy; SCRIPT KILL ends it"},
    meaning{"READONLY", errc::unavailable,
            "this server is a replica; the next attempt looks for the primary again"},
    meaning{"MASTERDOWN", errc::unavailable, "the replica has lost its primary"},
    meaning{"NOREPLICAS", errc::unavailable,
            "too few replicas are connected (min-replicas-to-write)"},
    meaning{"MISCONF", errc::read_only,
            "the server cannot save its data, so it refuses writes: look at its log and disk"},
    meaning{"OOM", errc::no_space,
            "the server's maxmemory is reached; give it more or remove data"},
    meaning{"WRONGTYPE", errc::foreign_data,
            "the key was not written by holdfast: choose another name or ?prefix="},
    meaning{"HOLDFAST_FOREIGN", errc::foreign_data, "choose another name or ?prefix="},
    meaning{"HOLDFAST_NEWER", errc::newer_format, "update this program"},
    meaning{"HOLDFAST_LATE", errc::unavailable,
            "the command came after this session had given it up; is the server's clock being set, "
            "or is the network slow? Try again"},
    meaning{"HOLDFAST_CORRUPT", errc::corrupt,
            "look at the key with redis-cli; remove the key if no program holds the lock"},
    meaning{"MOVED", errc::unsupported, "this is a node of a cluster; write redis+cluster://host"},
    meaning{"ASK", errc::unsupported, "this is a node of a cluster; write redis+cluster://host"},
    meaning{"CROSSSLOT", errc::internal,
            "the keys of one name have one hash tag; this is a defect in holdfast"},
    meaning{"CLUSTERDOWN", errc::unavailable, "the cluster does not serve all of its slots"},
    meaning{"TRYAGAIN", errc::unavailable, "the slot is being moved; try again soon"},
    meaning{"NOPROTO", errc::unsupported,
            "the server does not speak a protocol that holdfast knows"},
};

bool too_many_clients(std::string_view error) noexcept {
  return error.find("max number of clients") != error.npos;
}

failure make(errc code, std::string_view error, std::string_view advice) {
  return {code, "the server answered '" + std::string(error.substr(0, 200)) +
                    "': " + std::string(advice)};
}

}  // namespace

failure server_says(std::string_view error) {
  if (too_many_clients(error)) {
    return make(errc::unavailable, error, "raise its maxclients, or open fewer sessions");
  }
  for (const auto marker :
       {std::string_view("HOLDFAST_"), std::string_view("OOM "), std::string_view("WRONGTYPE "),
        std::string_view("READONLY "), std::string_view("MISCONF "),
        std::string_view("NOREPLICAS "), std::string_view("MASTERDOWN ")}) {
    // An error raised inside a script may be wrapped in another one.
    if (const auto at = error.find(marker); at != error.npos && at > 0)
      return server_says(error.substr(at));
  }
  const auto word = error.substr(0, error.find(' '));
  for (const auto& m : meanings) {
    if (m.word == word) return make(m.code, error, m.advice);
  }
  // Redis 6 and 7.0, from inside a script: "The user executing the script can't run this command".
  if (error.find("NOPERM") != error.npos || error.find("ACL failure") != error.npos ||
      error.find("user executing the script can't") != error.npos) {
    return make(errc::not_permitted, error,
                "docs/stores/redis.md lists the rights that holdfast needs");
  }
  // A script can be killed only before its first write.
  if (error.find("Script killed by user") != error.npos)
    return make(errc::unavailable, error,
                "an operator or another client ended the script; try again");
  // In a script or outside of one, in the words of several versions.
  for (const std::string_view unknown : {"unknown command", "Unknown Redis command"}) {
    if (error.find(unknown) == error.npos) continue;
    return make(errc::unsupported, error,
                "holdfast needs that command: does the server's configuration rename it "
                "(rename-command)?");
  }
  return make(errc::internal, error, "holdfast does not know this error");
}

failure strange_answer(std::string_view what) {
  return {
      errc::corrupt,
      "the server's answer to " + std::string(what) +
          " is not one that holdfast knows; is there something other than Redis at this address?"};
}

// With replica-serve-stale-data no, a replica answers MASTERDOWN while it cannot reach its primary
// or is copying the primary's data. While it loads that data, it answers LOADING. (So does a server
// that was restarted: each attempt uses a new connection then.)
bool ends_connection(std::string_view error) noexcept {
  return error.starts_with("READONLY") || error.starts_with("MASTERDOWN") ||
         error.starts_with("LOADING") || error.starts_with("NOAUTH") ||
         error.find("-READONLY") != error.npos || error.find("READONLY You") != error.npos ||
         error.find("-MASTERDOWN") != error.npos || too_many_clients(error);
}

}  // namespace holdfast::store::redis
