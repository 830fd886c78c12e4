#include "examples/shop/server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace flash_sale {
namespace {

constexpr std::size_t rows_at_once = 500;

std::int64_t number(const std::string& digits) {
  std::int64_t n = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), n);
  return n;
}

// SQL that both servers understand; numbers are written in the text, as only texts can do harm.
constexpr std::string_view sold_by_product =
    "with sold(id, units) as (select p.id, coalesce(sum(s.quantity), 0) from {0} p "
    "left join {1} s on s.product = p.id group by p.id) ";

}  // namespace

server_shop::server_shop(std::unique_ptr<shop_connection> over, const std::string& prefix)
    : over_{std::move(over)}, product_{prefix + "_product"}, sale_{prefix + "_sale"} {}

void server_shop::create(const catalogue& all) {
  over_->ask(
      fmt::format("create table {} (id integer primary key, name varchar(64) not null, "
                  "initial bigint not null, demand bigint not null, stock bigint not null, "
                  "version bigint not null default 0, lost_updates bigint not null default 0, "
                  "last_fence bigint not null default 0) {}",
                  product_, over_->table_options()));
  over_->ask(
      fmt::format("create table {} (order_id varchar(64) primary key, "
                  "customer varchar(64) not null, product integer not null, wanted bigint not null,"
                  " quantity bigint not null, fence bigint not null) {}",
                  sale_, over_->table_options()));
  for (std::size_t i = 0; i < all.products.size(); i += rows_at_once) {
    std::string rows;
    std::vector<std::string> names;
    for (std::size_t k = i; k < std::min(i + rows_at_once, all.products.size()); ++k) {
      const auto& p = all.products[k];
      rows +=
          fmt::format("{}({}, ?, {}, {}, {})", k == i ? "" : ", ", k, p.stock, p.demand, p.stock);
      names.push_back(p.name);
    }
    over_->ask(
        fmt::format("insert into {} (id, name, initial, demand, stock) values {}", product_, rows),
        names);
  }
}

void server_shop::remove() {
  for (const auto& table : {sale_, product_}) over_->ask("drop table if exists " + table);
}

// The row is locked by a connection that has written it and whose commit is on its way.
bool server_shop::claim(std::size_t product, std::uint64_t fence) {
  const auto mine = static_cast<std::int64_t>(fence);
  return over_
             ->ask(fmt::format("update {} set last_fence = {} where id = {} and last_fence < {}",
                               product_, mine, product, mine))
             .changed == 1;
}

seen server_shop::look(std::size_t product) {
  const auto found =
      over_->ask(fmt::format("select stock, version from {} where id = {}{}", product_, product,
                             in_transaction_ ? " for update" : ""));
  return {number(found.rows.at(0).at(0)), number(found.rows.at(0).at(1))};
}

bool server_shop::sell(const order& o, std::int64_t units, const seen& before,
                       const condition& only_if) {
  if (in_transaction_) return write(o, units, before, only_if);
  begin();
  const bool sold = write(o, units, before, only_if);
  if (sold) {
    commit();
  } else {
    over_->ask("rollback");
    in_transaction_ = false;
  }
  return sold;
}

// The sale first: it waits for a predecessor that died with its commit on the way, and the product
// is locked for less time. MariaDB evaluates the assignments in their order.
bool server_shop::write(const order& o, std::int64_t units, const seen& before,
                        const condition& only_if) {
  const auto fence = static_cast<std::int64_t>(only_if.fence);
  const auto inserted = over_->ask(
      over_->insert_if_new(
          sale_, fmt::format("(?, ?, {}, {}, {}, {})", o.product, o.quantity, units, fence)),
      {o.id, o.customer});
  if (inserted.changed == 0) return true;  // it was sold already
  std::string update = fmt::format(
      "update {} set lost_updates = lost_updates + case when version = {} then 0 else 1 end, "
      "stock = {}, version = version + 1, last_fence = {} where id = {}",
      product_, before.version, before.stock - units, fence, o.product);
  if (only_if.same_version) update += fmt::format(" and version = {}", before.version);
  if (fence != 0) update += fmt::format(" and last_fence <= {}", fence);
  return over_->ask(update).changed == 1;
}

bool server_shop::has_sale(const order& o) {
  return !over_->ask("select 1 from " + sale_ + " where order_id = ?", {o.id}).rows.empty();
}

void server_shop::begin() {
  over_->ask("start transaction");
  in_transaction_ = true;
}

void server_shop::commit() {
  over_->ask("commit");
  in_transaction_ = false;
}

ledger server_shop::audit() {
  const std::string sold = fmt::format(fmt::runtime(sold_by_product), product_, sale_);
  const auto totals = over_->ask(
      sold +
      "select sum(units), sum(least(initial, demand)), sum(greatest(0, units - initial)), "
      "sum(lost_updates) from " +
      product_ + " join sold using (id)");
  const auto wrong = over_->ask(
      sold + "select name, initial, demand, units, stock from " + product_ +
      " join sold using (id) where units <> least(initial, demand) or initial - stock <> units "
      "order by units - least(initial, demand) desc, name");
  const auto& sums = totals.rows.at(0);
  ledger found{number(sums.at(0)), number(sums.at(1)), number(sums.at(2)), number(sums.at(3)), {}};
  for (const auto& row : wrong.rows) {
    found.wrong.push_back(fmt::format("{}: stock {}, demand {}, sold {}, stock left {}", row.at(0),
                                      row.at(1), row.at(2), row.at(3), row.at(4)));
  }
  return found;
}

}  // namespace flash_sale
