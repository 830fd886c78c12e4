#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "examples/shop/shop.hpp"

namespace flash_sale {

/// One connection to a database server, for one thread. Errors are std::runtime_error.
class shop_connection {
 public:
  struct answer {
    std::uint64_t changed = 0;
    std::vector<std::vector<std::string>> rows{};
  };
  virtual ~shop_connection() = default;

  /// Sends one statement; each `?` is replaced with the next of the texts.
  virtual answer ask(std::string_view sql, const std::vector<std::string>& texts = {}) = 0;

  /// An "insert … values …" that leaves an existing row alone.
  virtual std::string insert_if_new(const std::string& table, const std::string& values) const = 0;
  /// The end of `create table`, so that texts are compared byte by byte.
  virtual std::string_view table_options() const = 0;
};

/// The tables of one sale on a server, with real row locks. Uncommitted changes of a connection
/// vanish with it, a little after its process: so the sale of an order is written once, whichever
/// worker retries it.
class server_shop final : public shop {
 public:
  server_shop(std::unique_ptr<shop_connection> over, const std::string& prefix);

  void create(const catalogue& all);
  void remove();

  bool claim(std::size_t product, std::uint64_t fence) override;
  seen look(std::size_t product) override;
  bool sell(const order& o, std::int64_t units, const seen& before,
            const condition& only_if) override;
  bool has_sale(const order& o) override;
  void begin() override;
  void commit() override;
  ledger audit() override;

 private:
  bool write(const order& o, std::int64_t units, const seen& before, const condition& only_if);

  std::unique_ptr<shop_connection> over_;
  const std::string product_;
  const std::string sale_;
  bool in_transaction_ = false;
};

/// Null if this program was built without the server's client library.
std::unique_ptr<shop_connection> connect_postgres(const std::string& url);
std::unique_ptr<shop_connection> connect_mariadb(const std::string& url);
bool has_postgres() noexcept;
bool has_mariadb() noexcept;

}  // namespace flash_sale
