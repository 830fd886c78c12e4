#include "fuzz/input.hpp"
#include "store/sql/notification_text.hpp"

// A line that another process has sent: what is understood is what is written again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace holdfast::store::sql;
  const auto line = fuzz::text_of(data, size);
  const auto read = decode(line);
  if (!read) return 0;
  const std::string again = encode(*read);
  fuzz::require(again.ends_with('\n') && decode(again.substr(0, again.size() - 1)) == read);
  return 0;
}
