#include "tool/store_url.hpp"

#include <algorithm>
#include <filesystem>
#include <holdfast/session.hpp>
#include <system_error>
#include <utility>

#include "tool/percent_code.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

constexpr std::string_view takes_url[]{"--store", "--shop"};
constexpr std::size_t longest_quoted = 120;

/// The URL in `--store=URL`.
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

/// The option that the word belongs to: that of `--store=URL`, otherwise the argument before it.
std::string_view option_of(std::string_view argument, std::string_view before) {
  const auto word = value_of(argument);
  return word.size() == argument.size() ? before
                                        : argument.substr(0, argument.size() - word.size() - 1);
}

/// Encodes characters that are special in a URL or not printable.
std::string as_part_of_url(const std::string& path) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > ' ' && byte != 0x7F && std::string_view("%?#").find(c) == std::string_view::npos) {
      out += c;
    } else {
      out += {'%', digits[byte >> 4], digits[byte & 15]};
    }
  }
  return out;
}

/// Follows every link, even if the file does not exist. Behind a link, `..` is not the textual
/// parent.
std::string real_path(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code wrong;
  const fs::path whole = fs::absolute(path, wrong);
  const fs::path real = fs::weakly_canonical(whole, wrong);
  return (wrong ? whole : real).string();
}

}  // namespace

std::string scheme_of(std::string_view url) {
  std::string scheme(url.substr(0, url.find(':')));
  for (char& c : scheme)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return scheme;
}

std::optional<std::string> database_of(std::string_view url) {
  const std::string scheme = scheme_of(url);
  if (scheme != "sqlite" || scheme.size() == url.size()) return std::nullopt;
  if (url.ends_with(' ')) return std::nullopt;  // the library reports what is wrong with it
  const auto rest = url.substr(scheme.size() + 1);
  auto path = percent_decoded(rest.substr(0, rest.find('?')));
  if (path && path->starts_with("///")) path->erase(0, 2);
  if (!path || path->empty() || path->starts_with("//") || path->starts_with("~/"))
    return std::nullopt;
  return path;
}

std::string url_for_others(std::string_view url) {
  std::string out = without_secrets(url);
  if (const auto file = database_of(out)) {
    const auto options = std::min(out.find('?'), out.size());
    return "sqlite:" + as_part_of_url(real_path(*file)) + out.substr(options);
  }
  if (scheme_of(out) != "file" || out.substr(std::min<std::size_t>(5, out.size())).starts_with('/'))
    return out;
  std::error_code error;
  const auto folder = std::filesystem::current_path(error);
  return "file:" + as_part_of_url(folder.string()) + '/' + out.substr(5);
}

std::string url_for_people(std::string_view url) { return url_for_others(url_of_store(url)); }

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
