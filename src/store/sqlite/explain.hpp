#pragma once

#include <sqlite3.h>

#include <holdfast/error.hpp>
#include <string>
#include <string_view>

namespace holdfast::store::sqlite {

/// The failure for a SQLite result code: what was tried, what SQLite and the system reported, and
/// what to do next. `db` may be null.
failure explain(sqlite3* db, int code, std::string_view tried);

/// The same for a request that only reads: nothing has changed. (A lack of memory still counts as a
/// missing answer, so that a waiter asks again.)
failure explain_reading(sqlite3* db, int code, std::string_view tried);

/// The same for a system call that left `error_number` in errno.
failure explain_errno(int error_number, std::string_view tried);

/// The failure of every call in a child process.
failure explain_forked();

}  // namespace holdfast::store::sqlite
