#include "store/mariadb/mariadb.hpp"

#include <condition_variable>
#include <mutex>

#include "store/mariadb/link.hpp"
#include "store/mariadb/schema.hpp"
#include "store/sql/peer_id.hpp"
#include "store/sql/row_store.hpp"

namespace holdfast::store::mariadb {

namespace {

/// Nothing ever comes: who waits is interrupted, or looks again.
class silent_inbox final : public inbox {
 public:
  explicit silent_inbox(holdfast::clock* on)
      : clock_(on != nullptr ? *on : real_clock()), peer_(sql::random_peer()) {}

  const std::string& peer() const noexcept override { return peer_; }

  std::optional<notice> receive(boot_time until) override {
    std::unique_lock lock{mutex_};
    while (!interrupted_ && clock_.now() < until) clock_.wait_until(lock, changed_, until);
    interrupted_ = false;
    return std::nullopt;
  }

  void interrupt() noexcept override {
    const std::lock_guard guard{mutex_};
    interrupted_ = true;
    changed_.notify_one();
  }

 private:
  clock& clock_;
  const std::string peer_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool interrupted_ = false;
};

class mariadb_store final : public state_store {
 public:
  explicit mariadb_store(mariadb_options options)
      : options_(std::move(options)),
        tables_(options_.database),
        rows_([this](boot_time) { return connect(); }, options_.connections,
              options_.command_timeout),
        inbox_(options_.clock) {}

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

  status transact(std::string_view name, transition& change) override {
    const step one{name, &change};
    return std::move(rows_.transact(std::span(&one, 1)).front());
  }
  std::vector<status> transact(std::span<const step> steps) override {
    return rows_.transact(steps);
  }
  result<std::vector<entry>> entries() override { return rows_.entries(); }
  result<moment> time() override { return rows_.time(); }
  bool tell(const notice&) override { return true; }

 private:
  result<std::unique_ptr<sql::row_link>> connect() {
    auto made = link::open(options_, tables_);
    if (!made) return std::move(made.error());
    return std::unique_ptr<sql::row_link>(std::move(*made));
  }

  static constexpr capabilities can_{.notices = false, .survives_failover = false};
  const mariadb_options options_;
  const tables tables_;
  sql::row_store rows_;
  silent_inbox inbox_;
};

}  // namespace

result<std::unique_ptr<state_store>> open_mariadb(mariadb_options options) {
  auto store = std::make_unique<mariadb_store>(std::move(options));
  if (auto opened = store->open(); !opened) return std::move(opened.error());
  return std::unique_ptr<state_store>(std::move(store));
}

}  // namespace holdfast::store::mariadb
