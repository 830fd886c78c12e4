#pragma once

#include "store/postgres/wire.hpp"
#include "store/sql/lock_link.hpp"

namespace holdfast::store::postgres {

/// The key of the name in $1 (`schema.name`), as the server computes it.
inline constexpr const char* advisory_key =
    "('x' || pg_catalog.substr(pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to($1, "
    "'UTF8')), 'hex'), 1, 16))::bit(64)::bigint";

/// PostgreSQL's advisory locks over one connection. Their keys have 64 bits: the first of the
/// SHA-256 of `schema.name`. Two names with the same key exclude each other, which is never unsafe.
class advisory_link final : public sql::lock_link {
 public:
  /// Connects. Fails with errc::unsupported behind a pooler. The server ends the connection after
  /// that long a silence, and waits for locks without a limit of its own.
  static result<std::unique_ptr<sql::lock_link>> open(const postgres_options& options);

  bool usable() const noexcept override { return wire_ && wire_->alive(); }
  void drop() noexcept override { wire_.reset(); }
  int fd() const noexcept override { return wire_->fd(); }
  std::int64_t id() const noexcept override { return wire_->backend(); }
  const std::string& life_of_server() const noexcept override { return life_; }
  result<std::optional<std::int64_t>> try_lock(std::string_view name, sql::lock_mode mode) override;
  result<bool> unlock(std::string_view name, sql::lock_mode mode) override;
  result<std::optional<std::int64_t>> change(std::string_view name, sql::lock_mode to) override;
  status begin(std::string_view name, sql::lock_mode mode) override;
  bool over() noexcept override { return wire_->answered(); }
  result<std::optional<std::int64_t>> end() override;
  status interrupt(const sql::lock_link& other) override;
  status ping() override;
  result<std::vector<sql::lock_user>> users(std::string_view name) override;

 private:
  advisory_link(std::unique_ptr<wire> w, const postgres_options& o)
      : wire_(std::move(w)),
        life_(std::to_string(wire_->server())),
        patience_(o.command_timeout),
        scope_(o.schema + ".") {}
  status set_up(const postgres_options& o, boot_time whole_by);
  boot_time deadline() const { return boot_clock::now() + patience_; }
  std::string key(std::string_view name) const;
  result<std::optional<std::int64_t>> moment(const std::string& sql, std::string_view name);

  /// Breaks the connection if that column shows that the server takes no writes: it was primary
  /// once, and another server grants locks now.
  status leave_if_it_only_reads(const answer& a, int column);

  std::unique_ptr<wire> wire_;
  const std::string life_;
  const std::chrono::milliseconds patience_;
  const std::string scope_;
};

}  // namespace holdfast::store::postgres
