#pragma once

#include "store/postgres/wire.hpp"
#include "store/sql/row_link.hpp"

namespace holdfast::store::postgres {

/// The texts of the statements, for the schema of the tables. They live as long as the store.
struct statements {
  explicit statements(const std::string& schema);
  std::string read;
  std::string keep_floor, insert, update, update_guessed, update_telling_time;
  std::string set_session, limit, begin, limits, make, read_locked, fail_if_late, put_locked,
      remove_locked, commit, rollback;
  std::string take_floor, sweep, entries, entries_behind, tell, id;
  std::string records;  ///< the name of the table
};

/// The row operations over one connection.
class link final : public sql::row_link {
 public:
  /// The server waits for a row lock for at most `patience`, and less if a request has less time
  /// left: a client that stops waiting by itself leaves a statement behind that may still be
  /// carried out. Costs one round trip; behind a pooler the limit is set with each statement.
  static result<std::unique_ptr<row_link>> over(std::unique_ptr<wire> w, const statements& texts,
                                                std::chrono::milliseconds patience,
                                                boot_time deadline = forever);

  bool usable() const noexcept override { return wire_->usable(); }
  bool did_nothing() const noexcept override { return wire_->did_nothing(); }
  bool keeps_its_server() const noexcept override { return !wire_->pooled(); }
  std::int64_t server_number() const noexcept override {
    return wire_->pooled() ? 0 : wire_->server();
  }
  result<std::vector<sql::row>> read(std::span<const std::string_view> names,
                                     boot_time deadline) override;
  result<std::vector<sql::replaced>> replace(std::span<const sql::replacement> all,
                                             boot_time deadline) override;
  result<std::vector<sql::row>> lock(std::span<const std::string_view> names,
                                     boot_time deadline) override;
  status unlock(std::span<const sql::rewrite> all, std::int64_t until_at,
                boot_time deadline) override;
  status sweep(std::span<const std::string> names, boot_time deadline) override;
  result<std::vector<state_store::entry>> entries(boot_time deadline) override;
  result<std::vector<state_store::entry>> entries_behind(std::string_view name, std::size_t most,
                                                         boot_time deadline) override;
  result<std::string> id_of_tables(boot_time deadline) override;
  result<store::facts> facts(boot_time deadline) override;

  /// Publishes as many lines, each to the listeners of the channel with its number.
  status tell(std::span<const std::string> channels, std::span<const std::string> lines,
              boot_time deadline);

 private:
  link(std::unique_ptr<wire> w, const statements& texts, std::chrono::milliseconds patience)
      : wire_(std::move(w)), sql_(texts), patience_(patience) {}
  std::chrono::milliseconds patience_until(boot_time deadline) const noexcept;
  statement replacing(const sql::replacement& r) const;
  failure undone(failure why, boot_time deadline);
  result<std::vector<state_store::entry>> entries_of(statement asked, boot_time deadline);

  std::unique_ptr<wire> wire_;
  const statements& sql_;
  const std::chrono::milliseconds patience_;
};

}  // namespace holdfast::store::postgres
