#include "simulation/sql_tables.hpp"

#include <algorithm>

namespace simulation {

namespace {

// No waiting statement needs an older state: a transaction is short.
constexpr std::size_t states_kept = 64;

bool holds(const sql_row& r, const sql_transaction& t) {
  return r.exclusive == &t || std::find(r.sharers.begin(), r.sharers.end(), &t) != r.sharers.end();
}

}  // namespace

void sql_tables::lock(sql_transaction& by, const std::string& name, sql_row& r, bool exclusively) {
  if (r.exclusive == &by || (!exclusively && holds(r, by))) return;
  const bool alone =
      std::all_of(r.sharers.begin(), r.sharers.end(), [&](const auto* s) { return s == &by; });
  if (r.exclusive != nullptr || (exclusively && !alone)) throw sql_must_wait{&r};
  if (!holds(r, by)) by.held.emplace_back(name, &r);
  if (exclusively) {
    r.exclusive = &by;
  } else {
    r.sharers.push_back(&by);
  }
}

void sql_tables::unlock(sql_transaction& by, sql_row& r) {
  if (r.writer == &by) return;
  if (r.exclusive == &by) r.exclusive = nullptr;
  std::erase(r.sharers, &by);
  std::erase_if(by.held, [&](const auto& h) { return h.second == &r; });
}

bool sql_tables::waits_in_a_ring(const sql_transaction& first) const {
  std::vector<const sql_transaction*> seen{};
  std::vector<const sql_transaction*> next{&first};
  while (!next.empty()) {
    const auto* const t = next.back();
    next.pop_back();
    if (t->waits_for == nullptr) continue;
    const sql_row& r = *t->waits_for;
    std::vector<const sql_transaction*> ahead(r.sharers.begin(), r.sharers.end());
    if (r.exclusive != nullptr) ahead.push_back(r.exclusive);
    for (const auto* const a : ahead) {
      if (a == t) continue;
      if (a == &first) return true;
      if (std::find(seen.begin(), seen.end(), a) != seen.end()) continue;
      seen.push_back(a);
      next.push_back(a);
    }
  }
  return false;
}

void sql_tables::write(sql_transaction& by, sql_row& r, sql_row::state to) {
  if (r.writer == nullptr) by.written.push_back(&r);
  r.writer = &by;
  r.pending = std::move(to);
}

const sql_row::state& sql_tables::latest(const sql_transaction& by, const sql_row& r) noexcept {
  return r.writer == &by ? *r.pending : r.history.back();
}

const sql_row::state& sql_tables::at_snapshot(const sql_transaction& by,
                                              const sql_row& r) const noexcept {
  if (r.writer == &by || !by.snapshot) return latest(by, r);
  const auto at = std::find_if(r.history.rbegin(), r.history.rend(),
                               [&](const auto& s) { return s.committed <= *by.snapshot; });
  return at == r.history.rend() ? r.history.front() : *at;
}

std::vector<sql_transaction*> sql_tables::commit(sql_transaction& t) {
  if (!t.written.empty()) ++commits;
  for (sql_row* const r : t.written) {
    r->pending->committed = commits;
    r->history.push_back(std::move(*r->pending));
    if (r->history.size() > states_kept) r->history.pop_front();
    r->pending.reset();
    r->writer = nullptr;
  }
  return release(t);
}

std::vector<sql_transaction*> sql_tables::roll_back(sql_transaction& t) {
  for (sql_row* const r : t.written) {
    r->pending.reset();
    r->writer = nullptr;
  }
  t.tells.clear();
  return release(t);
}

std::vector<sql_transaction*> sql_tables::release(sql_transaction& t) {
  std::vector<sql_transaction*> go_on;
  for (const auto& [name, r] : t.held) {
    if (r->exclusive == &t) r->exclusive = nullptr;
    std::erase(r->sharers, &t);
    for (auto* const w : r->waiting) {
      if (std::find(go_on.begin(), go_on.end(), w) == go_on.end()) go_on.push_back(w);
    }
    if (r == &meta) continue;
    const auto at = records.find(name);
    if (at != records.end() && r->idle() && !r->history.back().there) records.erase(at);
  }
  t.held.clear();
  t.written.clear();
  return go_on;
}

sql_tables::copy sql_tables::now() const {
  copy c;
  c.meta = meta.history.back();
  for (const auto& [name, r] : records) {
    if (r.history.back().there) c.records.emplace(name, r.history.back());
  }
  return c;
}

void sql_tables::restore(const copy& from) {
  records.clear();
  meta = sql_row{};
  meta.history.back() = from.meta;
  for (const auto& [name, s] : from.records) records[name].history.back() = s;
}

}  // namespace simulation
