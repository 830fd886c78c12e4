#include "store/sqlite/explain.hpp"

#include <cerrno>
#include <cstring>
#include <system_error>

namespace holdfast::store::sqlite {
namespace {

struct verdict {
  errc code;
  const char* next;
  bool outcome_unknown = false;
};

constexpr const char* make_room = "free some space or raise the limit";

bool no_room(int error_number) noexcept {
  return error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG;
}

verdict judge_cantopen(int error_number) noexcept {
  switch (error_number) {
    case EROFS:
      return {errc::read_only, "the file system is mounted read-only; use another path"};
    case EACCES:
    case EPERM:
      return {errc::not_permitted,
              "this user needs the rights to enter the folder and to read the file, and to take "
              "locks also to write to both; grant them"};
    case EMFILE:
    case ENFILE:
      return {errc::unavailable, "raise the limit of open files (ulimit -n)"};
    default:
      return {errc::unavailable, "check the path and the rights of its directory"};
  }
}

verdict judge_io(int code, int error_number) noexcept {
  if (no_room(error_number)) return {errc::no_space, make_room};
  const bool reading = code == SQLITE_IOERR_READ || code == SQLITE_IOERR_SHORT_READ;
  return {errc::unavailable, "look at the kernel log for errors of the disk", !reading};
}

verdict judge(int code, int error_number) noexcept {
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
      return {errc::unavailable,
              "another program keeps the file locked: look for an open transaction (a sqlite3 "
              "shell, a backup) or a stopped process; or raise busy_timeout"};
    case SQLITE_READONLY:
      return {errc::read_only, "make the file and its directory writable for this user"};
    case SQLITE_FULL:
      return {errc::no_space, make_room};
    case SQLITE_IOERR:
      return judge_io(code, error_number);
    case SQLITE_CANTOPEN:
      return judge_cantopen(error_number);
    case SQLITE_CORRUPT:
      return {
          errc::corrupt,
          "stop all programs that use the file, and remove it with its -wal and -shm: leases are "
          "short, and fences continue from the clock"};
    case SQLITE_NOTADB:
      return {errc::foreign_data, "this is not a SQLite database; give locks a file of their own"};
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return {errc::not_permitted, "grant this user the right to write to the file"};
    case SQLITE_NOMEM:  // counts as a missing answer: a waiter asks again
      return {errc::overloaded, "free some memory", true};
    case SQLITE_ERROR:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
      return {errc::foreign_data,
              "the tables are not those that holdfast made; give locks a file of their own"};
    default:
      return {errc::internal, "please report this"};
  }
}

std::string system_said(int error_number) {
  return error_number == 0 ? std::string{}
                           : " (" + std::generic_category().message(error_number) + ")";
}

// The errno of the failed call on the write-ahead log; the connection no longer knows it.
int log_error_number(sqlite3* db) noexcept {
  sqlite3_file* log = nullptr;
  int error_number = 0;
  sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, static_cast<void*>(&log));
  if (log != nullptr && log->pMethods != nullptr) {
    log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &error_number);
  }
  return error_number;
}

int error_number_of(sqlite3* db, int code) noexcept {
  if (code == SQLITE_IOERR_SHMSIZE) return ENOSPC;
  if (db == nullptr) return 0;
  const int primary = code & 0xff;
  if (primary == SQLITE_CANTOPEN) return sqlite3_system_errno(db);
  if (primary != SQLITE_IOERR) return 0;
  const int told = sqlite3_system_errno(db);
  return told != 0 ? told : log_error_number(db);
}

}  // namespace

failure explain(sqlite3* db, int code, std::string_view tried) {
  const int error_number = error_number_of(db, code);
  const verdict found = judge(code, error_number);
  const char* said = db != nullptr ? sqlite3_errmsg(db) : sqlite3_errstr(code);
  return {
      found.code,
      std::string{tried} + ": SQLite says: " + said + system_said(error_number) + "; " + found.next,
      found.outcome_unknown};
}

failure explain_reading(sqlite3* db, int code, std::string_view tried) {
  failure why = explain(db, code, tried);
  why.outcome_unknown = why.outcome_unknown && why.code == errc::overloaded;
  return why;
}

failure explain_errno(int error_number, std::string_view tried) {
  const verdict found =
      no_room(error_number) ? verdict{errc::no_space, make_room} : judge_cantopen(error_number);
  return {found.code, std::string{tried} + ": the system says: " +
                          std::generic_category().message(error_number) + "; " + found.next};
}

failure explain_forked() {
  return {errc::forked,
          "this session was opened before fork(), by the parent process; open a new one here"};
}

}  // namespace holdfast::store::sqlite
