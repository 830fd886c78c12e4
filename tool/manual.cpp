#include "tool/manual.hpp"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "tool/cli_words.hpp"
#include "tool/commands.hpp"
#include "tool/failure.hpp"
#include "tool/nearest.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

/// Escapes a text so that scdoc prints exactly it. A line that begins with a hyphen would be a list
/// entry.
std::string scdoc_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool begins_line = out.ends_with('\n');
    if (std::string_view("\\*_#[]~`|<>.").find(c) != std::string_view::npos ||
        (c == '-' && begins_line)) {
      out += '\\';
    }
    out += c;
  }
  return out;
}

std::string literal_block(std::string_view text) { return "```\n" + std::string(text) + "```\n"; }

std::string page_heading(std::string_view page) {
  return std::string(page) + "(1) \"holdfast " HOLDFAST_VERSION "\" \"holdfast\"\n";
}

/// A summary in the form of the NAME section: "runs a command".
std::string summary_of(const command_help& c) {
  std::string text(c.summary);
  text.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(text.front())));
  if (text.ends_with('.')) text.pop_back();
  return scdoc_text(text);
}

std::string page_section(std::string_view name, const std::string& text) {
  return text.empty() ? "" : "\n# " + std::string(name) + "\n\n" + text;
}

/// The parts of a footer, which are separated by empty lines.
std::vector<std::string> footer_paragraphs(std::string_view footer) {
  std::vector<std::string> all;
  std::istringstream in{std::string(footer)};
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && !inside) all.emplace_back();
    if (!line.empty()) all.back() += line + '\n';
    inside = !line.empty();
  }
  return all;
}

/// The text of --help below its options, sorted by subject.
struct footer_parts {
  std::string description, examples, exit_status;
  explicit footer_parts(std::string_view footer) {
    constexpr std::string_view example_mark = "Examples:\n";
    for (const std::string& p : footer_paragraphs(footer)) {
      if (p.starts_with(example_mark)) {
        examples += literal_block(p.substr(example_mark.size()));
      } else {
        std::string& to = p.starts_with("Exit code:") ? exit_status : description;
        to += (to.empty() ? "" : "\n") + scdoc_text(p);
      }
    }
  }
};

std::string option_entry(const option_words& o) {
  std::string text;
  for (const auto& name : o.names) text += (text.empty() ? "*" : ", *") + scdoc_text(name) + '*';
  if (!o.type.empty()) text += " _" + scdoc_text(o.type) + '_';
  return text + "\n\t" + scdoc_text(o.text) + "\n\n";
}

std::string place_entry(const place_words& p) {
  std::string text = "_" + scdoc_text(p.name) + "_\n\t" + scdoc_text(p.text);
  if (!p.choices.empty() && p.name != "PAGE") {
    text += ": ";
    for (const auto& c : p.choices) text += (&c == p.choices.data() ? "" : ", ") + scdoc_text(c);
  }
  return text + "\n\n";
}

std::string command_page(const command_words& c) {
  const footer_parts parts{c.about.footer};
  std::string options;
  for (const place_words& p : c.places) options += place_entry(p);
  for (const option_words& o : c.options) options += option_entry(o);
  return page_heading(manual_page_of(c.about)) +
         page_section("NAME", manual_page_of(c.about) + " - " + summary_of(c.about) + "\n") +
         page_section("SYNOPSIS", scdoc_text(c.about.usage) + "\n") +
         page_section("DESCRIPTION",
                      scdoc_text(c.about.summary) + "\n" +
                          (parts.description.empty() ? "" : "\n" + parts.description)) +
         page_section("OPTIONS", options) + page_section("EXAMPLES", parts.examples) +
         page_section("EXIT STATUS", parts.exit_status) +
         page_section("SEE ALSO", "*holdfast*(1)\n");
}

constexpr std::string_view main_introduction =
    "*holdfast* takes locks that programs on several machines share, and shows which process "
    "holds\n"
    "them. Programs that use the library holdfast share the same locks. Each command has a page "
    "of\n"
    "its own.\n";

constexpr std::string_view main_environment =
    "*HOLDFAST\\_STORE*\n"
    "\tThe URL of the store, if *--store* is not given.\n\n"
    "*NO\\_COLOR*\n"
    "\tTurns colour off.\n\n"
    "*CLICOLOR\\_FORCE*\n"
    "\tTurns colour on, also without a terminal.\n\n"
    "*TERM*\n"
    "\tThe value _dumb_ turns colour off.\n";

constexpr std::string_view main_files =
    "_/var/tmp/holdfast-UID/locks\\.db_\n"
    "\tThe store of this user on this machine, if no other store is named.\n";

constexpr std::string_view main_exit_status =
    "0\n\tDone.\n\n"
    "64\n\tThe command line is wrong.\n\n"
    "69\n\tThe store cannot be reached or does not work.\n\n"
    "75\n\tThe lock is busy, or the wait timed out.\n\n"
    "77\n\tNot permitted.\n\n"
    "78\n\tThe configuration was refused.\n\n"
    "79\n\tThe lock was lost.\n\n"
    "125\n\tholdfast itself failed.\n\n"
    "128+N\n\tSignal N ended it.\n\n"
    "The pages of the commands list further codes.\n";

/// A command's page has such a name.
std::string hint_for(const std::string& page, const std::vector<std::string>& pages) {
  if (std::find(pages.begin(), pages.end(), "holdfast-" + page) != pages.end())
    return "; did you mean holdfast-" + page + "?";
  const std::string hint = did_you_mean(page, pages);
  return hint.empty() ? "; holdfast manual lists them" : hint;
}

std::string main_page() {
  std::string commands, pages;
  for (const command_help& c : all_commands()) {
    commands += "*holdfast " + std::string(c.name) + "*\n\t" + scdoc_text(c.summary) + "\n\n";
    pages += (pages.empty() ? "*" : ", *") + manual_page_of(c) + "*(1)";
  }
  commands += "*holdfast demo*\n\tDemonstrates what locks do; *holdfast demo --help* says more.\n";
  return page_heading("holdfast") +
         page_section("NAME", "holdfast - locks across processes and machines\n") +
         page_section("SYNOPSIS", "*holdfast* _COMMAND_ \\[_OPTIONS_\\]\n") +
         page_section("DESCRIPTION", std::string(main_introduction)) +
         page_section("COMMANDS", commands) +
         page_section("ENVIRONMENT", std::string(main_environment)) +
         page_section("FILES", std::string(main_files)) +
         page_section("EXIT STATUS", std::string(main_exit_status)) +
         page_section("SEE ALSO", pages + ", *flock*(1)\n");
}

}  // namespace

std::string manual_source(std::string_view page) {
  for (const command_words& c : whole_grammar())
    if (manual_page_of(c.about) == page) return command_page(c);
  return main_page();
}

int manual(const common_options&, const manual_options& o, log&) {
  const auto pages = manual_pages();
  if (o.page.empty()) {
    std::string all;
    for (const auto& page : pages) all += page + '\n';
    print(all);
    return exit_code::ok;
  }
  if (std::find(pages.begin(), pages.end(), o.page) == pages.end())
    throw failure_exit(exit_code::usage, "manual: '" + printable(o.page) + "' is not a page" +
                                             hint_for(o.page, pages));
  print(manual_source(o.page));
  return exit_code::ok;
}

}  // namespace holdfast::tool
