#include "simulation/trace.hpp"

#include <algorithm>
#include <cstdio>

namespace simulation {

void trace::add(std::string what) {
  if (!on_) return;
  const fiber* const me = world::self();
  if (me == nullptr) return add("world", std::move(what));
  add("P" + std::to_string(me->of->number) + "." + (me->name.empty() ? "bg" : me->name),
      std::move(what));
}

void trace::add(std::string column, std::string what) {
  if (on_) lines_.push_back({world_.now(), std::move(column), std::move(what)});
}

std::string trace::text(std::size_t last_lines) const {
  std::vector<std::string> columns;
  for (const auto& l : lines_) {
    if (std::find(columns.begin(), columns.end(), l.column) == columns.end()) {
      columns.push_back(l.column);
    }
  }
  std::sort(columns.begin(), columns.end());
  std::string all = "      seconds";
  constexpr std::size_t indent = 6;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    all += "\n             " + std::string(i * indent, ' ') + columns[i];
  }
  all += '\n';
  const std::size_t from = lines_.size() > last_lines ? lines_.size() - last_lines : 0;
  for (std::size_t i = from; i < lines_.size(); ++i) {
    const auto& l = lines_[i];
    char time[32];
    std::snprintf(time, sizeof time, "%12.6f ", static_cast<double>(l.when) / 1e9);
    const auto column = static_cast<std::size_t>(
        std::find(columns.begin(), columns.end(), l.column) - columns.begin());
    all += time + std::string(column * indent, ' ') + l.column + ": " + l.what + '\n';
  }
  return all;
}

}  // namespace simulation
