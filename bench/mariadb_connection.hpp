#pragma once

#include <mysql.h>
#include <mysqld_error.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

namespace bench {

/// A blocking connection, for one thread. From mariadb://user@host:port/database.
class mariadb_connection {
 public:
  explicit mariadb_connection(const std::string& url) : connection_{mysql_init(nullptr)} {
    const std::string rest = url.substr(url.find("//") + 2);
    const auto at = rest.find('@'), colon = rest.find(':', at), slash = rest.find('/', at);
    const auto user = rest.substr(0, at);
    const auto host = rest.substr(at + 1, colon - at - 1);
    const auto database = rest.substr(slash + 1, rest.find('?') - slash - 1);
    const auto port = static_cast<unsigned>(std::stoi(rest.substr(colon + 1)));
    const auto open = [&](const char* name) {
      return mysql_real_connect(connection_, host.c_str(), user.c_str(), nullptr, name, port,
                                nullptr, 0) != nullptr;
    };
    if (!open(nullptr)) fail();
    run("create database if not exists `" + database + "`");
    run("use `" + database + "`");
  }
  ~mariadb_connection() { mysql_close(connection_); }
  mariadb_connection(const mariadb_connection&) = delete;

  /// The number of changed rows; an insert that became an update counts two. A statement that was
  /// the victim of a deadlock did nothing, and is sent again.
  std::uint64_t run(const std::string& sql) {
    while (mysql_real_query(connection_, sql.data(), sql.size()) != 0) {
      if (mysql_errno(connection_) != ER_LOCK_DEADLOCK) fail();
    }
    return mysql_affected_rows(connection_);
  }

  /// A query whose answer is read and ignored.
  void ask(const std::string& sql) {
    run(sql);
    mysql_free_result(mysql_store_result(connection_));
  }

  /// One cell of the first row of the answer.
  std::string value(const std::string& sql, unsigned column) {
    run(sql);
    const std::unique_ptr<MYSQL_RES, decltype([](MYSQL_RES* r) { mysql_free_result(r); })> rows{
        mysql_store_result(connection_)};
    const MYSQL_ROW row = rows ? mysql_fetch_row(rows.get()) : nullptr;
    if (row == nullptr || row[column] == nullptr) fail();
    return row[column];
  }

 private:
  [[noreturn]] void fail() { throw std::runtime_error{mysql_error(connection_)}; }
  MYSQL* connection_;
};

}  // namespace bench
