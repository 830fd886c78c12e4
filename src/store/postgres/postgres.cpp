#include "store/postgres/postgres.hpp"

#include "store/postgres/advisory.hpp"
#include "store/postgres/link.hpp"
#include "store/postgres/listener.hpp"
#include "store/postgres/opening.hpp"
#include "store/postgres/schema.hpp"
#include "store/sql/notification_text.hpp"
#include "store/sql/over_rows.hpp"
#include "store/sql/session_locks.hpp"

namespace holdfast::store::postgres {

namespace {

class postgres_store final : public sql::over_rows {
 public:
  explicit postgres_store(postgres_options options)
      : options_(std::move(options)),
        statements_(options_.schema),
        inbox_(options_),
        rows_([this](boot_time deadline) { return connect(deadline); }, options_.connections,
              options_.command_timeout) {
    can_.survives_failover = false;  // to a standby that may lack the last commits
  }

  status open() {
    const boot_time deadline = boot_clock::now() + options_.connect_timeout;
    auto first = postgres::connect(options_.server, deadline);
    if (!first) return std::move(first.error());
    if (auto ok = set_up_tables(**first, options_.schema, deadline); !ok) return ok;
    auto made = over(std::move(*first), deadline);
    if (!made) return std::move(made.error());
    rows_.use(std::move(*made));
    if (auto ok = inbox_.open(); !ok) return ok;
    can_.notifications = can_.secret_proves = inbox_.listens();
    can_.try_takes_ms = static_cast<std::uint32_t>(options_.command_timeout.count());
    return done{};
  }

  const capabilities& can() const noexcept override { return can_; }
  const std::string& url() const noexcept override { return options_.url; }
  store::inbox& inbox() noexcept override { return inbox_; }

  bool tell(const notification& to) override { return tell_all(std::span(&to, 1)).empty(); }
  // A notification that could not be sent, also for lack of memory, delays its addressee by a
  // second.
  std::vector<std::string> tell_all(std::span<const notification> all) override try {
    std::vector<std::string> channels, lines;
    for (const notification& to : all) {
      if (to.peer == inbox_.peer() && !inbox_.listens()) {
        inbox_.put(to);
        continue;
      }
      std::string line = sql::encode(to);
      if (line.empty()) continue;
      line.pop_back();
      channels.push_back(channel_of(to.peer));
      lines.push_back(std::move(line));
    }
    if (lines.empty()) return {};
    (void)rows_.with_link([&](sql::row_link& over, boot_time deadline) {
      return static_cast<link&>(over).tell(channels, lines, deadline);
    });
    return {};
  } catch (const std::bad_alloc&) {
    return {};
  }

 private:
  sql::row_store& rows() noexcept override { return rows_; }
  result<std::unique_ptr<sql::row_link>> connect(boot_time deadline) {
    const auto own_limit = boot_clock::now() + options_.connect_timeout;
    auto made = deadline < own_limit ? postgres::connect(options_.server, deadline,
                                                         "what was left of command_timeout")
                                     : postgres::connect(options_.server, own_limit);
    if (!made) return std::move(made.error());
    return over(std::move(*made), deadline);
  }
  result<std::unique_ptr<sql::row_link>> over(std::unique_ptr<wire> w, boot_time deadline) {
    inbox_.follow(w->server());
    return link::over(std::move(w), statements_, sql::patience_of(options_), deadline);
  }

  const postgres_options options_;
  const statements statements_;
  capabilities can_;
  listener inbox_;
  sql::row_store rows_;  // connects once more in its destructor, and tells the inbox the server
};

}  // namespace

result<std::unique_ptr<state_store>> open_postgres(postgres_options options) {
  auto store = std::make_unique<postgres_store>(std::move(options));
  if (auto opened = store->open(); !opened) return std::move(opened.error());
  return std::unique_ptr<state_store>(std::move(store));
}

result<std::unique_ptr<session_store>> open_postgres_session(postgres_options options) {
  auto first = advisory_link::open(options);
  if (!first) return std::move(first.error());
  sql::session_lock_options o{options.url, sql::session_capabilities(true, options),
                              options.connections, sql::sure_for(options), options.clock};
  return sql::over_session_locks(
      std::move(*first), [options = std::move(options)] { return advisory_link::open(options); },
      std::move(o));
}

}  // namespace holdfast::store::postgres
