#pragma once

#include "store/mariadb/link.hpp"
#include "store/sql/lock_link.hpp"

namespace holdfast::store::mariadb {

/// GET_LOCK over one connection, by the SHA-256 of `database.name`: 64 digits, the maximum length
/// of a lock name, and a collision with another name is practically impossible. The database is
/// written as the server writes it.
class user_lock_link final : public sql::lock_link {
 public:
  /// Connects. Fails with errc::unsupported behind a proxy. The server ends the connection after
  /// that long a silence.
  static result<std::unique_ptr<sql::lock_link>> open(const mariadb_options& options,
                                                      const tables& t);

  bool usable() const noexcept override { return link_ && link_->usable(); }
  void drop() noexcept override { link_.reset(); }
  int fd() const noexcept override { return link_->fd(); }
  std::int64_t id() const noexcept override { return link_->id(); }
  const std::string& life_of_server() const noexcept override { return life_; }
  result<std::optional<std::int64_t>> try_lock(std::string_view name, sql::lock_mode mode) override;
  result<bool> unlock(std::string_view name, sql::lock_mode mode) override;
  result<std::optional<std::int64_t>> change(std::string_view name, sql::lock_mode to) override;
  status begin(std::string_view name, sql::lock_mode mode) override;
  bool over() noexcept override { return link_->answered(); }
  result<std::optional<std::int64_t>> end() override;
  status interrupt(const sql::lock_link& other) override;
  status ping() override;
  result<std::vector<sql::lock_user>> users(std::string_view name) override;

 private:
  explicit user_lock_link(std::unique_ptr<link> l) : link_(std::move(l)) {}
  status set_up(const mariadb_options& o);
  /// Breaks the connection if that cell shows that the server takes no writes: it was primary once,
  /// and another server grants locks now.
  status leave_if_it_only_reads(const std::optional<std::string>& only_reads);
  std::string key(std::string_view name) const;
  std::string locking(std::string_view name, int seconds) const;

  std::unique_ptr<link> link_;
  std::string scope_{};
  std::string life_{};
};

}  // namespace holdfast::store::mariadb
