#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "tool/cli.hpp"
#include "tool/commands.hpp"
#include "tool/demo.hpp"
#include "tool/failure.hpp"
#include "tool/fd.hpp"
#include "tool/store_url.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

int perform(const command& c, log& to) {
  return std::visit(
      [&](const auto& o) {
        using options = std::decay_t<decltype(o)>;
        if constexpr (std::is_same_v<options, run_options>) return run(c.common, o, to);
        if constexpr (std::is_same_v<options, hold_options>) return hold(c.common, o, to);
        if constexpr (std::is_same_v<options, try_options>) return try_lock(c.common, o, to);
        if constexpr (std::is_same_v<options, list_options>) return list(c.common, o, to);
        if constexpr (std::is_same_v<options, show_options>) return show(c.common, o, to);
        if constexpr (std::is_same_v<options, limit_options>) return limit(c.common, o, to);
        if constexpr (std::is_same_v<options, meet_options>) return meet(c.common, o, to);
        if constexpr (std::is_same_v<options, top_options>) return top(c.common, o, to);
        if constexpr (std::is_same_v<options, watch_options>) return watch(c.common, o, to);
        if constexpr (std::is_same_v<options, graph_options>) return graph(c.common, o, to);
        if constexpr (std::is_same_v<options, manual_options>) return manual(c.common, o, to);
        if constexpr (std::is_same_v<options, completion_options>)
          return completion(c.common, o, to);
        if constexpr (std::is_same_v<options, serve_options>) return serve(c.common, o, to);
        if constexpr (std::is_same_v<options, ping_options>) return ping(c.common, o, to);
        if constexpr (std::is_same_v<options, doctor_options>) return doctor(c.common, o, to);
        if constexpr (std::is_same_v<options, scrape_options>) return scrape(c.common, o, to);
        if constexpr (std::is_same_v<options, version_options>) return version(c.common, o, to);
        if constexpr (std::is_same_v<options, force_unlock_options>)
          return force_unlock(c.common, o, to);
      },
      c.what);
}

int main_of(const std::vector<std::string>& arguments) {
  try {
    const parsed p = parse(arguments);
    if (!p.command) {
      print(p.help);
      return exit_code::ok;
    }
    log to{p.command->common, 2};
    return reported(to, [&] { return perform(*p.command, to); });
  } catch (const failure_exit&) {
    log to{common_options{}, 2};
    return reported(to, []() -> int { throw; });
  }
}

}  // namespace

}  // namespace holdfast::tool

int main(int argc, char** argv) {
  const std::span<char* const> all(argv, static_cast<std::size_t>(argc));
  const auto given = all.subspan(argc > 0 ? 1 : 0);
  if (!given.empty() && std::string_view(given.front()) == "demo")
    return demo_main(given.subspan(1));
  holdfast::tool::fill_standard_files();
  holdfast::tool::note_inherited_files();
  const std::vector<std::string> arguments(given.begin(), given.end());
  holdfast::tool::blank_secrets(given);
  return holdfast::tool::main_of(arguments);
}
