#include "tool/cli.hpp"

#include <algorithm>

#include "tool/cli_grammar.hpp"
#include "tool/failure.hpp"
#include "tool/help.hpp"
#include "tool/nearest.hpp"
#include "tool/store_url.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw failure_exit(exit_code::usage, message);
}

words names_of(const CLI::App& app) {
  words names;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // an older name
    for (const auto& l : option->get_lnames()) names.push_back("--" + l);
    for (const auto& s : option->get_snames()) names.push_back("-" + s);
  }
  return names;
}

/// `typed`: behind its -- nothing is an option.
[[noreturn]] void refuse_extra(const CLI::App& app, words extra, const words& typed) {
  if (extra.size() > 1 && extra.front() == "--") extra.erase(extra.begin());
  const auto dashes = std::find(typed.begin(), typed.end(), "--");
  const auto option = std::find_if(extra.begin(), extra.end(), [&](const std::string& w) {
    return w.starts_with('-') && std::find(dashes, typed.end(), w) == typed.end();
  });
  const std::string command = app.get_name();
  if (option != extra.end()) {
    const std::string bare = option->substr(0, option->find('='));
    const std::string hint = did_you_mean(bare, names_of(app));
    refuse("'" + quotable(bare) + "' is not an option of " + command +
           (hint.empty() ? "; " + command + " --help lists them" : hint));
  }
  const std::string fix =
      command == "holdfast run"
          ? "; the command comes after --: holdfast run LOCK -- " + quotable(extra.front()) + " …"
          : "; " + command + " --help shows how it is written";
  refuse("'" + quotable(extra.front()) + "' is one word too many" + fix);
}

/// CLI11's messages may have several lines; people get one.
std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

void parse_words(grammar& g, const words& before_dashes) {
  std::vector<const char*> argv{"holdfast"};
  for (const auto& w : before_dashes) argv.push_back(w.c_str());
  try {
    g.app().parse(static_cast<int>(argv.size()), argv.data());
  } catch (const CLI::ExtrasError&) {
    refuse_extra(g.app(), g.app().remaining(), before_dashes);
  } catch (const CLI::RequiredError& e) {
    refuse(one_line(e.what()) + "; " + g.app().get_name() + " --help shows how it is written");
  }
}

}  // namespace

std::vector<std::string> option_names(const std::string& command) {
  return names_of(grammar_of(command)->app());
}

parsed parse(std::span<const std::string> arguments) {
  if (arguments.empty()) refuse("there is no command; holdfast --help lists them");
  words rest(arguments.begin() + 1, arguments.end());
  std::string name = arguments.front();
  if (name == "-V" || name == "--version") name = "version";
  if (name == "help" || name == "--help" || name == "-h") {
    if (rest.empty()) return {std::nullopt, overview()};
    return {std::nullopt, grammar_of(rest.front())->app().help()};
  }
  const auto g = grammar_of(name);
  std::optional<words> after_dashes;
  // Only the first --: the command may have its own. Other commands end their options by it.
  const auto dashes = std::find(rest.begin(), rest.end(), "--");
  if (runs_a_command(help_of(name)) && dashes != rest.end()) {
    after_dashes.emplace(dashes + 1, rest.end());
    rest.erase(dashes, rest.end());
  }
  try {
    parse_words(*g, rest);
    return {g->convert(after_dashes), {}};
  } catch (const CLI::CallForHelp&) {
    return {std::nullopt, g->app().help()};
  } catch (const CLI::ParseError& e) {
    refuse(one_line(e.what()));
  } catch (const failure_exit& e) {
    throw failure_exit(e.code(), name + ": " + e.what());
  }
}

}  // namespace holdfast::tool
