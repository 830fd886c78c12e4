#include "tool/leader_page.hpp"

#include <holdfast/async.hpp>
#include <optional>
#include <utility>

#include "tool/json.hpp"

namespace holdfast::tool {

namespace {

http_answer answer_of(const std::string& name, const result<std::optional<leader>>& found) {
  http_answer a;
  a.status = found && *found ? 200 : 503;
  a.body = leader_json(name, found);
  return a;
}

}  // namespace

leader_page::leader_page(const std::string& address, session s, const std::string& name)
    : election_(std::move(s), name),
      server_({"--http", address}, {}, [this](const http_request&, http_reply reply) {
        async_current(election_).start([reply = std::move(reply), name = election_.name()](
                                           auto found) { reply(answer_of(name, found)); });
      }) {
  server_.start();
}

}  // namespace holdfast::tool
