#ifdef HOLDFAST_WITH_REDIS
#include "simulation/redis_model.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <lua.hpp>
#include <stdexcept>

namespace simulation {

namespace {

using value = redis_model::value;
using holdfast::store::redis::resp_type;

/// The error answer to a command that cannot be carried out.
struct refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

value of_type(resp_type type, std::string text, std::int64_t number = 0) {
  value v;
  v.type = type;
  v.integer = number;
  v.text = std::move(text);
  return v;
}
value integer(std::int64_t n) { return of_type(resp_type::integer, {}, n); }
value bulk(std::string text) { return of_type(resp_type::bulk, std::move(text)); }
value ok() { return of_type(resp_type::simple, "OK"); }
value error(std::string text) { return of_type(resp_type::error, std::move(text)); }
value list(std::vector<value> items) {
  value v;
  v.type = resp_type::array;
  v.items = std::move(items);
  return v;
}

std::int64_t whole_number(const std::string& text) {
  std::int64_t n = 0;
  const auto [end, why] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (why != std::errc{} || end != text.data() + text.size()) {
    throw refused("ERR value is not an integer or out of range");
  }
  return n;
}

double score(const std::string& text) {
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  char* end = nullptr;
  const double n = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != 0) throw refused("ERR value is not a valid float");
  return n;
}

std::string text_of(double n) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", n);
  return text;
}

// ---- between Lua and the server

constexpr const char* self = "holdfast_model";

void push(lua_State* lua, const value& v) {
  switch (v.type) {
    case resp_type::integer:
      lua_pushnumber(lua, static_cast<lua_Number>(v.integer));
      return;
    case resp_type::bulk:
      lua_pushlstring(lua, v.text.data(), v.text.size());
      return;
    case resp_type::array:
      lua_createtable(lua, static_cast<int>(v.items.size()), 0);
      for (std::size_t i = 0; i < v.items.size(); ++i) {
        push(lua, v.items[i]);
        lua_rawseti(lua, -2, static_cast<int>(i) + 1);
      }
      return;
    case resp_type::simple:
    case resp_type::error:
      lua_createtable(lua, 0, 1);
      lua_pushlstring(lua, v.text.data(), v.text.size());
      lua_setfield(lua, -2, v.type == resp_type::error ? "err" : "ok");
      return;
    default:
      lua_pushboolean(lua, 0);
  }
}

std::optional<std::string> field(lua_State* lua, const char* name) {
  lua_getfield(lua, -1, name);
  std::optional<std::string> text;
  if (lua_type(lua, -1) == LUA_TSTRING) text = lua_tostring(lua, -1);
  lua_pop(lua, 1);
  return text;
}

// Returns the top of the stack as a server sends it.
value top(lua_State* lua) {
  switch (lua_type(lua, -1)) {
    case LUA_TNUMBER:
      return integer(static_cast<std::int64_t>(lua_tonumber(lua, -1)));
    case LUA_TSTRING: {
      std::size_t size = 0;
      const char* const text = lua_tolstring(lua, -1, &size);
      return bulk(std::string(text, size));
    }
    case LUA_TBOOLEAN:
      return lua_toboolean(lua, -1) != 0 ? integer(1) : value{};
    case LUA_TTABLE: {
      if (auto text = field(lua, "err")) return error(std::move(*text));
      if (auto text = field(lua, "ok")) return of_type(resp_type::simple, *text);
      std::vector<value> items;
      for (int i = 1;; ++i) {
        lua_rawgeti(lua, -1, i);
        const bool over = lua_isnil(lua, -1);
        if (!over) items.push_back(top(lua));
        lua_pop(lua, 1);
        if (over) return list(std::move(items));
      }
    }
    default:
      return {};
  }
}

int error_reply(lua_State* lua) {
  lua_createtable(lua, 0, 1);
  lua_pushvalue(lua, 1);
  lua_setfield(lua, -2, "err");
  return 1;
}

// Part of the server's `struct` library: doubles, the least byte first, as this machine has them.
std::size_t doubles_of(lua_State* lua) {
  const std::string_view format = luaL_checkstring(lua, 1);
  const bool known = format.starts_with('<') && format.find_first_not_of('d', 1) == format.npos;
  if (!known) luaL_error(lua, "a format that the model does not know");
  return format.size() - 1;
}

int pack_doubles(lua_State* lua) {
  const auto count = doubles_of(lua);
  luaL_Buffer bytes;
  luaL_buffinit(lua, &bytes);
  for (std::size_t i = 0; i < count; ++i) {
    const double n = luaL_checknumber(lua, static_cast<int>(i) + 2);
    char raw[sizeof n];
    std::memcpy(raw, &n, sizeof n);
    luaL_addlstring(&bytes, raw, sizeof raw);
  }
  luaL_pushresult(&bytes);
  return 1;
}

int unpack_doubles(lua_State* lua) {
  const auto count = doubles_of(lua);
  std::size_t size = 0;
  const char* const bytes = luaL_checklstring(lua, 2, &size);
  const auto from = static_cast<std::size_t>(luaL_optinteger(lua, 3, 1) - 1);
  if (from > size || size - from < count * sizeof(double)) {
    return luaL_error(lua, "data string too short");
  }
  for (std::size_t i = 0; i < count; ++i) {
    double n = 0;
    std::memcpy(&n, bytes + from + i * sizeof n, sizeof n);
    lua_pushnumber(lua, n);
  }
  return static_cast<int>(count);
}

void set_global_list(lua_State* lua, const char* name, std::span<const std::string> all) {
  lua_createtable(lua, static_cast<int>(all.size()), 0);
  for (std::size_t i = 0; i < all.size(); ++i) {
    lua_pushlstring(lua, all[i].data(), all[i].size());
    lua_rawseti(lua, -2, static_cast<int>(i) + 1);
  }
  lua_setglobal(lua, name);
}

}  // namespace

redis_model::redis_model(clock micros, listener publish, refusal refuse)
    : micros_(std::move(micros)),
      publish_(std::move(publish)),
      refuse_(std::move(refuse)),
      lua_(luaL_newstate()) {
  luaL_openlibs(lua_);
  lua_pushlightuserdata(lua_, this);
  lua_setfield(lua_, LUA_REGISTRYINDEX, self);
  lua_createtable(lua_, 0, 3);
  lua_pushcfunction(lua_, call_from_lua);
  lua_setfield(lua_, -2, "call");
  lua_pushcfunction(lua_, pcall_from_lua);
  lua_setfield(lua_, -2, "pcall");
  lua_pushcfunction(lua_, error_reply);
  lua_setfield(lua_, -2, "error_reply");
  lua_setglobal(lua_, "redis");
  lua_createtable(lua_, 0, 2);
  lua_pushcfunction(lua_, pack_doubles);
  lua_setfield(lua_, -2, "pack");
  lua_pushcfunction(lua_, unpack_doubles);
  lua_setfield(lua_, -2, "unpack");
  lua_setglobal(lua_, "struct");
}

redis_model::~redis_model() { lua_close(lua_); }

void redis_model::load(std::string_view sha, std::string_view text) {
  if (luaL_loadbuffer(lua_, text.data(), text.size(), "script") != 0) {
    throw std::runtime_error(lua_tostring(lua_, -1));
  }
  scripts_.emplace(std::string(sha), luaL_ref(lua_, LUA_REGISTRYINDEX));
}

// A full server lets a script that has written continue to write, and lets every client free
// memory.
std::string redis_model::why_not(const std::string& command) {
  static const std::set<std::string, std::less<>> make_room{"DEL",  "PEXPIRE", "HDEL",
                                                            "ZREM", "ZPOPMIN", "ZREMRANGEBYSCORE"};
  static const std::set<std::string, std::less<>> need_room{"SET", "HSET", "ZADD"};
  const bool needs_room = need_room.contains(command);
  if (!needs_room && !make_room.contains(command)) return {};
  auto why = refuse_(needs_room && !has_written_);
  has_written_ = has_written_ || why.empty();
  return why;
}

// Every other time together with all other keys of its name.
std::string redis_model::lose(std::uint64_t which) {
  if (keys_.empty()) return "nothing";
  const auto alone = which % 2 == 0;
  const auto place = which / 2 % keys_.size();
  const auto at = std::next(keys_.begin(), static_cast<std::ptrdiff_t>(place));
  if (alone) return keys_.extract(at).key();
  const auto name = at->first.substr(0, at->first.find('}') + 1);
  std::erase_if(keys_, [&](const auto& one) { return one.first.starts_with(name); });
  return name;
}

value redis_model::run(const std::vector<std::string>& all) try {
  const auto found = commands().find(all.front());
  if (found == commands().end()) return error("ERR unknown command '" + all.front() + "'");
  if (auto why = why_not(all.front()); !why.empty()) return error(std::move(why));
  return (this->*found->second)(words(all).subspan(1));
} catch (const refused& why) {
  return error(why.what());
}

// No object with a destructor may be alive when Lua raises an error, because that jumps.
int redis_model::answer_lua(lua_State* lua, bool raise) {
  {
    lua_getfield(lua, LUA_REGISTRYINDEX, self);
    auto* const model = static_cast<redis_model*>(lua_touserdata(lua, -1));
    lua_pop(lua, 1);
    std::vector<std::string> all;
    for (int i = 1; i <= lua_gettop(lua); ++i) {
      if (lua_type(lua, i) == LUA_TNUMBER) {
        all.push_back(text_of(lua_tonumber(lua, i)));
        continue;
      }
      std::size_t size = 0;
      const char* const text = lua_tolstring(lua, i, &size);
      all.emplace_back(text == nullptr ? "" : text, size);
    }
    const value v = model->run(all);
    push(lua, v);
    raise = raise && v.is_error();
  }
  return raise ? lua_error(lua) : 1;
}
int redis_model::call_from_lua(lua_State* lua) { return answer_lua(lua, true); }
int redis_model::pcall_from_lua(lua_State* lua) { return answer_lua(lua, false); }

value redis_model::eval(words w) {
  const auto found = scripts_.find(w[0]);
  if (found == scripts_.end()) return error("NOSCRIPT No matching script.");
  const auto keys = static_cast<std::size_t>(whole_number(w[1]));
  set_global_list(lua_, "KEYS", w.subspan(2, keys));
  set_global_list(lua_, "ARGV", w.subspan(2 + keys));
  lua_rawgeti(lua_, LUA_REGISTRYINDEX, found->second);
  has_written_ = false;
  const bool failed = lua_pcall(lua_, 0, 1, 0) != 0;
  value v = top(lua_);
  lua_pop(lua_, 1);
  if (failed && !v.is_error()) v = error("ERR " + v.text);
  return v;
}

// ---- keys

redis_model::entry* redis_model::find(const std::string& key) {
  const auto at = keys_.find(key);
  if (at == keys_.end()) return nullptr;
  if (!at->second.ends_at || *at->second.ends_at > micros_() / 1'000) return &at->second;
  keys_.erase(at);
  return nullptr;
}

template <class T>
T* redis_model::find_as(const std::string& key) {
  entry* const at = find(key);
  if (at == nullptr) return nullptr;
  if (auto* const mine = std::get_if<T>(&at->is)) return mine;
  throw refused("WRONGTYPE Operation against a key holding the wrong kind of value");
}

template <class T>
T& redis_model::make(const std::string& key) {
  if (auto* const there = find_as<T>(key)) return *there;
  return std::get<T>((keys_[key] = entry{T{}}).is);
}

void redis_model::drop_if_empty(const std::string& key) {
  const entry* const at = find(key);
  if (at == nullptr) return;
  const auto* const h = std::get_if<hash>(&at->is);
  const auto* const z = std::get_if<sorted_set>(&at->is);
  if ((h != nullptr && h->empty()) || (z != nullptr && z->score_of.empty())) keys_.erase(key);
}

std::vector<std::pair<std::string, std::string>> redis_model::strings(std::string_view prefix) {
  std::vector<std::pair<std::string, std::string>> all;
  std::vector<std::string> keys;
  for (const auto& [key, e] : keys_) {
    if (key.starts_with(prefix)) keys.push_back(key);
  }
  for (const auto& key : keys) {
    const entry* const e = find(key);
    if (e == nullptr) continue;
    if (const auto* const text = std::get_if<std::string>(&e->is)) all.emplace_back(key, *text);
  }
  return all;
}

std::map<std::string, std::int64_t> redis_model::ends_of_keys(std::string_view prefix) const {
  std::map<std::string, std::int64_t> all;
  for (const auto& [key, entry] : keys_) {
    const bool lives = entry.ends_at && *entry.ends_at > micros_() / 1'000;
    if (lives && key.starts_with(prefix)) all[key] = *entry.ends_at * 1'000;
  }
  return all;
}

std::string redis_model::for_ever() const {
  std::string all;
  for (const auto& [key, e] : keys_) {
    if (!e.ends_at) all += key + ' ';
  }
  return all;
}

const std::map<std::string, redis_model::command, std::less<>>& redis_model::commands() {
  using m = redis_model;
  static const std::map<std::string, command, std::less<>> all{
      {"EVALSHA", &m::eval},
      {"TIME", &m::time},
      {"PUBLISH", &m::publish},
      {"GET", &m::get},
      {"MGET", &m::mget},
      {"SET", &m::set},
      {"DEL", &m::del},
      {"PEXPIRE", &m::pexpire},
      {"PTTL", &m::pttl},
      {"HGET", &m::hget},
      {"HMGET", &m::hmget},
      {"HSET", &m::hset},
      {"HDEL", &m::hdel},
      {"ZADD", &m::zadd},
      {"ZREM", &m::zrem},
      {"ZSCORE", &m::zscore},
      {"ZRANK", &m::zrank},
      {"ZRANGE", &m::zrange},
      {"ZRANGEBYSCORE", &m::zrangebyscore},
      {"ZREMRANGEBYSCORE", &m::zremrangebyscore},
      {"ZPOPMIN", &m::zpopmin},
      {"ZCARD", &m::zcard},
      {"TYPE", &m::type},
      {"EXISTS", &m::exists},
      {"HKEYS", &m::hkeys},
      {"HGETALL", &m::hgetall},
      {"HEXISTS", &m::hexists},
      {"HINCRBY", &m::hincrby},
      {"INCRBY", &m::incrby},
      {"DECRBY", &m::decrby}};
  return all;
}

value redis_model::time(words) {
  const auto now = micros_();
  return list({bulk(std::to_string(now / 1'000'000)), bulk(std::to_string(now % 1'000'000))});
}

value redis_model::publish(words w) { return integer(publish_(w[0], w[1])); }

value redis_model::get(words w) {
  const auto* const text = find_as<std::string>(w[0]);
  return text == nullptr ? value{} : bulk(*text);
}

// A key of another type counts as missing.
value redis_model::mget(words w) {
  std::vector<value> items;
  for (const auto& key : w) {
    const entry* const e = find(key);
    const auto* const text = e == nullptr ? nullptr : std::get_if<std::string>(&e->is);
    items.push_back(text == nullptr ? value{} : bulk(*text));
  }
  return list(std::move(items));
}

value redis_model::set(words w) {
  entry e{w[1]};
  for (std::size_t i = 2; i < w.size(); ++i) {
    if (w[i] == "NX" || w[i] == "XX") {
      if ((find(w[0]) != nullptr) != (w[i] == "XX")) return {};
      continue;
    }
    if (w[i] != "PX" || i + 1 == w.size()) throw refused("ERR syntax error");
    const auto lasts = whole_number(w[++i]);
    if (lasts <= 0) throw refused("ERR invalid expire time in 'set' command");
    e.ends_at = micros_() / 1'000 + lasts;
  }
  keys_[w[0]] = std::move(e);
  return ok();
}

value redis_model::del(words w) {
  std::int64_t gone = 0;
  for (const auto& key : w) {
    if (find(key) != nullptr) gone += static_cast<std::int64_t>(keys_.erase(key));
  }
  return integer(gone);
}

value redis_model::pexpire(words w) {
  entry* const e = find(w[0]);
  if (e == nullptr) return integer(0);
  const auto lasts = whole_number(w[1]);
  if (lasts <= 0) return keys_.erase(w[0]), integer(1);
  e->ends_at = micros_() / 1'000 + lasts;
  return integer(1);
}

value redis_model::pttl(words w) {
  const entry* const e = find(w[0]);
  if (e == nullptr) return integer(-2);
  return integer(e->ends_at ? *e->ends_at - micros_() / 1'000 : -1);
}

value redis_model::hget(words w) {
  const auto* const h = find_as<hash>(w[0]);
  if (h == nullptr) return {};
  const auto at = h->find(w[1]);
  return at == h->end() ? value{} : bulk(at->second);
}

value redis_model::hmget(words w) {
  std::vector<value> items;
  for (const auto& f : w.subspan(1)) items.push_back(hget(std::vector<std::string>{w[0], f}));
  return list(std::move(items));
}

value redis_model::hset(words w) {
  auto& h = make<hash>(w[0]);
  std::int64_t fresh = 0;
  for (std::size_t i = 1; i + 1 < w.size(); i += 2) {
    fresh += h.insert_or_assign(w[i], w[i + 1]).second ? 1 : 0;
  }
  return integer(fresh);
}

value redis_model::hdel(words w) {
  auto* const h = find_as<hash>(w[0]);
  if (h == nullptr) return integer(0);
  std::int64_t gone = 0;
  for (const auto& f : w.subspan(1)) gone += static_cast<std::int64_t>(h->erase(f));
  drop_if_empty(w[0]);
  return integer(gone);
}

// ---- sorted sets

bool redis_model::remove_member(sorted_set& from, const std::string& member) {
  const auto at = from.score_of.find(member);
  if (at == from.score_of.end()) return false;
  from.in_order.erase({at->second, member});
  from.score_of.erase(at);
  return true;
}

value redis_model::zadd(words w) {
  if (w.size() < 3 || w.size() % 2 == 0) throw refused("ERR syntax error");
  auto& z = make<sorted_set>(w[0]);
  std::int64_t fresh = 0;
  for (std::size_t i = 1; i < w.size(); i += 2) {
    if (!remove_member(z, w[i + 1])) ++fresh;
    z.score_of[w[i + 1]] = score(w[i]);
    z.in_order.emplace(score(w[i]), w[i + 1]);
  }
  return integer(fresh);
}

value redis_model::zrem(words w) {
  auto* const z = find_as<sorted_set>(w[0]);
  if (z == nullptr) return integer(0);
  std::int64_t gone = 0;
  for (const auto& member : w.subspan(1)) gone += remove_member(*z, member) ? 1 : 0;
  drop_if_empty(w[0]);
  return integer(gone);
}

value redis_model::zscore(words w) {
  const auto* const z = find_as<sorted_set>(w[0]);
  if (z == nullptr || !z->score_of.contains(w[1])) return {};
  return bulk(text_of(z->score_of.at(w[1])));
}

value redis_model::zrank(words w) {
  const auto* const z = find_as<sorted_set>(w[0]);
  if (z == nullptr || !z->score_of.contains(w[1])) return {};
  const auto at = z->in_order.find({z->score_of.at(w[1]), w[1]});
  return integer(std::distance(z->in_order.begin(), at));
}

value redis_model::rank_range(const sorted_set& of, std::int64_t first, std::int64_t last,
                              bool scores) const {
  const auto size = static_cast<std::int64_t>(of.in_order.size());
  if (first < 0) first = std::max<std::int64_t>(first + size, 0);
  if (last < 0) last += size;
  std::vector<value> items;
  std::int64_t i = 0;
  for (const auto& [points, member] : of.in_order) {
    const std::int64_t at = i++;
    if (at < first || at > last) continue;
    items.push_back(bulk(member));
    if (scores) items.push_back(bulk(text_of(points)));
  }
  return list(std::move(items));
}

value redis_model::zrange(words w) {
  const auto* const z = find_as<sorted_set>(w[0]);
  if (w.size() > 4 || (w.size() == 4 && w[3] != "WITHSCORES")) throw refused("ERR syntax error");
  if (z == nullptr) return list({});
  return rank_range(*z, whole_number(w[1]), whole_number(w[2]), w.size() == 4);
}

value redis_model::zrangebyscore(words w) {
  const auto* const z = find_as<sorted_set>(w[0]);
  std::vector<value> items;
  for (const auto& [points, member] : z == nullptr ? sorted_set{}.in_order : z->in_order) {
    if (points >= score(w[1]) && points <= score(w[2])) items.push_back(bulk(member));
  }
  return list(std::move(items));
}

value redis_model::zremrangebyscore(words w) {
  const value over = zrangebyscore(w);
  if (over.items.empty()) return integer(0);
  auto& z = *find_as<sorted_set>(w[0]);
  for (const auto& member : over.items) remove_member(z, member.text);
  drop_if_empty(w[0]);
  return integer(static_cast<std::int64_t>(over.items.size()));
}

value redis_model::zpopmin(words w) {
  auto* const z = find_as<sorted_set>(w[0]);
  if (z == nullptr) return list({});
  const auto [points, member] = *z->in_order.begin();
  remove_member(*z, member);
  drop_if_empty(w[0]);
  return list({bulk(member), bulk(text_of(points))});
}

value redis_model::zcard(words w) {
  const auto* const z = find_as<sorted_set>(w[0]);
  return integer(z == nullptr ? 0 : static_cast<std::int64_t>(z->score_of.size()));
}

// ---- what only the layouts of other programs need

value redis_model::type(words w) {
  static constexpr const char* names[] = {"string", "hash", "zset"};
  const entry* const e = find(w[0]);
  return of_type(resp_type::simple, e == nullptr ? "none" : names[e->is.index()]);
}

value redis_model::exists(words w) {
  return integer(
      std::count_if(w.begin(), w.end(), [&](auto& key) { return find(key) != nullptr; }));
}

value redis_model::hkeys(words w) {
  std::vector<value> items;
  const auto* const h = find_as<hash>(w[0]);
  for (const auto& [field, text] : h == nullptr ? hash{} : *h) items.push_back(bulk(field));
  return list(std::move(items));
}

value redis_model::hgetall(words w) {
  std::vector<value> items;
  const auto* const h = find_as<hash>(w[0]);
  for (const auto& [field, text] : h == nullptr ? hash{} : *h) {
    items.push_back(bulk(field));
    items.push_back(bulk(text));
  }
  return list(std::move(items));
}

value redis_model::hexists(words w) {
  const auto* const h = find_as<hash>(w[0]);
  return integer(h != nullptr && h->contains(w[1]) ? 1 : 0);
}

value redis_model::hincrby(words w) {
  auto& text = make<hash>(w[0])[w[1]];
  const auto n = (text.empty() ? 0 : whole_number(text)) + whole_number(w[2]);
  text = std::to_string(n);
  return integer(n);
}

value redis_model::incrby(words w) {
  auto& text = make<std::string>(w[0]);
  const auto n = (text.empty() ? 0 : whole_number(text)) + whole_number(w[1]);
  text = std::to_string(n);
  return integer(n);
}

value redis_model::decrby(words w) {
  const auto less = std::to_string(-whole_number(w[1]));
  return incrby(std::vector<std::string>{w[0], less});
}

}  // namespace simulation
#endif
