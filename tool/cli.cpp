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

/// Hints at options that other commands, or flock(1), have.
std::string hint_for(const std::string& command, const std::string& option, const words& known) {
  const bool at_once = option == "-n" || option == "--nonblock" || option == "--nb";
  if (at_once && command == "holdfast elect") return "; -w 0 is one try";
  return did_you_mean(option, known);
}

const command_help& about(const CLI::App& app) {
  const std::string name = app.get_name();
  return help_of(name.substr(name.find(' ') + 1));
}

/// The remedy for a word for which there is no place.
std::string fix_of(const CLI::App& app, const std::string& word) {
  const std::string usage(about(app).usage), command = app.get_name();
  if (runs_a_command(about(app))) {
    return "the command comes after --: " + usage.substr(0, usage.find(" [OPTIONS]")) + " -- " +
           word + " …";
  }
  if (usage.find("[PATTERN]") != usage.npos)
    return "quote a pattern, or the shell may replace it: " + command + " 'shop:*'";
  return command + " --help shows how it is written";
}

/// `typed`: after its -- nothing is an option.
[[noreturn]] void refuse_extra(const CLI::App& app, words extra, const words& typed) {
  if (extra.size() > 1 && extra.front() == "--") extra.erase(extra.begin());
  const auto dashes = std::find(typed.begin(), typed.end(), "--");
  const auto option = std::find_if(extra.begin(), extra.end(), [&](const std::string& w) {
    return w.starts_with('-') && std::find(dashes, typed.end(), w) == typed.end();
  });
  const std::string command = app.get_name();
  if (option != extra.end()) {
    const std::string bare = option->substr(0, option->find('='));
    const std::string hint = hint_for(command, bare, names_of(app));
    refuse("'" + quotable(bare) + "' is not an option of " + command +
           (hint.empty() ? "; " + command + " --help lists them" : hint));
  }
  const std::string word = quotable(extra.front());
  refuse("'" + word + "' is one word too many; " + fix_of(app, word));
}

/// Rewrites CLI11's "--wait: 1 required DURATION missing".
std::string without_its_value(const std::string& said, const std::string& command) {
  constexpr std::string_view before = ": 1 required ", behind = " missing";
  const auto from = said.find(before), to = said.rfind(behind);
  if (from == said.npos || to == said.npos || to < from + before.size()) return said;
  const std::string type = said.substr(from + before.size(), to - from - before.size());
  return said.substr(0, from) + ": its " + type + " is missing; holdfast " + command +
         " --help shows how it is written";
}

/// Where a word is missing, an unknown option may have been meant as the name.
std::string how_to_write(const CLI::App& app) {
  const words rest = app.remaining();
  const auto name = std::find_if(rest.begin(), rest.end(), [](const std::string& w) {
    return w.size() > 1 && w.starts_with('-') && w != "--";
  });
  const std::string command = app.get_name();
  if (name == rest.end()) return command + " --help shows how it is written";
  const bool runs = runs_a_command(about(app));
  return "put -- before a name that begins with -: " + command + " -- -NAME" +
         (runs ? " -- CMD ARG…" : "");
}

void parse_app(grammar& g, const words& before_dashes) {
  std::vector<const char*> argv{"holdfast"};
  for (const auto& w : before_dashes) argv.push_back(w.c_str());
  g.app().parse(static_cast<int>(argv.size()), argv.data());
}

void parse_words(grammar& g, const words& before_dashes) {
  try {
    parse_app(g, before_dashes);
  } catch (const CLI::ExtrasError&) {
    refuse_extra(g.app(), g.app().remaining(), before_dashes);
  } catch (const CLI::RequiredError& e) {
    refuse(one_line(e.what()) + "; " + how_to_write(g.app()));
  }
}

/// How many words without a dash the command needs.
std::size_t places_of(const CLI::App& app) {
  const auto options = app.get_options();
  return static_cast<std::size_t>(
      std::count_if(options.begin(), options.end(),
                    [](const CLI::Option* o) { return o->get_positional() && o->get_required(); }));
}

/// Whether a required word is missing, and whether -c gives the command if nothing else does.
struct gap {
  bool open = false;
  bool has_command = false;
};

gap gap_in(grammar& g, const words& before_dashes) {
  try {
    parse_app(g, before_dashes);
  } catch (const CLI::RequiredError&) {
    const auto* const shell = g.app().get_option_no_throw("--command");
    return {true, shell != nullptr && shell->count() > 0};
  } catch (const CLI::Error&) {  // reported by the final parse
  }
  return {};
}

/// The words before the command to run, and the command; no command if there is no -- before it.
struct parts {
  words before;
  std::optional<words> command;
};

// Splits at the first -- only: the command may have its own. If the name does not come before it,
// this -- ends the options, as it does for the other commands: the name comes next, and another --
// precedes the command.
parts parts_of(const std::string& name, const words& all) {
  const auto dashes = std::find(all.begin(), all.end(), "--");
  if (!runs_a_command(help_of(name)) || dashes == all.end()) return {all, std::nullopt};
  parts p{{all.begin(), dashes}, words{dashes + 1, all.end()}};
  const auto g = grammar_of(name);
  const std::size_t places = places_of(g->app());
  const bool again = p.command->size() > places && (*p.command)[places] == "--";
  if (!again && p.command->size() != places) return p;
  const gap found = gap_in(*g, p.before);
  if (!found.open || again == found.has_command) return p;
  const auto names_end = dashes + 1 + static_cast<std::ptrdiff_t>(places);
  p.before.assign(all.begin(), names_end);
  p.command.reset();
  if (again) p.command.emplace(names_end + 1, all.end());
  return p;
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
  const parts typed = parts_of(name, rest);
  try {
    parse_words(*g, typed.before);
    return {g->convert(typed.command), {}};
  } catch (const CLI::CallForHelp&) {
    return {std::nullopt, g->app().help()};
  } catch (const CLI::ArgumentMismatch& e) {
    refuse(name + ": " + without_its_value(one_line(e.what()), name));
  } catch (const CLI::ParseError& e) {
    refuse(name + ": " + one_line(e.what()));
  } catch (const failure_exit& e) {
    throw failure_exit(e.code(), name + ": " + e.what());
  }
}

}  // namespace holdfast::tool
