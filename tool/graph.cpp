#include <vector>

#include "tool/commands.hpp"
#include "tool/json.hpp"
#include "tool/listed_name.hpp"
#include "tool/open_store.hpp"
#include "tool/text.hpp"
#include "tool/wait_graph.hpp"

namespace holdfast::tool {

int graph(const common_options& common, const graph_options& o, log& to) {
  const auto [s, url] = open_to_read(common, to);
  auto found = look_up(s, {.pattern = o.pattern});
  if (!s.can().lists_waiters)
    to.write(level::warning, "no_waiters",
             "the store " + url + " does not say which process waits: the graph is empty");
  const int code = reading_code(found);
  std::vector<name_info> names;
  for (listed_name& one : found) {
    if (!one.error.empty())
      to.write(level::warning, "unreadable", printable(one.info.name) + ": " + one.error);
    names.push_back(std::move(one.info));
  }
  const wait_graph g = make_wait_graph(names, pids_above_here);
  const auto now = std::chrono::system_clock::now();
  print(common.json ? graph_json(g, url, now)
        : o.dot     ? graph_dot(g)
                    : graph_text(g, now, o.pattern));
  return code;
}

}  // namespace holdfast::tool
