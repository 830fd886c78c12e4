#include "tool/completion.hpp"

#include <fcntl.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <exception>

#include "tool/commands.hpp"
#include "tool/fd.hpp"
#include "tool/listed_name.hpp"
#include "tool/open_store.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

constexpr suseconds_t longest_wait_us = 500'000;

/// The user waits for the next letter: no names are better than late ones.
void give_up_in_time() {
  struct sigaction action{};
  action.sa_handler = [](int) { ::_exit(exit_code::ok); };
  ::sigaction(SIGALRM, &action, nullptr);
  const itimerval in_time{{0, 0}, {0, longest_wait_us}};
  ::setitimer(ITIMER_REAL, &in_time, nullptr);
}

std::string names_that_begin_with(const session& s, std::string_view typed, bool for_bash) {
  bash_word word{std::string(typed)};
  if (for_bash) {
    const auto read = read_bash_word(typed);
    if (!read) return {};
    word = *read;
  }
  std::string out;
  for (const auto& name : names_in_use(s, word.text + "*")) {
    if (!name.starts_with(word.text) || name.starts_with('-') || escaped(name) != name) continue;
    const auto shown = for_bash ? bash_completion_of(name, word.quote) : name;
    if (shown) out += *shown + '\n';
  }
  return out;
}

}  // namespace

std::optional<bash_word> read_bash_word(std::string_view typed) {
  bash_word word;
  if (!typed.empty() && (typed.front() == '\'' || typed.front() == '"')) {
    word.quote = typed.front();
    typed.remove_prefix(1);
  }
  for (std::size_t i = 0; i < typed.size(); ++i) {
    const char c = typed[i];
    if (c == word.quote && i + 1 == typed.size()) break;  // closed already
    const bool plain = word.quote == '\'';
    if (!plain && (c == '$' || c == '`')) return std::nullopt;
    if (c == '\'' && word.quote == 0) return std::nullopt;
    if (c == '"' && !plain) return std::nullopt;
    if (c == word.quote) return std::nullopt;
    if (c != '\\' || plain) {
      word.text += c;
    } else if (i + 1 < typed.size()) {
      word.text += typed[++i];
    }
  }
  return word;
}

std::optional<std::string> bash_completion_of(const std::string& name, char quote) {
  const std::string_view breaks = quote == '"' ? "\"$`\\!" : "'";
  if (quote != 0)
    return name.find_first_of(breaks) == name.npos ? std::optional(name) : std::nullopt;
  constexpr std::string_view harmless = "_./:@%+,=-";
  std::string out;
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    const bool beyond_ascii = (static_cast<unsigned char>(c) & 0x80U) != 0;
    if (!letter && !beyond_ascii && harmless.find(c) == harmless.npos) out += '\\';
    out += c;
  }
  return out;
}

int completion(const common_options& common, const completion_options& o, log&) {
  if (o.what != "names") {
    print(completion_script(o.what));
    return exit_code::ok;
  }
  give_up_in_time();
  // A message would appear in the middle of the line.
  const unique_fd nowhere{::open("/dev/null", O_WRONLY | O_CLOEXEC)};
  log silent{common, nowhere.get()};
  // The Tab key must not create a file: a file that does not exist has no names.
  if (lacks_database(common)) return exit_code::ok;
  try {
    const opened_store s = open_to_read(common, silent);
    print(names_that_begin_with(s.session, o.word, o.for_bash));
  } catch (const std::exception&) {
    return exit_code::ok;
  }
  // Closing the session on a store that is away must not delay the shell.
  leave_at_once(exit_code::ok);
}

}  // namespace holdfast::tool
