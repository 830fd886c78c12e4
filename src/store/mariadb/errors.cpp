#include "store/mariadb/errors.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace holdfast::store::mariadb {

namespace {

struct meaning {
  unsigned first, last;
  errc code;
  std::string_view advice;
};

constexpr std::string_view rights = "docs/stores/mariadb.md lists the rights that holdfast needs";
constexpr std::string_view login =
    "check user and password: the [client] part of an option file, MYSQL_PWD, or user:password@ in "
    "the URL; with require_secure_transport the server answers so to a client without TLS (tls=)";
constexpr std::string_view not_ours =
    "the tables holdfast_records and holdfast_meta are not those that holdfast made; give locks a "
    "database of their own";
constexpr std::string_view too_many =
    "raise max_connections; ?connections= says how many a session may open";
constexpr std::string_view only_read = "read_only is set, or it is a replica; name the primary";
constexpr std::string_view needs_innodb =
    "holdfast needs MariaDB 10.6 or later, and tables of the engine InnoDB: see skip_innodb and "
    "enforce_storage_engine";
constexpr std::string_view no_space = "free some space on the server's disk";
constexpr std::string_view short_of_resources =
    "the server is short of memory or threads; look at its log";

/// TLS failed.
constexpr unsigned tls_failed = 2026;
/// The storage engine failed, with an error number of the operating system.
constexpr unsigned engine_failed = 1030;
/// … or failed at the end of a transaction.
constexpr unsigned commit_failed = 1180;

/// An option of the server, which it names, forbids the statement.
constexpr unsigned forbidden_by_option = 1290;

// The first match counts.
constexpr std::array meanings{
    meaning{1213, 1213, errc::busy, "another session was faster"},
    meaning{1020, 1020, errc::busy, "another session was faster"},
    meaning{1205, 1205, errc::unavailable,
            "another session keeps the row of this name locked, or the table: look for an open "
            "transaction in information_schema.innodb_trx, and for a backup or `lock tables` in "
            "the list of processes"},
    meaning{forbidden_by_option, forbidden_by_option, errc::read_only, only_read},
    meaning{1792, 1792, errc::read_only,
            "tx_read_only is on for this user, or for the server: turn it off"},
    meaning{1836, 1836, errc::read_only, only_read},
    meaning{1193, 1193, errc::unsupported, needs_innodb},
    meaning{1286, 1286, errc::unsupported, needs_innodb},
    meaning{1665, 1665, errc::unsupported,
            "holdfast's transactions are READ COMMITTED: set binlog_format to MIXED or ROW"},
    meaning{1040, 1040, errc::unavailable, too_many},
    meaning{1203, 1203, errc::unavailable, too_many},
    meaning{1226, 1226, errc::unavailable, too_many},
    meaning{1969, 1969, errc::unavailable, "max_statement_time is too short for this user"},
    meaning{1317, 1317, errc::unavailable, "an operator killed the statement"},
    meaning{1044, 1044, errc::not_permitted, rights},
    meaning{1142, 1143, errc::not_permitted, rights},
    meaning{1227, 1227, errc::not_permitted, rights},
    meaning{1370, 1370, errc::not_permitted, rights},
    meaning{1045, 1045, errc::not_permitted, login},
    meaning{1698, 1698, errc::not_permitted, login},
    meaning{1130, 1130, errc::not_permitted, login},
    meaning{1820, 1820, errc::not_permitted, login},
    meaning{1862, 1862, errc::not_permitted, "the password has expired: set a new one"},
    meaning{4151, 4151, errc::not_permitted, "an operator locked the account (alter user)"},
    meaning{tls_failed, tls_failed, errc::not_permitted,
            "TLS failed: see tls=, ssl_ca=, ssl_cert=, ssl_key="},
    meaning{1021, 1021, errc::no_space, no_space},
    meaning{1114, 1114, errc::no_space, no_space},
    meaning{engine_failed, engine_failed, errc::unavailable,
            "the server's disk or file system failed; look at its log"},
    meaning{1037, 1038, errc::unavailable, short_of_resources},
    meaning{1041, 1041, errc::unavailable, short_of_resources},
    meaning{1135, 1135, errc::unavailable, short_of_resources},
    meaning{
        1129, 1129, errc::unavailable,
        "many connections from this host have failed: find out why, then run flush hosts, or raise "
        "max_connect_errors"},
    meaning{1153, 1153, errc::unavailable, "raise max_allowed_packet"},
    meaning{1184, 1184, errc::unavailable,
            "the server ends each connection of this user if its init_connect fails; look at the "
            "server's log"},
    // The outcome is unknown: a new connection finds it out.
    meaning{commit_failed, commit_failed, errc::unavailable,
            "the commit failed; look at the server's log"},
    meaning{1690, 1690, errc::timed_out, "the request came after its caller had given up"},
    meaning{1054, 1054, errc::foreign_data, not_ours},
    meaning{1146, 1146, errc::foreign_data,
            "a table of holdfast was removed: drop what is left of holdfast_records and "
            "holdfast_meta, and open a new session, which makes both"},
    meaning{1136, 1136, errc::foreign_data, not_ours},
    meaning{1049, 1049, errc::foreign_data, not_ours},
    meaning{1364, 1366, errc::foreign_data, not_ours},
    meaning{4025, 4025, errc::foreign_data, not_ours},
    meaning{2002, 2003, errc::unavailable, "is the server running, and is that its address?"},
    meaning{2005, 2005, errc::unavailable, "check the name of the host"},
    meaning{2000, 2999, errc::unavailable,
            "the connection broke: is a MariaDB server running there, and does the network work?"},
    meaning{1047, 1047, errc::unavailable,
            "the server is not ready yet, or is not a member of its cluster"},
    meaning{1053, 1053, errc::unavailable, "the server is shutting down"},
    meaning{1077, 1080, errc::unavailable, "the server is shutting down"},
    meaning{1927, 1927, errc::unavailable, "an operator killed the connection"},
    meaning{4031, 4031, errc::unavailable, "the server ended an idle connection"},
    meaning{1158, 1161, errc::unavailable, "the connection to the server is broken"},
};

/// The server ended the statement, or the commit, and undid it. (A commit that it ends while
/// waiting for a replica's acknowledgement has been carried out, and is reported as such.)
constexpr std::array undone{1205U, 1969U, 1317U};

/// The client library uses the numbers from 2000 on for its own errors.
bool found_by_library(unsigned number) noexcept { return number >= 2000 && number < 3000; }

const meaning* meaning_of(unsigned number) noexcept {
  const auto found = std::find_if(meanings.begin(), meanings.end(), [&](const meaning& m) {
    return m.first <= number && number <= m.last;
  });
  return found == meanings.end() ? nullptr : &*found;
}

// A server that is being restarted, or the network: TLS is not at fault.
bool broke_during_handshake(unsigned number, std::string_view said) noexcept {
  if (number != tls_failed) return false;
  for (const std::string_view word :
       {"unexpected eof", "timed out", "Connection reset", "Broken pipe"}) {
    if (said.find(word) != said.npos) return true;
  }
  return false;
}

}  // namespace

failure server_says(unsigned number, std::string_view said) {
  std::string text =
      (found_by_library(number) ? "the client library says '" : "the server answered '") +
      std::string(said.substr(0, 300)) + "' (" + std::to_string(number) + ")";
  const meaning* const found = meaning_of(number);
  if ((number == engine_failed || number == commit_failed) &&
      said.find("error 28 ") != said.npos) {  // ENOSPC
    return {errc::no_space, text + ": " + std::string(no_space)};
  }
  if (broke_during_handshake(number, said))
    return {errc::unavailable, text + ": the connection broke while TLS was set up"};
  if (number == forbidden_by_option && said.find("ENGINE") != said.npos) {
    return {errc::unsupported, text + ": " + std::string(needs_innodb)};
  }
  if (number == forbidden_by_option && said.find("read") == said.npos) {
    return {errc::unavailable, text + ": change that setting of the server"};
  }
  if (found == nullptr) return {errc::internal, text + ", which holdfast does not know"};
  return {found->code, text + ": " + std::string(found->advice)};
}

failure no_answer() {
  return {errc::unavailable,
          "the server did not answer in command_timeout; is it stopped, the network cut, or a row "
          "locked by another session (information_schema.innodb_trx)?"};
}

failure takes_no_writes(std::string_view said) {
  return {errc::read_only,
          "the server says that " + std::string(said) + ": " + std::string(only_read)};
}

// A statement that was refused for lack of rights, or because of unexpected tables, was never
// begun. Earlier statements of a transaction are undone with the connection, which is not used
// again.
bool proves_that_nothing_was_done(unsigned number) noexcept {
  const meaning* const known = meaning_of(number);
  return std::find(undone.begin(), undone.end(), number) != undone.end() ||
         (known != nullptr && !found_by_library(number) &&
          (known->code == errc::not_permitted || known->code == errc::foreign_data));
}

// A new connection may lead to the present primary.
bool ends_connection(unsigned number) noexcept {
  const meaning* const known = meaning_of(number);
  return (known != nullptr && known->code == errc::read_only) || found_by_library(number) ||
         number == commit_failed || number == 1053 || number == 1927 || number == 4031 ||
         (number >= 1077 && number <= 1080) || (number >= 1158 && number <= 1161);
}

}  // namespace holdfast::store::mariadb
