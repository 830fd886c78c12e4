#pragma once

#include <string>
#include <vector>

#include "tool/help.hpp"

/// The grammar of the command line as data, from which the manual and the completions are made.
namespace holdfast::tool {

struct option_words {
  std::vector<std::string> names;  ///< as people write them, short ones first
  std::string type;                ///< the type of its value; empty: it takes none
  std::string text;
  std::vector<std::string> choices;  ///< all possible values; empty: too many to list
};

/// A word without a dash, at a place of its own.
struct place_words {
  std::string name;  ///< such as LOCK
  std::string text;
  bool required = false;
  bool is_name = false;  ///< the name of a lock, or of another object in the store
  std::vector<std::string> choices;
};

struct command_words {
  command_help about;
  std::vector<option_words> options;
  std::vector<place_words> places;
};

/// All commands but demo, in the order of the overview.
std::vector<command_words> whole_grammar();

/// Whether a value of that type is a file of the user's.
bool is_path(const option_words& o);

}  // namespace holdfast::tool
