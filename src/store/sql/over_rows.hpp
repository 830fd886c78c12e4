#pragma once

#include "store/sql/row_store.hpp"

namespace holdfast::store::sql {

/// How many notifications by itself a session keeps whose waiters poll.
inline constexpr std::size_t most_own_notifications = 1000;

/// The common part of all stores whose records are rows.
class over_rows : public state_store {
 public:
  status transact(std::string_view name, transition& change) final {
    const step one{name, &change};
    return std::move(rows().transact(std::span(&one, 1)).front());
  }
  std::vector<status> transact(std::span<const step> steps) final { return rows().transact(steps); }
  status transact_together(std::span<const step> steps, const judge& after) final {
    return rows().transact_together(steps, after);
  }
  result<std::vector<entry>> entries() final { return rows().entries(); }
  result<std::vector<entry>> walk(std::string_view behind, std::size_t most) final {
    return rows().walk(behind, most);
  }
  result<moment> time() final { return rows().time(); }
  result<store::identity> identify() final {
    auto id = rows().with_link([](row_link& l, boot_time by) { return l.id_of_tables(by); });
    if (!id) return std::move(id.error());
    return store::identity{id->empty() ? std::string(url()) : std::move(*id), {}};
  }
  result<store::facts> facts() final {
    return rows().with_link([](row_link& l, boot_time by) { return l.facts(by); });
  }

 private:
  virtual row_store& rows() noexcept = 0;
};

}  // namespace holdfast::store::sql
