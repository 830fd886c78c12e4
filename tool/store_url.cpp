#include "tool/store_url.hpp"

#include <algorithm>
#include <filesystem>
#include <holdfast/session.hpp>
#include <system_error>
#include <utility>

#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

constexpr std::string_view takes_url[]{"--store", "--shop"};
constexpr std::size_t longest_quoted = 120;

/// `--store=URL`: the URL.
std::string_view value_of(std::string_view argument) {
  const auto equals = argument.find('=');
  const bool option = argument.starts_with("--") && equals != argument.npos;
  return option ? argument.substr(equals + 1) : argument;
}

bool is_url(std::string_view word, std::string_view before) {
  const bool named =
      std::find(std::begin(takes_url), std::end(takes_url), before) != std::end(takes_url);
  return named || word.find("://") != word.npos;
}

/// The option that the word belongs to: that of `--store=URL`, else the argument before it.
std::string_view option_of(std::string_view argument, std::string_view before) {
  const auto word = value_of(argument);
  return word.size() == argument.size() ? before
                                        : argument.substr(0, argument.size() - word.size() - 1);
}

/// What means something in a URL is written with its code; what was typed has its codes already.
std::string as_part_of_url(const std::string& folder) {
  std::string out;
  for (const char c : folder) {
    if (c == '%') {
      out += "%25";
    } else if (c == '?') {
      out += "%3F";
    } else if (c == '#') {
      out += "%23";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string scheme_of(std::string_view url) {
  std::string scheme(url.substr(0, url.find(':')));
  for (char& c : scheme)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return scheme;
}

std::string url_for_others(std::string_view url) {
  std::string out = without_secrets(url);
  const std::string scheme = scheme_of(out);
  const bool is_path = scheme == "sqlite" || scheme == "file";
  if (!is_path || out.substr(scheme.size() + 1).starts_with('/')) return out;
  std::error_code error;
  const auto folder = std::filesystem::current_path(error);
  const std::filesystem::path absolute = as_part_of_url(folder.string());
  return scheme + ':' + (absolute / out.substr(scheme.size() + 1)).string();
}

void blank_secrets(std::span<char* const> arguments) {
  std::string before;
  for (char* const argument : arguments) {
    const std::string_view whole = argument;
    if (whole == "--") break;
    const auto word = value_of(whole);
    if (is_url(word, option_of(whole, before))) {
      for (const auto secret : secrets_in(word))
        std::fill_n(argument + (secret.data() - argument), secret.size(), '*');
    }
    before = whole;
  }
}

std::string quotable(std::string_view word) {
  const auto value = value_of(word);
  const std::string_view option = word.substr(0, word.size() - value.size());
  std::string safe(option);
  safe += is_url(value, {}) ? without_secrets(value) : std::string(value);
  return printable(shortened(safe, longest_quoted));
}

}  // namespace holdfast::tool
