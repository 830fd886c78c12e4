#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace holdfast::tool::demo {

/// A file that cannot be read or does not make sense; says which, where and why.
struct bad_file : std::runtime_error {
  using runtime_error::runtime_error;
};

struct product {
  std::string name;
  std::int64_t stock = 0;
  std::int64_t demand = 0;  ///< what all orders together want
  std::int64_t should_sell() const { return stock < demand ? stock : demand; }
};

struct order {
  std::string id;
  std::string customer;
  std::size_t product = 0;  ///< index into catalogue::products
  std::int64_t quantity = 0;
};

struct catalogue {
  std::vector<product> products;
  std::vector<order> orders;  ///< in the order in which they came in
};

/// Reads `product_id,stock` and `order_id,customer,product_id,quantity`, each below a header row.
/// Throws bad_file with the line number.
catalogue read_catalogue(const std::filesystem::path& stock, const std::filesystem::path& orders);

}  // namespace holdfast::tool::demo
