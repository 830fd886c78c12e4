#include "tool/demo_shops.hpp"

#include <holdfast/session.hpp>

#include "examples/shop/server.hpp"
#include "examples/shop/sqlite.hpp"
#include "tool/exit_code.hpp"
#include "tool/failure.hpp"
#include "tool/store_url.hpp"
#include "tool/text.hpp"

namespace holdfast::tool::demo {
namespace {

enum class database { sqlite, postgres, mariadb, none };

database database_of(std::string_view url) {
  const auto scheme = url.substr(0, url.find(':'));
  if (scheme == "sqlite") return database::sqlite;
  if (scheme == "postgres" || scheme == "postgresql") return database::postgres;
  if (scheme == "mariadb" || scheme == "mysql") return database::mariadb;
  return database::none;
}

std::string file_of(const std::string& url) { return url.substr(url.find(':') + 1); }

server_shop on_server(const shop_place& at) {
  const bool postgres = database_of(at.url) == database::postgres;
  return {postgres ? connect_postgres(at.url) : connect_mariadb(at.url), at.prefix};
}

}  // namespace

void check_shop_url(const std::string& url) {
  const auto kind = database_of(url);
  // libpq would split such a password, and show one half of it in a message.
  for (const auto secret : secrets_in(url)) {
    if (kind != database::postgres || secret.find_first_of("/?@") == secret.npos) continue;
    throw failure_exit(exit_code::usage,
                       "--shop: in a password write %2F for /, %3F for ? and %40 for @");
  }
  if (kind != database::postgres && kind != database::mariadb) {
    throw failure_exit{exit_code::usage,
                       "--shop: '" + printable(without_secrets(url)) +
                           "' is neither postgres://… nor mariadb://…; without --shop it is an "
                           "SQLite file"};
  }
  if (kind == database::postgres ? has_postgres() : has_mariadb()) return;
  throw failure_exit{exit_code::usage,
                     "--shop: this holdfast was built without the client library of " +
                         printable(url.substr(0, url.find(':')))};
}

void create_shop(const shop_place& at, const catalogue& all) {
  if (database_of(at.url) == database::sqlite) return sqlite_shop::create(file_of(at.url), all);
  try {
    on_server(at).create(all);
  } catch (const std::runtime_error& e) {
    throw failure_exit{exit_code::unavailable, std::string{"--shop: the tables of the shop cannot "
                                                           "be made: "} +
                                                   e.what()};
  }
}

std::unique_ptr<shop> open_shop(const shop_place& at) {
  if (database_of(at.url) == database::sqlite) {
    return std::make_unique<sqlite_shop>(file_of(at.url));
  }
  return std::make_unique<server_shop>(on_server(at));
}

void remove_shop(const shop_place& at) {
  if (database_of(at.url) != database::sqlite) on_server(at).remove();
}

}  // namespace holdfast::tool::demo
