#include "fixture.hpp"

#include <sys/fsuid.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace sqlite_test {

session open(sqlite_options options) {
  auto opened = holdfast::store::sqlite::open_sqlite(std::move(options));
  if (!opened) throw std::runtime_error(opened.error().what);
  return std::move(*opened);
}

session open(const std::string& path) {
  sqlite_options options;
  options.path = path;
  return open(std::move(options));
}

failure refusal(sqlite_options options) {
  auto opened = holdfast::store::sqlite::open_sqlite(std::move(options));
  if (opened) throw std::runtime_error("it was opened");
  return opened.error();
}

failure refusal(const std::string& path) {
  sqlite_options options;
  options.path = path;
  return refusal(std::move(options));
}

const std::string* rule::apply(std::string_view record, const moment& now) {
  ++calls;
  seen = record;
  at = now;
  next_.clear();
  return decide_(seen, next_);
}

rule writes(std::string text) {
  return rule{[text = std::move(text)](const std::string&, std::string& next) {
    next = text;
    return &next;
  }};
}

rule reads() {
  return rule{[](const std::string&, std::string&) -> const std::string* { return nullptr; }};
}

rule increments() {
  return rule{[](const std::string& record, std::string& next) {
    next = std::to_string((record.empty() ? 0 : std::stol(record)) + 1);
    return &next;
  }};
}

std::string record_of(state_store& store, std::string_view name) {
  rule look = reads();
  const auto looked = store.transact(name, look);
  if (!looked) throw std::runtime_error(looked.error().what);
  return look.seen;
}

long number_of(state_store& store, std::string_view name) {
  const std::string record = record_of(store, name);
  return record.empty() ? 0 : std::stol(record);
}

shell::shell(const std::string& file) {
  if (sqlite3_open_v2(file.c_str(), &db_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr) !=
      0) {
    throw std::runtime_error("cannot open " + file);
  }
  sqlite3_busy_timeout(db_, 10'000);
}

shell::~shell() { sqlite3_close_v2(db_); }

void shell::run(const std::string& sql) { (void)ask(sql); }

std::vector<std::string> shell::ask(const std::string& sql) {
  std::vector<std::string> rows;
  const auto add = [](void* into, int columns, char** values, char**) {
    std::string row;
    for (int i = 0; i < columns; ++i) {
      if (i > 0) row += '|';
      if (values[i] != nullptr) row += values[i];
    }
    static_cast<std::vector<std::string>*>(into)->push_back(row);
    return 0;
  };
  if (sqlite3_exec(db_, sql.c_str(), add, &rows, nullptr) != SQLITE_OK) {
    throw std::runtime_error(sql + ": " + sqlite3_errmsg(db_));
  }
  return rows;
}

std::string shell::ask_one(const std::string& sql) {
  const auto rows = ask(sql);
  if (rows.size() != 1) throw std::runtime_error(sql + " has not one row");
  return rows.front();
}

std::string bytes_of(const std::string& file) {
  std::ifstream in{file, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}

void write_bytes(const std::string& file, std::string_view bytes) {
  std::ofstream out{file, std::ios::binary};
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

as_ordinary_user::as_ordinary_user() {
  if (::geteuid() == 0) ::setfsuid(65534);
}

as_ordinary_user::~as_ordinary_user() { ::setfsuid(::geteuid()); }

bool in_child(const std::function<bool()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    bool good = false;
    try {
      good = body();
    } catch (const std::exception& e) {
      (void)!::write(2, e.what(), std::string_view{e.what()}.size());
    }
    ::_exit(good ? 0 : 1);
  }
  int state = 0;
  return ::waitpid(child, &state, 0) == child && WIFEXITED(state) && WEXITSTATUS(state) == 0;
}

}  // namespace sqlite_test
