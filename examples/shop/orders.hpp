#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace flash_sale {

struct product {
  std::string name;
  std::int64_t stock = 0;
  std::int64_t demand = 0;  ///< the demand of all orders together
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
  std::vector<order> orders;  ///< in the order of arrival
};

}  // namespace flash_sale
