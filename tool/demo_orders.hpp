#pragma once

#include <filesystem>
#include <stdexcept>

#include "examples/shop/orders.hpp"

namespace holdfast::tool::demo {

using namespace flash_sale;

/// A file that cannot be read or makes no sense; the message says which, where and why.
struct bad_file : std::runtime_error {
  using runtime_error::runtime_error;
};

/// Reads `product_id,stock` and `order_id,customer,product_id,quantity`, each below a header row.
/// Throws bad_file with the line number.
catalogue read_catalogue(const std::filesystem::path& stock, const std::filesystem::path& orders);

}  // namespace holdfast::tool::demo
