#include "tool/demo_orders.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <fstream>
#include <functional>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <unordered_set>

#include "tool/text.hpp"

namespace holdfast::tool::demo {
namespace {

constexpr std::size_t max_orders = 1'000'000;
constexpr std::size_t max_products = 10'000;
constexpr std::int64_t max_units = 1'000'000;

using row = std::vector<std::string_view>;

/// A value in printable form: short, and without cursor movements.
std::string shown(std::string_view value) { return "'" + shortened(printable(value), 40) + "'"; }

/// One file of comma-separated values; tracks its position for messages.
class table {
 public:
  table(const std::filesystem::path& path, std::string_view header)
      : path_{path.string()}, header_{header}, columns_{split(header).size()} {
    std::error_code why;
    if (std::filesystem::is_directory(path, why)) throw bad_file{path_ + ": is a folder"};
    in_.open(path);
    if (!in_) {
      why = {errno, std::generic_category()};
      throw bad_file{fmt::format("{}: cannot be read: {}", path_, why.message())};
    }
  }

  void each_row(const std::function<void(const row&)>& use) {
    if (!next_line())
      throw bad_file{fmt::format("{}: is empty; line 1 must be {}", path_, header_)};
    if (line_ != header_) fail("the header must be {}, not {}", header_, shown(line_));
    while (next_line()) {
      const auto fields = split(line_);
      if (fields.size() != columns_) {
        fail("{} fields instead of {} ({})", fields.size(), columns_, header_);
      }
      use(fields);
    }
    if (in_.bad()) throw bad_file{path_ + ": reading it failed half-way"};
    if (number_ == 1) throw bad_file{path_ + ": has a header and no rows"};
  }

  template <class... Parts>
  [[noreturn]] void fail(fmt::format_string<Parts...> text, Parts&&... parts) const {
    throw bad_file{
        fmt::format("{}:{}: {}", path_, number_, fmt::format(text, std::forward<Parts>(parts)...))};
  }

  std::string_view word(std::string_view value, std::string_view what) const {
    if (value.empty() || value.size() > 64) fail("the {} must have 1 to 64 characters", what);
    if (printable(value) != value || value.find('"') != value.npos) {
      fail("the {} {} holds quotes or control characters", what, shown(value));
    }
    return value;
  }

  std::int64_t number(std::string_view value, std::string_view what, std::int64_t least) const {
    std::int64_t n = 0;
    const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), n);
    if (problem != std::errc{} || end != value.data() + value.size()) {
      fail("the {} {} is not a whole number", what, shown(value));
    }
    if (n < least || n > max_units) {
      fail("the {} is {}; it must be from {} to {}", what, n, least, max_units);
    }
    return n;
  }

 private:
  static row split(std::string_view line) {
    row fields;
    for (std::size_t comma; (comma = line.find(',')) != line.npos; line.remove_prefix(comma + 1)) {
      fields.push_back(line.substr(0, comma));
    }
    fields.push_back(line);
    return fields;
  }

  bool next_line() {
    if (!std::getline(in_, line_)) return false;
    if (!line_.empty() && line_.back() == '\r') line_.pop_back();
    ++number_;
    return true;
  }

  std::string path_;
  std::string header_;
  std::size_t columns_;
  std::ifstream in_;
  std::string line_;
  std::size_t number_ = 0;
};

using index = std::unordered_map<std::string, std::size_t>;

index read_stock(const std::filesystem::path& path, catalogue& into) {
  index found;
  table file{path, "product_id,stock"};
  file.each_row([&](const row& r) {
    const auto name = file.word(r[0], "product_id");
    if (!found.try_emplace(std::string{name}, into.products.size()).second) {
      file.fail("product {} is there twice", shown(name));
    }
    if (found.size() > max_products) file.fail("more than {} products", max_products);
    into.products.push_back({std::string{name}, file.number(r[1], "stock", 0)});
  });
  return found;
}

void read_orders(const std::filesystem::path& path, const index& products, catalogue& into) {
  std::unordered_set<std::string> ids;
  table file{path, "order_id,customer,product_id,quantity"};
  file.each_row([&](const row& r) {
    const auto id = file.word(r[0], "order_id");
    if (!ids.emplace(id).second) file.fail("order {} is there twice", shown(id));
    if (ids.size() > max_orders) file.fail("more than {} orders", max_orders);
    const auto at = products.find(std::string{r[2]});
    if (at == products.end()) file.fail("there is no stock for product {}", shown(r[2]));
    const auto quantity = file.number(r[3], "quantity", 1);
    into.products[at->second].demand += quantity;
    into.orders.push_back(
        {std::string{id}, std::string{file.word(r[1], "customer")}, at->second, quantity});
  });
}

}  // namespace

catalogue read_catalogue(const std::filesystem::path& stock, const std::filesystem::path& orders) {
  catalogue all;
  // The orders first, so that a wrong name is not reported as a missing stock file beside it.
  table{orders, "order_id,customer,product_id,quantity"};
  const auto products = read_stock(stock, all);
  read_orders(orders, products, all);
  return all;
}

}  // namespace holdfast::tool::demo
