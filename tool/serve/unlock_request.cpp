#include "tool/serve/unlock_request.hpp"

#include <nlohmann/json.hpp>

namespace holdfast::tool {

std::optional<unlock_request> unlock_request_of(const std::string& body) {
  const auto j = nlohmann::json::parse(body, nullptr, false);
  if (!j.is_object()) return std::nullopt;
  const auto text = [&](const char* key) -> std::optional<std::string> {
    const auto at = j.find(key);
    if (at == j.end()) return std::string{};
    if (!at->is_string()) return std::nullopt;
    return at->get<std::string>();
  };
  const auto lock = text("lock"), owner = text("owner"), reason = text("reason");
  if (!lock || lock->empty() || !owner || !reason) return std::nullopt;
  return unlock_request{*lock, *owner, *reason};
}

}  // namespace holdfast::tool
