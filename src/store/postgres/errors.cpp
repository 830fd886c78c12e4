#include "store/postgres/errors.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include "base/words.hpp"

namespace holdfast::store::postgres {

namespace {

struct meaning {
  std::string_view state;  // a prefix
  errc code;
  std::string_view advice;
};

constexpr const char* read_only_state = "25006";
constexpr const char* no_connection_state = "08001";

// The first match counts. Appendix A of PostgreSQL's manual has the list.
constexpr std::array meanings{
    meaning{"40001", errc::busy, "another session was faster"},
    meaning{"40P01", errc::busy, "another session was faster"},
    meaning{read_only_state, errc::read_only,
            "it is a standby, or default_transaction_read_only is set: name the primary, or add "
            "target_session_attrs=read-write to a list of hosts"},
    meaning{"55P03", errc::unavailable,
            "another session keeps the row of this name locked: look for an open transaction in "
            "pg_stat_activity"},
    meaning{"57014", errc::unavailable,
            "statement_timeout is too short (alter role … set statement_timeout), or an operator "
            "cancelled the statement"},
    meaning{"53300", errc::unavailable,
            "raise max_connections, or put a pooler in front; ?connections= says how many a "
            "session may open"},
    meaning{"53100", errc::no_space, "free some space on the server's disk"},
    meaning{"53", errc::unavailable, "the server is short of resources; look at its log"},
    meaning{"58", errc::unavailable, "the server's disk or file system failed; look at its log"},
    meaning{"42501", errc::not_permitted,
            "docs/stores/postgres.md lists the rights that holdfast needs"},
    meaning{"28", errc::not_permitted,
            "check user and password: PGPASSWORD, .pgpass, a service file, or user:password@ in "
            "the URL; and the server's pg_hba.conf"},
    meaning{"3D", errc::invalid_argument, "make the database, or name another one in the URL"},
    meaning{"26000", errc::unavailable, "a pooler gave this connection another server"},
    meaning{"42P05", errc::unavailable, "a pooler gave this connection another server"},
    meaning{"0A000", errc::unavailable,
            "the tables were changed; the next attempt reads them anew"},
    meaning{"42P01", errc::foreign_data,
            "a table of holdfast was removed: drop what is left of holdfast_records and "
            "holdfast_meta, and open a new session, which makes both"},
    meaning{"42", errc::foreign_data,
            "the tables holdfast_records and holdfast_meta are not those that holdfast made; give "
            "locks a schema of their own (?schema=)"},
    meaning{"22012", errc::timed_out, "the request came after its caller had given up"},
    meaning{"22P05", errc::unsupported,
            "the database's encoding lacks a character; use a database in UTF8"},
    meaning{"22", errc::foreign_data, "the row was not written by holdfast; choose another name"},
    meaning{"23", errc::foreign_data,
            "the tables have a constraint or trigger that holdfast did not make"},
    meaning{"XX001", errc::corrupt, "the server found damaged data; look at its log"},
    meaning{"XX002", errc::corrupt, "the server found a damaged index; reindex holdfast_records"},
    meaning{"57P", errc::unavailable,
            "the server is starting or shutting down, or it ended this connection"},
    meaning{"25P0", errc::unavailable,
            "a time-out of the server ended this connection between two statements; raise "
            "idle_in_transaction_session_timeout"},
    meaning{no_connection_state, errc::unavailable,
            "is the server running and ready, and is that its address?"},
    meaning{"08", errc::unavailable, "the connection to the server is broken"},
};

std::string one_line(std::string_view text) {
  std::string line(text.substr(0, 300));
  while (!line.empty() && line.back() == '\n') line.pop_back();
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::erase(line, '\t');  // libpq indents the lines after the first
  return line;
}

failure judge(std::string_view state, std::string_view said,
              std::string_view speaker = "the server answered") {
  const auto found = std::find_if(meanings.begin(), meanings.end(),
                                  [&](const meaning& m) { return state.starts_with(m.state); });
  const std::string answered = std::string(speaker) + " '" + one_line(said) + "'";
  if (found != meanings.end()) {
    return {found->code, answered + " (" + std::string(state) + "): " + std::string(found->advice)};
  }
  return {errc::internal, answered + " (" + std::string(state) + "), which holdfast does not know"};
}

std::string_view field(const PGresult* answer, int which) noexcept {
  const char* const text = PQresultErrorField(answer, which);
  return text == nullptr ? std::string_view() : text;
}

/// The name of a host may contain any word.
std::string without_addresses(std::string said) {
  for (const std::string_view before : {"server at \"", "on socket \"", "host name \""}) {
    for (auto at = said.find(before); at != said.npos; at = said.find(before, at)) {
      at += before.size();
      said.erase(at, said.find('"', at) - at);
    }
  }
  return said;
}

/// The name of a role, a database or a file may contain any word, and quotes. A line has one
/// message, behind the address, if there is one.
std::string without_names(const std::string& said) {
  std::string kept;
  for (std::string_view rest = said; !rest.empty();) {
    const auto line = base::take_word(rest, '\n');
    constexpr std::string_view address_ends = " failed: ";
    const auto after = line.find(address_ends);
    const auto from = after == line.npos ? 0 : after + address_ends.size();
    const auto first = line.find('"', from), last = line.rfind('"');
    const bool names = first != line.npos && first < last;
    kept.append(line.substr(0, names ? first + 1 : line.npos));
    if (names) kept.append(line.substr(last));
    kept += '\n';
  }
  return kept;
}

/// Where libpq has written the server's code: five characters in "FATAL:  28P01: password …". After
/// several attempts the last code counts.
std::size_t place_of_code(std::string_view said) noexcept {
  const auto fits = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z'); };
  for (auto at = said.rfind(":  "); at != said.npos && at > 0; at = said.rfind(":  ", at - 1)) {
    const auto code = said.substr(at + 3, 5);
    const bool is_one = code.size() == 5 && std::all_of(code.begin(), code.end(), fits);
    if (is_one && said.substr(at + 8).starts_with(": ")) return at + 3;
  }
  return said.npos;
}

/// The code, if it tells why the connection was refused. Poolers use 08P01 for anything.
std::string_view code_in(std::string_view said) noexcept {
  const auto at = place_of_code(said);
  if (at == said.npos) return {};
  const auto code = said.substr(at, 5);
  for (const std::string_view known :
       {"25P0", "28", "3D", "42501", "53", "57P", "58", read_only_state}) {
    if (code.starts_with(known)) return code;
  }
  return {};
}

/// Without the codes, and without the places in the server's source.
std::string for_people(std::string said) {
  for (auto at = place_of_code(said); at != said.npos; at = place_of_code(said)) said.erase(at, 7);
  constexpr std::string_view place = "\nLOCATION:  ";
  for (auto at = said.find(place); at != said.npos; at = said.find(place)) {
    said.erase(at, said.find('\n', at + 1) - at);
  }
  return one_line(said);
}

// A pooler repeats the server's words under a code of its own, and the library's errors have no
// code. The pooler's words about a name come first, because it does not quote the name.
std::string_view state_in(std::string_view said) noexcept {
  if (const auto code = code_in(said); !code.empty()) return code;
  for (const auto& [words, state] : {std::pair{"no such user", "28000"},
                                     {"no such database", "3D000"},
                                     {"too many clients", "53300"},
                                     {"too many connections", "53300"},
                                     {"remaining connection slots", "53300"},
                                     {"no more connections allowed", "53300"},
                                     {"authentication failed", "28P01"},
                                     {"no password supplied", "28P01"},
                                     {"no pg_hba.conf entry", "28000"},
                                     {"certificate", "28000"},
                                     {"role \"", "28000"},
                                     {"permission denied for database", "42501"},
                                     {"does not exist", "3D000"},
                                     {"session is read-only", read_only_state},
                                     {"server is in hot standby mode", read_only_state},
                                     {"received invalid ", no_connection_state},
                                     {"invalid ", "invalid"}}) {
    if (said.find(words) != said.npos) return state;
  }
  return no_connection_state;
}

bool names_several_hosts(const PGconn* c) noexcept {
  const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> all(
      PQconninfo(const_cast<PGconn*>(c)), &PQconninfoFree);
  for (auto* o = all.get(); o != nullptr && o->keyword != nullptr; ++o) {
    const std::string_view name = o->keyword, value = o->val == nullptr ? "" : o->val;
    if ((name == "host" || name == "hostaddr") && value.find(',') != value.npos) return true;
  }
  return false;
}

}  // namespace

std::string_view sqlstate_of(const PGresult* answer) noexcept {
  return field(answer, PG_DIAG_SQLSTATE);
}

failure server_says(const PGresult* answer) {
  const auto state = sqlstate_of(answer);
  if (state.empty()) {
    return {errc::unavailable, "the connection broke: " + one_line(PQresultErrorMessage(answer))};
  }
  return judge(state, field(answer, PG_DIAG_MESSAGE_PRIMARY));
}

failure connection_says(const PGconn* connection, std::string_view tried) {
  const std::string all = PQerrorMessage(connection);
  const std::string judged = without_names(without_addresses(all)), said = for_people(all);
  const std::string_view state = state_in(judged);
  failure f = judge(state, said, "libpq says");
  if (state == "invalid") f = {errc::invalid_argument, "libpq says: " + said};
  if (state == read_only_state) f = only_reads_here(connection, std::move(f.what));
  f.what = std::string(tried) + ": " + f.what;
  return f;
}

// With several hosts, another host, or this one, may soon be primary.
failure only_reads_here(const PGconn* connection, std::string why) {
  if (!names_several_hosts(connection)) return {errc::read_only, std::move(why)};
  return {errc::unavailable, "none of the hosts takes writes now: " + why};
}

failure takes_no_writes(std::string_view said) { return judge(read_only_state, said); }

// An error from the server ends its transaction, which was not committed, or could not be. Errors
// that end a connection may also come after a commit; and poolers use these codes when they do not
// know the outcome. 40003 itself means that the outcome is unknown.
bool proves_that_nothing_was_done(const PGresult* answer) noexcept {
  if (field(answer, PG_DIAG_SEVERITY_NONLOCALIZED) != "ERROR") return false;
  const auto state = sqlstate_of(answer);
  for (const std::string_view unsure : {"08", "40003", "57P", "58", "XX"}) {
    if (state.starts_with(unsure)) return false;
  }
  return !state.empty();
}

// After a refused write, a new connection may lead to the present primary.
bool ends_connection(std::string_view sqlstate) noexcept {
  for (const std::string_view end :
       {"57P", "25P0", read_only_state, "08", "26000", "42P05", "0A000", "XX"}) {
    if (sqlstate.starts_with(end)) return true;
  }
  return sqlstate.empty();
}

}  // namespace holdfast::store::postgres
