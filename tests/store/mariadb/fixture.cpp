#include "fixture.hpp"

#include <atomic>
#include <random>
#include <stdexcept>

namespace mariadb_test {

client::client(int port) : connection_(mysql_init(nullptr), &mysql_close) {
  if (mysql_real_connect(connection_.get(), "127.0.0.1", "admin", "", nullptr,
                         static_cast<unsigned>(port), nullptr,
                         CLIENT_MULTI_STATEMENTS) == nullptr) {
    throw std::runtime_error(mysql_error(connection_.get()));
  }
}

std::string client::ask(const std::string& statements) const {
  MYSQL* const c = connection_.get();
  std::string first;
  int more = mysql_real_query(c, statements.data(), statements.size()) == 0 ? 0 : 1;
  for (; more == 0; more = mysql_next_result(c)) {
    const std::unique_ptr<MYSQL_RES, void (*)(MYSQL_RES*)> rows(mysql_store_result(c),
                                                                &mysql_free_result);
    const MYSQL_ROW row = rows ? mysql_fetch_row(rows.get()) : nullptr;
    if (row != nullptr && row[0] != nullptr && first.empty()) first = row[0];
  }
  if (more > 0) throw std::runtime_error(statements + ": " + mysql_error(c));
  return first;
}

std::string fresh_name() {
  static std::atomic<int> number{0};
  return "t" + std::to_string(std::random_device()()) + "_" + std::to_string(++number);
}

mariadb_store::mariadb_store() { ask("create user " + user_ + "@'%'"); }

mariadb_store::~mariadb_store() {
  ask("drop user " + user_ + "@'%'; drop database if exists `" + database_ + "`");
}

int mariadb_store::port() const { return std::stoi(base_.substr(base_.rfind(':') + 1)); }

holdfast::session mariadb_store::impatient(const std::string& options) const {
  holdfast::session_options o;
  o.store_timeout = std::chrono::milliseconds(300);
  return holdfast::open(url(options), o);
}

void mariadb_store::let_user(const std::string& more) const {
  ask("grant select, insert, update, delete on `" + database_ + "`.* to " + user_ + "@'%'" + more);
}

std::string mariadb_store::url_of_user(const std::string& options) const {
  std::string as_user = url(options);
  return as_user.replace(as_user.find("admin@"), 5, user_);
}

}  // namespace mariadb_test
