#include "examples/shop/server.hpp"

// Only if libpq was found at build time.
#ifdef HOLDFAST_TOOL_POSTGRES
#include <libpq-fe.h>

#include <stdexcept>

namespace flash_sale {
namespace {

using answer_of_libpq = std::unique_ptr<PGresult, decltype([](PGresult* r) { PQclear(r); })>;

std::string numbered(std::string_view sql) {
  std::string text;
  int next = 0;
  for (const char c : sql) {
    if (c == '?') {
      text += '$' + std::to_string(++next);
    } else {
      text += c;
    }
  }
  return text;
}

class postgres_connection final : public shop_connection {
 public:
  explicit postgres_connection(const std::string& url) : connection_{PQconnectdb(url.c_str())} {
    if (PQstatus(connection_.get()) != CONNECTION_OK) fail();
    PQsetNoticeReceiver(connection_.get(), [](void*, const PGresult*) {}, nullptr);
    PQsetClientEncoding(connection_.get(), "UTF8");
    ask("set session characteristics as transaction isolation level read committed");
    ask("set synchronous_commit = off");  // as cheap as the others: the locks are compared
  }

  answer ask(std::string_view sql, const std::vector<std::string>& texts = {}) override {
    std::vector<const char*> values;
    values.reserve(texts.size());
    for (const auto& t : texts) values.push_back(t.c_str());
    const answer_of_libpq r{PQexecParams(connection_.get(), numbered(sql).c_str(),
                                         static_cast<int>(values.size()), nullptr, values.data(),
                                         nullptr, nullptr, 0)};
    const auto how = PQresultStatus(r.get());
    if (how != PGRES_COMMAND_OK && how != PGRES_TUPLES_OK) fail();
    const std::string changed = PQcmdTuples(r.get());
    answer a{changed.empty() ? 0 : std::stoull(changed)};
    for (int i = 0; i < PQntuples(r.get()); ++i) {
      auto& row = a.rows.emplace_back();
      for (int c = 0; c < PQnfields(r.get()); ++c) row.emplace_back(PQgetvalue(r.get(), i, c));
    }
    return a;
  }

  std::string insert_if_new(const std::string& table, const std::string& values) const override {
    return "insert into " + table + " values " + values + " on conflict do nothing";
  }
  std::string_view table_options() const override { return ""; }

 private:
  [[noreturn]] void fail() {
    std::string said = PQerrorMessage(connection_.get());
    while (said.ends_with('\n')) said.pop_back();
    throw std::runtime_error{"the shop's server: " + said};
  }
  std::unique_ptr<PGconn, decltype([](PGconn* c) { PQfinish(c); })> connection_;
};

}  // namespace

std::unique_ptr<shop_connection> connect_postgres(const std::string& url) {
  return std::make_unique<postgres_connection>(url);
}
bool has_postgres() noexcept { return true; }

}  // namespace flash_sale
#else
namespace flash_sale {
std::unique_ptr<shop_connection> connect_postgres(const std::string&) { return nullptr; }
bool has_postgres() noexcept { return false; }
}  // namespace flash_sale
#endif
