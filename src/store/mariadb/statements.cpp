#include "store/mariadb/statements.hpp"

namespace holdfast::store::mariadb {

std::string hex(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text = "x'";
  for (const char c : bytes) {
    text += digits[static_cast<unsigned char>(c) >> 4];
    text += digits[static_cast<unsigned char>(c) & 15];
  }
  return text + "'";
}

std::string quoted(std::string_view identifier) {
  std::string text = "`";
  for (const char c : identifier) text.append(c == '`' ? 2 : 1, c);
  return text + "`";
}

tables::tables(std::string_view name)
    : database(quoted(name)),
      records(database + ".holdfast_records"),
      meta(database + ".holdfast_meta") {}

std::string not_after(std::string_view until) {
  std::string text;
  if (!until.empty()) text.append(" and ").append(server_clock).append(" <= ").append(until);
  return text;
}

std::string update_of(const tables& t, std::string_view record, std::string_view name,
                      std::string_view version, std::string_view now, std::string_view until) {
  std::string text = "update " + t.records + " set version = version + 1, record = ";
  text.append(record).append(" where name = ");
  text.append(name).append(" and version = ").append(version);
  text.append(" and ").append(takes_writes).append(not_after(until));
  if (now.empty()) return text;
  text.append(" and ").append(server_clock).append(" - ").append(now);
  return text + " between -500 and 1500";
}

}  // namespace holdfast::store::mariadb
