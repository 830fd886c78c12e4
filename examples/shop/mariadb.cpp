#include "examples/shop/server.hpp"

// Only if Connector/C was found at build time.
#ifdef HOLDFAST_TOOL_MARIADB
#include <mysql.h>

#include <charconv>
#include <stdexcept>

namespace flash_sale {
namespace {

/// The parts between `//` and the options: user:password@host:port/database.
struct address {
  std::string user, password, host, database;
  unsigned port = 0;
};

std::string decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    const char* const next = text.data() + i + 1;
    const bool escaped = text[i] == '%' && i + 2 < text.size() &&
                         std::from_chars(next, next + 2, code, 16).ptr == next + 2;
    out += escaped ? static_cast<char>(code) : text[i];
    if (escaped) i += 2;
  }
  return out;
}

address address_of(std::string_view url) {
  address a;
  const auto begin = url.find("//");
  url = begin == url.npos ? "" : url.substr(begin + 2);
  url = url.substr(0, url.find('?'));
  if (const auto at = url.rfind('@'); at != url.npos) {  // a password may contain a /
    const auto who = url.substr(0, at);
    const auto colon = who.find(':');
    a.user = decoded(who.substr(0, colon));
    if (colon != who.npos) a.password = decoded(who.substr(colon + 1));
    url = url.substr(at + 1);
  }
  const auto authority = url.substr(0, url.find('/'));
  if (authority.size() < url.size()) a.database = decoded(url.substr(authority.size() + 1));
  const auto colon = authority.find(':');
  a.host = authority.substr(0, colon);
  if (colon != authority.npos) {
    const auto digits = authority.substr(colon + 1);
    std::from_chars(digits.data(), digits.data() + digits.size(), a.port);
  }
  return a;
}

const char* or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

class mariadb_connection final : public shop_connection {
 public:
  explicit mariadb_connection(const std::string& url) : connection_{mysql_init(nullptr)} {
    const address a = address_of(url);
    mysql_optionsv(connection_.get(), MYSQL_SET_CHARSET_NAME, "utf8mb4");
    mysql_optionsv(connection_.get(), MYSQL_READ_DEFAULT_GROUP, "holdfast");
    if (mysql_real_connect(connection_.get(), or_null(a.host), or_null(a.user), or_null(a.password),
                           or_null(a.database), a.port, nullptr, 0) == nullptr) {
      fail();
    }
    ask("set session transaction isolation level read committed");
  }

  answer ask(std::string_view sql, const std::vector<std::string>& texts = {}) override {
    const std::string text = filled_in(sql, texts);
    MYSQL* const c = connection_.get();
    if (mysql_real_query(c, text.data(), text.size()) != 0) fail();
    const std::unique_ptr<MYSQL_RES, decltype([](MYSQL_RES* r) { mysql_free_result(r); })> rows{
        mysql_store_result(c)};
    if (!rows && mysql_field_count(c) != 0) fail();
    answer a{rows ? 0 : mysql_affected_rows(c)};
    while (rows) {
      const MYSQL_ROW row = mysql_fetch_row(rows.get());
      if (row == nullptr) break;
      const unsigned long* const sizes = mysql_fetch_lengths(rows.get());
      auto& cells = a.rows.emplace_back();
      for (unsigned i = 0; i < mysql_num_fields(rows.get()); ++i) {
        cells.emplace_back(row[i] == nullptr ? "" : row[i], row[i] == nullptr ? 0 : sizes[i]);
      }
    }
    return a;
  }

  std::string insert_if_new(const std::string& table, const std::string& values) const override {
    return "insert ignore into " + table + " values " + values;
  }
  std::string_view table_options() const override {
    return "engine = InnoDB character set utf8mb4 collate utf8mb4_bin";
  }

 private:
  // In hexadecimal no setting of the server changes the meaning.
  static std::string filled_in(std::string_view sql, const std::vector<std::string>& texts) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    auto next = texts.begin();
    for (const char c : sql) {
      if (c != '?') {
        text += c;
        continue;
      }
      text += "_utf8mb4 x'";
      for (const char byte : *next++) {
        text += digits[static_cast<unsigned char>(byte) >> 4];
        text += digits[static_cast<unsigned char>(byte) & 15];
      }
      text += "'";
    }
    return text;
  }
  [[noreturn]] void fail() {
    throw std::runtime_error{std::string{"the shop's server: "} + mysql_error(connection_.get())};
  }
  std::unique_ptr<MYSQL, decltype([](MYSQL* c) { mysql_close(c); })> connection_;
};

}  // namespace

std::unique_ptr<shop_connection> connect_mariadb(const std::string& url) {
  return std::make_unique<mariadb_connection>(url);
}
bool has_mariadb() noexcept { return true; }

}  // namespace flash_sale
#else
namespace flash_sale {
std::unique_ptr<shop_connection> connect_mariadb(const std::string&) { return nullptr; }
bool has_mariadb() noexcept { return false; }
}  // namespace flash_sale
#endif
