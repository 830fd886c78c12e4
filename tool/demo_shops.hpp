#pragma once

#include <memory>
#include <string>

#include "examples/shop/shop.hpp"

namespace holdfast::tool::demo {

using namespace flash_sale;

/// Where a shop is: `sqlite:FILE`, or a database server and what the names of its tables begin
/// with.
struct shop_place {
  std::string url;
  std::string prefix{};
};

/// Throws failure_exit if no shop can be where the URL says, or this program cannot go there.
void check_shop_url(const std::string& url);

/// Makes the tables, with the products of the catalogue.
void create_shop(const shop_place& at, const catalogue& all);
std::unique_ptr<shop> open_shop(const shop_place& at);
/// On a server the tables go; a file stays.
void remove_shop(const shop_place& at);

}  // namespace holdfast::tool::demo
