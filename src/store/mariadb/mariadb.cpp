#include "store/mariadb/mariadb.hpp"

#include <holdfast/store/queue_inbox.hpp>

#include "base/random.hpp"
#include "store/mariadb/link.hpp"
#include "store/mariadb/schema.hpp"
#include "store/mariadb/user_lock.hpp"
#include "store/sql/over_rows.hpp"
#include "store/sql/session_locks.hpp"

namespace holdfast::store::mariadb {

namespace {

class mariadb_store final : public sql::over_rows {
 public:
  explicit mariadb_store(mariadb_options options)
      : options_(std::move(options)),
        tables_(options_.database),
        rows_([this](boot_time deadline) { return connect(deadline); }, options_.connections,
              options_.command_timeout),
        inbox_(base::random_id(), *options_.clock, sql::most_own_notifications) {}

  status open() {
    auto first = link::open(options_, tables_);
    if (!first) return std::move(first.error());
    if (auto ok = set_up_tables(**first, tables_); !ok) return ok;
    rows_.use(std::move(*first));
    return done{};
  }

  const capabilities& can() const noexcept override { return can_; }
  const std::string& url() const noexcept override { return options_.url; }
  store::inbox& inbox() noexcept override { return inbox_; }

  // Reaches the waiters of this session only. Without memory for it they poll, as all others do.
  bool tell(const notification& to) override try {
    if (to.peer == inbox_.peer()) inbox_.put(to);
    return true;
  } catch (const std::bad_alloc&) {
    return true;
  }

 private:
  sql::row_store& rows() noexcept override { return rows_; }
  result<std::unique_ptr<sql::row_link>> connect(boot_time deadline) {
    auto made = link::open(options_, tables_, deadline);
    if (!made) return std::move(made.error());
    return std::unique_ptr<sql::row_link>(std::move(*made));
  }

  const mariadb_options options_;
  const capabilities can_{
      .notifications = false,
      .survives_failover = false,
      .try_takes_ms = static_cast<std::uint32_t>(options_.command_timeout.count())};
  const tables tables_;
  sql::row_store rows_;
  queue_inbox inbox_;  // notifications by this session for its own waiters; those of others poll
};

}  // namespace

result<std::unique_ptr<state_store>> open_mariadb(mariadb_options options) {
  auto store = std::make_unique<mariadb_store>(std::move(options));
  if (auto opened = store->open(); !opened) return std::move(opened.error());
  return std::unique_ptr<state_store>(std::move(store));
}

result<std::unique_ptr<session_store>> open_mariadb_session(mariadb_options options) {
  const auto names = std::make_shared<tables>(options.database);
  auto first = user_lock_link::open(options, *names);
  if (!first) return std::move(first.error());
  sql::session_lock_options o{options.url, sql::session_capabilities(false, options),
                              options.connections, sql::sure_for(options), options.clock};
  return sql::over_session_locks(
      std::move(*first),
      [options = std::move(options), names] { return user_lock_link::open(options, *names); },
      std::move(o));
}

}  // namespace holdfast::store::mariadb
