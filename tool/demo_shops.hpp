#pragma once

#include <memory>
#include <string>

#include "examples/shop/shop.hpp"

namespace holdfast::tool::demo {

using namespace flash_sale;

/// Where a shop is: `sqlite:FILE`, or a database server and the prefix of the table names.
struct shop_place {
  std::string url;
  std::string prefix{};
};

/// Throws failure_exit if no shop can be at the URL, or this program cannot use it.
void check_shop_url(const std::string& url);

/// Creates the tables, with the products of the catalogue.
void create_shop(const shop_place& at, const catalogue& all);
std::unique_ptr<shop> open_shop(const shop_place& at);
/// Drops the tables on a server; a file stays.
void remove_shop(const shop_place& at);

}  // namespace holdfast::tool::demo
