#include "store/redis/keys.hpp"

#include <algorithm>

namespace holdfast::store::redis {

namespace {

void append_tag(std::string& to, std::string_view name) {
  for (const char c : name) {
    if (c == '}')
      to += "%7D";
    else if (c == '%')
      to += "%25";
    else
      to += c;
  }
}

}  // namespace

std::string hash_tag(std::string_view name) {
  std::string tag;
  append_tag(tag, name);
  return tag;
}

name_keys::name_keys(std::string_view prefix, std::string_view name) {
  std::string& record = keys_[0];
  record.reserve(prefix.size() + name.size() + 8);
  record += prefix;
  record += ":{";
  append_tag(record, name);
  record += '}';
  constexpr std::array<std::string_view, count> suffixes{"", ":d", ":q", ":p", ":l"};
  for (std::size_t i = 1; i < count; ++i) {
    keys_[i].reserve(record.size() + 2);
    keys_[i] += record;
    keys_[i] += suffixes[i];
  }
}

std::string bucket_key(std::string_view record, std::string_view id) {
  std::string key;
  key.reserve(record.size() + id.size() + 4);
  key += record;
  key += ":b:";
  key += id;
  key += ':';
  return key;
}

std::string bucket_prefix(std::string_view prefix, std::string_view name) {
  std::string begins = bucket_key(name_keys(prefix, name)[0], "");
  begins.pop_back();  // the colon that ends a key
  return begins;
}

std::string id_of_bucket(std::string_view key, std::string_view begins) {
  key.remove_prefix(std::min(begins.size(), key.size()));
  if (key.ends_with(':')) key.remove_suffix(1);
  return std::string(key);
}

std::string escaped_for_match(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (std::string_view("*?[]\\^-").find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string name_of_key(std::string_view key) {
  const auto open = key.find(":{");
  if (open == key.npos || !key.ends_with('}')) return {};
  key = key.substr(open + 2, key.size() - open - 3);
  std::string name;
  while (!key.empty()) {
    const auto plain = key.substr(0, key.find('%'));
    name += plain;
    key.remove_prefix(plain.size());
    if (key.starts_with("%7D"))
      name += '}';
    else if (key.starts_with("%25"))
      name += '%';
    else if (!key.empty())
      return {};
    key.remove_prefix(std::min<std::size_t>(3, key.size()));
  }
  return name;
}

}  // namespace holdfast::store::redis
