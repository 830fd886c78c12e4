#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tool/cli_words.hpp"
#include "tool/completion.hpp"

namespace holdfast::tool {

namespace {

/// Commands without a grammar here.
constexpr std::string_view other_commands[]{"demo", "help"};

std::string joined_words(std::span<const std::string> all, std::string_view between) {
  std::string text;
  for (const auto& one : all) text += (text.empty() ? "" : std::string(between)) + one;
  return text;
}

std::string choice_text(const std::vector<std::string>& choices) {
  return joined_words(choices, "|");
}

/// The commands that run what follows --.
std::string names_that_run(std::span<const command_words> grammar, std::string_view between) {
  std::vector<std::string> all;
  for (const command_words& c : grammar)
    if (runs_a_command(c.about)) all.emplace_back(c.about.name);
  return joined_words(all, between);
}

// ---- bash

constexpr std::string_view bash_begin = R"shell(# bash completion for holdfast
# made by: holdfast completion bash

# The words of a command: its options, those with a value, and what is at its places.
_holdfast_grammar() {
  case $1 in
)shell";

constexpr std::string_view bash_end = R"shell(    *) return 1 ;;
  esac
}

# Adds those words that begin with what is typed. Bash replaces only what follows the last : or =.
_holdfast_offer() {
  local word
  for word; do
    [[ $word == "$cur"* ]] && COMPREPLY+=("${word:${#cut}}")
  done
}

_holdfast_files() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen "$1" -- "$2")
}

# The program quotes the names, and ends after half a second.
_holdfast_names() {
  local name program=holdfast
  if [[ $store =~ ^\"?\$\{?([A-Za-z_][A-Za-z_0-9]*)\}?\"?$ ]]; then
    store=${!BASH_REMATCH[1]}
  elif [[ $store == \'*\' || $store == \"*\" ]]; then
    store=${store:1:${#store}-2}
  fi
  [[ $store == *[\$\`\\\"\']* ]] && return
  type -P -- "$1" >/dev/null && program=$1
  while IFS= read -r name; do
    [[ $name == "$cut"* ]] && COMPREPLY+=("${name:${#cut}}")
  done < <(HOLDFAST_STORE=${store:-$HOLDFAST_STORE} command "$program" completion names --bash -- "$cur" 2>/dev/null)
}

_holdfast() {
  local rest=${COMP_LINE:0:COMP_POINT} part i n=-1 typed=()
  COMPREPLY=()
  # Bash takes names and URLs apart at : and =. Here they are in one piece.
  for ((i = 0; i <= COMP_CWORD; i++)); do
    if ((n < 0)) || [[ $rest == [[:space:]]* ]]; then
      typed[++n]=
      rest=${rest#"${rest%%[![:space:]]*}"}
    fi
    part=${COMP_WORDS[i]:0:${#rest}}
    typed[n]+=$part
    rest=${rest:${#part}}
  done

  local cur=${typed[n]} cut= options= valued= choices= files= places= runs= commands=
  if [[ $cur != [\'\"]* ]]; then
    [[ $COMP_WORDBREAKS == *:* && $cur == *:* ]] && cut=${cur%"${cur##*:}"}
    if [[ $COMP_WORDBREAKS == *=* && $cur == *=* ]]; then
      part=${cur%"${cur##*=}"}
      ((${#part} > ${#cut})) && cut=$part
    fi
  fi
  _holdfast_grammar commands
  if ((n == 1)); then
    _holdfast_offer $commands
    return
  fi
  if [[ ${typed[1]} == help ]]; then
    ((n == 2)) && _holdfast_offer $commands
    return
  fi
  _holdfast_grammar "${typed[1]}" || return

  local option= place=0 store= literal=
  for ((i = 2; i < n; i++)); do
    part=${typed[i]}
    if [[ $option ]]; then
      [[ $option == --store ]] && store=$part
      option=
    elif [[ $part == -- && ! $literal ]]; then
      if [[ $runs ]]; then
        if ((i + 1 == n)); then _holdfast_files -c "$cur"; else _holdfast_files -f "$cur"; fi
        return
      fi
      literal=1
    elif [[ $literal || $part != -* ]]; then
      ((++place))
    elif [[ $part == --store=* ]]; then
      store=${part#*=}
    elif [[ $valued == *" $part "* ]]; then
      option=$part
    fi
  done

  local value=$cur before=
  if [[ ! $option && ! $literal && $cur == --*=* ]]; then
    option=${cur%%=*} value=${cur#*=} before=$option=
  fi
  if [[ $option ]]; then
    for part in $choices; do
      [[ $part == "$option="* ]] || continue
      part=${part#*=}
      for part in ${part//|/ }; do _holdfast_offer "$before$part"; done
    done
    [[ $files == *" $option "* ]] && _holdfast_files -f "$value"
  elif [[ $cur == -* && ! $literal ]]; then
    _holdfast_offer $options
  else
    part=($places)
    part=${part[place]}
    case $part in
      names) _holdfast_names "$1" ;;
      ?*'|'*) _holdfast_offer ${part//|/ } ;;
    esac
  fi
}

complete -F _holdfast holdfast
)shell";

/// The possible words at a place, as a word of the script: `names`, `a|b`, or - for anything else.
std::string bash_place(const place_words& p) {
  if (p.is_name) return "names";
  return p.choices.empty() ? "-" : choice_text(p.choices);
}

std::string bash_assignment(std::string_view variable, const std::string& value) {
  return value.empty() ? "" : "      " + std::string(variable) + "='" + value + "'\n";
}

std::string bash_case(const command_words& c) {
  std::vector<std::string> all;
  std::string valued, choices, files, places;
  for (const option_words& o : c.options) {
    all.insert(all.end(), o.names.begin(), o.names.end());
    for (const auto& name : o.names) {
      if (!o.type.empty()) valued += ' ' + name;
      if (!o.choices.empty()) choices += ' ' + name + '=' + choice_text(o.choices);
      if (is_path(o)) files += ' ' + name;
    }
  }
  for (const place_words& p : c.places) places += ' ' + bash_place(p);
  const auto between_blanks = [](std::string s) { return s.empty() ? s : s + ' '; };
  return "    " + std::string(c.about.name) + ")\n" +
         bash_assignment("options", joined_words(all, " ")) +
         bash_assignment("valued", between_blanks(valued)) + bash_assignment("choices", choices) +
         bash_assignment("files", between_blanks(files)) + bash_assignment("places", places) +
         bash_assignment("runs", runs_a_command(c.about) ? "1" : "") + "      ;;\n";
}

std::string bash_script(std::span<const command_words> grammar) {
  std::string commands, cases;
  for (const command_words& c : grammar) {
    commands += std::string(c.about.name) + ' ';
    cases += bash_case(c);
  }
  for (const auto other : other_commands) commands += std::string(other) + ' ';
  commands.pop_back();
  return std::string(bash_begin) + "    commands) commands='" + commands + "' ;;\n" + cases +
         std::string(bash_end);
}

// ---- zsh

constexpr std::string_view zsh_begin = R"shell(#compdef holdfast
# zsh completion for holdfast
# made by: holdfast completion zsh

# The program ends after half a second.
_holdfast_names() {
  local store=${(Q)${opt_args[--store]//\\:/:}} expl
  local -a names
  if [[ $store =~ '^\$\{?([A-Za-z_][A-Za-z_0-9]*)\}?$' ]]; then
    store=${(P)match[1]}
  elif [[ $store == *[\$\`]* ]]; then
    return 1
  fi
  names=(${(f)"$(HOLDFAST_STORE=${store:-$HOLDFAST_STORE} command holdfast completion names -- "${(Q)PREFIX}" 2>/dev/null)"})
  _wanted names expl 'name in use' compadd -a names
}

_holdfast() {
  local curcontext=$curcontext state line
  local -A opt_args
  local -a known
  known=(
)shell";

/// The text quoted as one word of zsh.
std::string single_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// Escapes the characters that are special in a specification of _arguments.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_action(const std::vector<std::string>& choices, bool names, bool path) {
  if (!choices.empty()) return '(' + joined_words(choices, " ") + ')';
  if (names) return "_holdfast_names";
  return path ? "_files" : " ";
}

std::string zsh_options(const command_words& c) {
  std::string out;
  for (const option_words& o : c.options) {
    const bool repeats = o.type == "RATE";
    const std::string others = repeats ? "*" : '(' + joined_words(o.names, " ") + ')';
    for (const auto& name : o.names) {
      const bool is_long = name.starts_with("--");
      std::string spec = others + name;
      if (!o.type.empty()) spec += is_long ? "=" : "+";
      spec += '[' + zsh_text(o.text) + ']';
      if (!o.type.empty())
        spec += ':' + zsh_text(o.type) + ':' + zsh_action(o.choices, false, is_path(o));
      out += " \\\n        " + single_quoted(spec);
    }
  }
  return out;
}

std::string zsh_case(const command_words& c) {
  std::string out =
      "    " + std::string(c.about.name) + ")\n      _arguments -s -S" + zsh_options(c);
  for (const place_words& p : c.places)
    out += " \\\n        " + single_quoted((p.required ? ":" : "::") + zsh_text(p.name) + ':' +
                                           zsh_action(p.choices, p.is_name, false));
  return out + "\n      ;;\n";
}

std::string zsh_script(std::span<const command_words> grammar) {
  std::string out(zsh_begin);
  const std::string runs = names_that_run(grammar, "|");
  for (const command_words& c : grammar)
    out += "    " + single_quoted(std::string(c.about.name) + ':' + std::string(c.about.summary)) +
           '\n';
  for (const auto other : other_commands) out += "    " + std::string(other) + '\n';
  out +=
      "  )\n"
      "  if ((CURRENT == 2)) || [[ $words[2] == help ]]; then\n"
      "    _describe -t commands 'holdfast command' known\n"
      "    return\n"
      "  fi\n"
      "  shift words\n"
      "  ((CURRENT--))\n"
      "  integer dashes=${words[(ie)--]}\n"
      "  if ((dashes < CURRENT)) && [[ $words[1] == (" +
      runs +
      ") ]]; then\n"
      "    shift dashes words\n"
      "    ((CURRENT -= dashes))\n"
      "    _normal\n"
      "    return\n"
      "  fi\n"
      "  case $words[1] in\n";
  for (const command_words& c : grammar) out += zsh_case(c);
  return out +
         "  esac\n"
         "}\n\n"
         "if [[ $funcstack[1] == _holdfast ]]; then _holdfast \"$@\"; else compdef _holdfast "
         "holdfast; fi\n";
}

// ---- fish

constexpr std::string_view fish_begin = R"shell(# fish completion for holdfast
# made by: holdfast completion fish

# A command is to be typed: the first word, or what help is asked about.
function __holdfast_command_wanted
    set -l typed (commandline -opc)
    test (count $typed) -eq 1; or test "$typed[2..-1]" = help
end

# __holdfast_at COMMAND [PLACE]: that command is typed, and the cursor is where its options belong, or at
# that place.
function __holdfast_at
    set -l typed (commandline -opc)
    test (count $typed) -ge 2; and test "$typed[2]" = $argv[1]; or return 1
    set -l place 1
    set -l skip 0
    set -l literal 0
    set -l valued (__holdfast_valued $argv[1])
    for word in $typed[3..-1]
        if test $skip = 1
            set skip 0
        else if test $literal = 0; and test "$word" = --
            __holdfast_runs $argv[1]; and return 1
            set literal 1
        else if test $literal = 0; and contains -- $word $valued
            set skip 1
        else if test $literal = 1; or not string match -q -- '-*' $word
            set place (math $place + 1)
        end
    end
    if set -q argv[2]
        test $skip = 0; and test $place = $argv[2]
    else
        test $literal = 0
    end
end

# The program ends after half a second.
function __holdfast_names
    set -l store $HOLDFAST_STORE
    set -l before
    for word in (commandline -opc)
        test "$before" = --store; and set store $word
        string match -q -- '--store=*' $word; and set store (string replace -- --store= '' $word)
        set before $word
    end
    string match -rq '^\$\w+$' -- "$store"; and set -l variable (string sub -s 2 -- $store); and set store $$variable
    set -l token (commandline -ct)
    HOLDFAST_STORE=$store command holdfast completion names -- (string unescape -- $token; or echo $token) 2>/dev/null
end

# What follows the -- of some commands is a command line of its own.
function __holdfast_after_dashes
    set -l typed (commandline -opc)
    test (count $typed) -ge 2; and __holdfast_runs $typed[2]; and contains -- -- $typed[3..-1]
end
function __holdfast_command
    set -l typed (commandline -opc)
    set -l at (contains -i -- -- $typed)
    set -l own (string escape -- $typed[(math $at + 1)..-1])
    complete -C (string join -- ' ' $own (commandline -ct))
end

complete -c holdfast -f
complete -c holdfast -n __holdfast_after_dashes -a '(__holdfast_command)'
)shell";

/// fish knows \\ and \' between single quotes.
std::string fish_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string fish_option(const command_words& c, const option_words& o) {
  std::string out = "complete -c holdfast -n '__holdfast_at " + std::string(c.about.name) + "'";
  for (const auto& name : o.names)
    out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (!o.type.empty()) out += is_path(o) ? " -r -F" : " -x";
  if (!o.choices.empty()) out += " -a '" + joined_words(o.choices, " ") + "'";
  return out + " -d " + fish_quoted(o.text) + '\n';
}

/// Offers the name of a command.
std::string fish_word(const std::string& name) {
  return "complete -c holdfast -n __holdfast_command_wanted -a " + name;
}

std::string fish_command(const command_words& c) {
  const std::string name(c.about.name);
  std::string out = "\n" + fish_word(name) + " -d " + fish_quoted(c.about.summary) + '\n';
  for (std::size_t i = 0; i < c.places.size(); ++i) {
    const place_words& p = c.places[i];
    if (!p.is_name && p.choices.empty()) continue;
    out += "complete -c holdfast -n '__holdfast_at " + name + ' ' + std::to_string(i + 1) +
           "' -a " +
           (p.is_name ? "'(__holdfast_names)'" : "'" + joined_words(p.choices, " ") + "'") + '\n';
  }
  for (const option_words& o : c.options) out += fish_option(c, o);
  return out;
}

std::string fish_script(std::span<const command_words> grammar) {
  std::string out(fish_begin);
  out += "\nfunction __holdfast_runs\n    contains -- $argv[1] " + names_that_run(grammar, " ") +
         "\nend\n";
  out += "\nfunction __holdfast_valued\n    switch $argv[1]\n";
  std::string commands;
  for (const command_words& c : grammar) {
    std::string valued;
    for (const option_words& o : c.options)
      for (const auto& name : o.names)
        if (!o.type.empty()) valued += ' ' + name;
    out += "        case " + std::string(c.about.name) + "\n            string split ' ' -- '" +
           valued.substr(valued.empty() ? 0 : 1) + "'\n";
    commands += fish_command(c);
  }
  out += "    end\nend\n" + commands + '\n';
  for (const auto other : other_commands) out += fish_word(std::string(other)) + '\n';
  return out;
}

}  // namespace

std::string completion_script(std::string_view shell) {
  const auto grammar = whole_grammar();
  if (shell == "bash") return bash_script(grammar);
  return shell == "zsh" ? zsh_script(grammar) : fish_script(grammar);
}

}  // namespace holdfast::tool
