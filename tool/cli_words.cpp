#include "tool/cli_words.hpp"

#include <algorithm>
#include <sstream>

#include "tool/cli_grammar.hpp"

namespace holdfast::tool {

namespace {

/// The words of a type such as "auto|always|never"; none if there is no such choice.
words choices_of(const std::string& type) {
  if (type.find('|') == type.npos) return {};
  words all;
  std::istringstream in(type);
  for (std::string one; std::getline(in, one, '|');) all.push_back(one);
  return all;
}

option_words option_words_of(const CLI::Option& o) {
  option_words w;
  for (const auto& s : o.get_snames()) w.names.push_back("-" + s);
  for (const auto& l : o.get_lnames()) w.names.push_back("--" + l);
  if (o.get_items_expected_max() > 0) w.type = o.get_type_name();
  w.text = o.get_description();
  w.choices = choices_of(w.type);
  return w;
}

place_words place_words_of(const CLI::Option& o) {
  place_words w;
  w.name = o.get_name(true);
  w.text = o.get_description();
  w.required = o.get_required();
  w.is_name = w.name == "LOCK" || w.name == "NAME" || w.name == "PATTERN";
  w.choices = w.name == "PAGE" ? manual_pages() : choices_of(o.get_type_name());
  return w;
}

command_words words_of(const command_help& about) {
  command_words w{about, {}, {}};
  const auto g = grammar_of(std::string(about.name));
  for (const CLI::Option* o : g->app().get_options()) {
    if (o->get_positional())
      w.places.push_back(place_words_of(*o));
    else if (!o->get_group().empty())  // without a group, --help does not show it
      w.options.push_back(option_words_of(*o));
  }
  return w;
}

}  // namespace

std::vector<command_words> whole_grammar() {
  std::vector<command_words> all;
  for (const command_help& c : all_commands()) all.push_back(words_of(c));
  return all;
}

bool is_path(const option_words& o) { return o.type == "PATH"; }

}  // namespace holdfast::tool
