#include "fixture.hpp"

#include <atomic>
#include <random>
#include <stdexcept>

namespace postgres_test {

client::client(const std::string& url)
    : connection_(PQconnectdb(url.substr(0, url.find('?')).c_str()), &PQfinish) {
  if (PQstatus(connection_.get()) != CONNECTION_OK) {
    throw std::runtime_error(PQerrorMessage(connection_.get()));
  }
  PQsetNoticeReceiver(connection_.get(), [](void*, const PGresult*) {}, nullptr);
}

std::string client::ask(const std::string& statements) const {
  const std::unique_ptr<PGresult, void (*)(PGresult*)> r(
      PQexec(connection_.get(), statements.c_str()), &PQclear);
  const auto how = PQresultStatus(r.get());
  if (how != PGRES_TUPLES_OK && how != PGRES_COMMAND_OK) {
    throw std::runtime_error(statements + ": " + PQresultErrorMessage(r.get()));
  }
  return PQntuples(r.get()) > 0 ? PQgetvalue(r.get(), 0, 0) : "";
}

std::string fresh_name() {
  static std::atomic<int> number{0};
  return "t" + std::to_string(std::random_device()()) + "_" + std::to_string(++number);
}

postgres_store::postgres_store() { ask("create role " + user_ + " login"); }

postgres_store::~postgres_store() {
  ask("drop schema if exists \"" + schema_ + "\" cascade; drop owned by " + user_ + "; drop role " +
      user_);
}

holdfast::session postgres_store::impatient(const std::string& options) const {
  holdfast::session_options o;
  o.store_timeout = std::chrono::milliseconds(300);
  return holdfast::open(url(options), o);
}

void postgres_store::let_user_with(const std::string& setting) const {
  const std::string schema = "schema \"" + schema_ + "\" to " + user_;
  ask("grant all on " + schema + "; grant all on all tables in " + schema + "; alter role " +
      user_ + " " + setting);
}

std::string postgres_store::url_of_user(const std::string& options) const {
  std::string as_user = url(options);
  return as_user.replace(as_user.find("postgres@"), 8, user_);
}

}  // namespace postgres_test
