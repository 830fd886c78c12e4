#include "harness/redis_rights.hpp"
#include "paths.hpp"

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace harness {

namespace {

void replace_all(std::string& in, const std::string& what, const std::string& by) {
  for (auto at = in.find(what); at != in.npos; at = in.find(what, at + by.size()))
    in.replace(at, what.size(), by);
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream words(text);
  std::vector<std::string> all;
  for (std::string word; words >> word;) all.push_back(word);
  return all;
}

}  // namespace

// Of a command: the text after the password, continued after each backslash. Of a table: | where |
// `rights` |
std::vector<std::string> documented_redis_rights(const std::string& row, const std::string& on) {
  static const std::string command = "redis-cli ACL SETUSER app reset on '>SECRET' ";
  std::ifstream page(HOLDFAST_SOURCE_DIR "/docs/stores/" + on + ".md");
  bool there = false;
  for (std::string line; std::getline(page, line);) {
    there = there || line == "## Rights";
    if (!there) continue;
    if (row == "everywhere" && line.starts_with(command)) {
      auto rights = line.substr(command.size());
      while (rights.ends_with('\\') && std::getline(page, line))
        rights.back() = ' ', rights += line;
      replace_all(rights, "'", "");
      return words_of(rights);
    }
    if (!line.starts_with("| " + row + " |")) continue;
    auto rights = line.substr(line.find('`') + 1);
    rights = rights.substr(0, rights.find('`'));
    replace_all(rights, "\\|", "|");
    return words_of(rights);
  }
  throw std::runtime_error("docs/stores/" + on + ".md has no rights for: " + row);
}

void give_documented_rights(const redis_server& to, const std::vector<std::string>& rows,
                            const std::string& prefix) {
  std::vector<std::string> all;
  for (const auto& row : rows) {
    for (auto right : documented_redis_rights(row)) {
      replace_all(right, "holdfast", prefix);
      all.push_back(right);
    }
  }
  give_just(to, all);
}

void give_just(const redis_server& to, const std::vector<std::string>& rights) {
  std::vector<std::string> words{"ACL", "SETUSER", "app", "reset", "on", ">pw"};
  words.insert(words.end(), rights.begin(), rights.end());
  if (const auto said = to.ask(words); said != "OK")
    throw std::runtime_error("the server refuses the rights: " + said);
}

std::string as_documented_user(std::string url) {
  return url.insert(url.find("//") + 2, "app:pw@");
}

}  // namespace harness
