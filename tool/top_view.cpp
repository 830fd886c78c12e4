#include "tool/top_view.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>
#include <utility>

#include "tool/duration.hpp"
#include "tool/progress.hpp"
#include "tool/tables.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

using wall_clock = std::chrono::system_clock;

constexpr std::size_t lines_above = 3;       // headline, status, headings
constexpr std::size_t lines_above_text = 2;  // no headings
constexpr std::size_t lines_below = 1;
constexpr const char* bold_on = "\x1b[1m";
constexpr const char* reverse_on = "\x1b[7m";

struct sort_letter {
  char letter;
  std::string_view key;
};
constexpr std::array<sort_letter, 6> sort_letters{
    {{'n', "name"}, {'k', "kind"}, {'h', "age"}, {'l', "lease"}, {'w', "waiters"}, {'o', "wait"}}};

constexpr std::array<std::string_view, 15> help_lines{
    "up, down             select a name; page up, page down, home, end as well",
    "enter                everything about the selected name; enter or esc goes back",
    "/                    show only names, holders and reasons that contain a text",
    "n k h l w o          sort by name, kind, time held, lease left, waiters, oldest wait",
    "r                    reverse the order",
    "t                    names that are held, names with waiters, all names",
    "p, space             pause, and continue",
    "u                    take the selected lock away from its holders; asks first",
    "^Z                   stop, as any program; fg continues",
    "q, ^C                quit",
    "",
    "HELD    how long the first holder has had it     LEASE   what is left of its lease",
    "WAITING how many wait                            OLDEST  the longest of these waits",
    "",
    "enter or esc goes back"};

bool contains_text(std::string_view text, std::string_view part) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::search(text.begin(), text.end(), part.begin(), part.end(),
                     [&](char a, char b) { return lower(a) == lower(b); }) != text.end();
}

bool mentions_anywhere(const listed_name& n, std::string_view filter) {
  if (contains_text(n.info.name, filter) || contains_text(n.info.kind, filter)) return true;
  const auto mentions = [&](const participant& p) {
    return contains_text(p.host, filter) || contains_text(p.reason, filter) ||
           contains_text(p.program, filter);
  };
  const auto any = [&](const std::vector<participant>& all) {
    return std::any_of(all.begin(), all.end(), mentions);
  };
  return any(n.info.holders) || any(n.info.waiters);
}

/// Columns of the terminal for each of the table's, and the rest for the first and the last.
struct column_layout {
  std::size_t name = 0, kind = 13, holder = 0, held = 7, lease = 7, waiting = 7, oldest = 7,
              reason = 0;
  explicit column_layout(std::size_t columns) {
    const std::size_t fixed = kind + held + lease + waiting + oldest + 7;
    const std::size_t free = columns > fixed + 20 ? columns - fixed : 20;
    holder = std::clamp<std::size_t>(free / 3, 8, 30);
    name = std::min<std::size_t>(free - holder, std::max<std::size_t>(free / 2, 12));
    reason = free - holder - std::min(free - holder, name);
  }
};

std::string table_line(const column_layout& at, const std::array<std::string, 8>& cells) {
  const std::array<std::size_t, 8> widths{at.name,  at.kind,    at.holder, at.held,
                                          at.lease, at.waiting, at.oldest, at.reason};
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i)
    line += (i == 0 ? "" : " ") + padded(cells.at(i), widths.at(i));
  return line;
}

/// At most `room` lines. If some are left out, the last line has their number, and then `more`.
std::vector<std::string> cut(std::vector<std::string> lines, std::size_t room,
                             std::string_view more) {
  if (lines.size() <= room) return lines;
  const std::size_t shown = room - 1;
  const std::size_t left_out = lines.size() - shown;
  lines.resize(shown);
  lines.push_back("… " + std::to_string(left_out) + " more lines" + std::string(more));
  return lines;
}

std::string percent(double share) { return std::to_string(std::lround(share * 100)) + '%'; }

std::string clock_of(wall_clock::time_point now) { return rfc3339(now).substr(11, 8) + " UTC"; }

}  // namespace

void top_view::update(snapshot s) {
  if (paused_) {
    state_.health = std::move(s.health);
    return;
  }
  state_ = std::move(s);
  arrange();
}

void top_view::say(std::string_view note) { said_ = printable(note); }

void top_view::arrange() {
  shown_.clear();
  for (const listed_name& n : state_.names) {
    if (is_shown(n, which_) && mentions_anywhere(n, filter_)) shown_.push_back(n);
  }
  sort_names(shown_, which_.sort);
  if (reversed_) std::reverse(shown_.begin(), shown_.end());
  const auto at = std::find_if(shown_.begin(), shown_.end(),
                               [&](const listed_name& n) { return n.info.name == selected_; });
  if (at != shown_.end()) selected_row_ = static_cast<std::size_t>(at - shown_.begin());
  move_to(static_cast<std::ptrdiff_t>(selected_row_));
}

void top_view::move_to(std::ptrdiff_t row) {
  if (shown_.empty()) {
    selected_row_ = 0;
    return;
  }
  const auto last = static_cast<std::ptrdiff_t>(shown_.size()) - 1;
  selected_row_ = static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(row, 0, last));
  selected_ = shown_[selected_row_].info.name;
}

const listed_name* top_view::selected() const {
  return selected_row_ < shown_.size() ? &shown_[selected_row_] : nullptr;
}

top_request top_view::on_key(const key& k, screen_size size) {
  const bool text = k.what == key::code::text;
  if (text && k.text == "\x03") return {top_request::what::quit};
  if (text && k.text == "\x1a") return {top_request::what::suspend};
  said_.clear();
  switch (mode_) {
    case mode::table:
      return on_table_key(k, size);
    case mode::confirm:
      return on_confirm_key(k);
    case mode::filter:
      on_filter_key(k);
      break;
    case mode::detail:
    case mode::help:
      if (text && k.text == "q") return {top_request::what::quit};
      if (text || k.what == key::code::enter || k.what == key::code::escape) mode_ = mode::table;
      break;
  }
  return {};
}

top_request top_view::on_table_key(const key& k, screen_size size) {
  const auto at = static_cast<std::ptrdiff_t>(selected_row_);
  const auto page = static_cast<std::ptrdiff_t>(
      std::max<std::size_t>(size.rows, lines_above + lines_below + 1) - lines_above - lines_below);
  switch (k.what) {
    case key::code::text:
      return k.text.size() == 1 ? on_letter(k.text.front()) : top_request{};
    case key::code::up:
      move_to(at - 1);
      break;
    case key::code::down:
      move_to(at + 1);
      break;
    case key::code::page_up:
      move_to(at - page);
      break;
    case key::code::page_down:
      move_to(at + page);
      break;
    case key::code::home:
      move_to(0);
      break;
    case key::code::end:
      move_to(static_cast<std::ptrdiff_t>(shown_.size()));
      break;
    case key::code::enter:
      if (selected()) mode_ = mode::detail;
      break;
    case key::code::escape:
      filter_.clear();
      arrange();
      break;
    case key::code::backspace:
    case key::code::other:
      break;
  }
  return {};
}

top_request top_view::on_letter(char letter) {
  const auto sorts = std::find_if(sort_letters.begin(), sort_letters.end(),
                                  [&](const sort_letter& s) { return s.letter == letter; });
  if (letter == 'q') return {top_request::what::quit};
  if (letter == 'u') ask_to_unlock();
  if (letter == '?') mode_ = mode::help;
  if (letter == 'p' || letter == ' ') paused_ = !paused_;
  if (letter == 'r') reversed_ = !reversed_;
  if (sorts != sort_letters.end()) which_.sort = sorts->key;
  if (letter == 't') {
    const bool held = !which_.held && !which_.waiting;
    which_.waiting = which_.held;
    which_.held = held;
  }
  if (letter == '/') {
    mode_ = mode::filter;
    typed_ = filter_;
  }
  arrange();
  return {};
}

void top_view::edit(std::string& text, const key& k) const {
  constexpr std::size_t longest = 255;
  if (k.what == key::code::text && printable(k.text) == k.text && text.size() < longest)
    text += k.text;
  if (k.what != key::code::backspace || text.empty()) return;
  while (text.size() > 1 && (static_cast<unsigned char>(text.back()) & 0xC0U) == 0x80U)
    text.pop_back();
  text.pop_back();
}

void top_view::on_filter_key(const key& k) {
  edit(typed_, k);
  if (k.what == key::code::escape) typed_.clear();
  filter_ = typed_;
  if (k.what == key::code::enter || k.what == key::code::escape) mode_ = mode::table;
  arrange();
}

void top_view::ask_to_unlock() {
  const listed_name* n = selected();
  if (!n) return;
  const std::string name = printable(n->info.name);
  if (n->info.holders.empty()) {
    said_ = name + " has no holder";
    return;
  }
  asked_ = top_request{top_request::what::unlock, n->info.name};
  holders_.clear();
  for (const participant& p : n->info.holders) {
    holders_ += (&p == n->info.holders.data() ? "" : ", ") + holder_phrase(p, wall_clock::now());
    if (!p.short_id.empty()) asked_->owners.push_back(p.short_id);
  }
  if (asked_->owners.empty()) {
    said_ = name + " is held by another program, and has no owner's id; holdfast force-unlock asks";
    return;
  }
  typed_.clear();
  mode_ = mode::confirm;
}

top_request top_view::on_confirm_key(const key& k) {
  edit(typed_, k);
  if (k.what != key::code::enter && k.what != key::code::escape) return {};
  mode_ = mode::table;
  const auto asked = std::exchange(asked_, std::nullopt);
  if (asked && k.what == key::code::enter && typed_ == "yes") return *asked;
  said_ = "nothing was changed";
  return {};
}

std::string top_view::emphasized(const std::string& line, const char* how) const {
  return color_ ? how + line + "\x1b[0m" : line;
}

std::string top_view::headline(wall_clock::time_point now) const {
  std::size_t held = 0, waiters = 0;
  for (const listed_name& n : state_.names) {
    held += n.info.holders.empty() ? 0 : 1;
    waiters += n.info.waiters.size();
  }
  return "holdfast top  " + clock_of(now) + "  " + std::to_string(state_.names.size()) +
         " names, " + std::to_string(held) + " held, " + std::to_string(waiters) + " waiting  " +
         printable(store_);
}

std::string top_view::status_line() const {
  const store_health& health = state_.health;
  if (!health.trouble().empty()) return "NOT CURRENT: " + printable(health.trouble());
  std::string line = "by " + which_.sort + (reversed_ ? ", reversed" : "");
  if (which_.held) line += ", held";
  if (which_.waiting) line += ", with waiters";
  if (which_.pattern != "*") line += ", " + printable(which_.pattern);
  if (!filter_.empty()) line += ", with \"" + filter_ + '"';
  if (shown_.size() != state_.names.size())
    line += " (" + std::to_string(shown_.size()) + " shown)";
  if (paused_) line += ", PAUSED";
  line += "  (queries took " + percent(health.used_share) + " of the last minute, at most " +
          percent(health.allowed_share) + ")";
  return line;
}

/// Where the question is too long, it has the number of the holders, and less of the lock's name.
/// How to answer it is always visible.
std::string top_view::question(std::size_t columns) const {
  constexpr std::size_t shortest_name = 10;
  const std::string answer = "? Type yes: " + typed_ + "_";
  const std::size_t room = columns - std::min(columns, columns_of(answer));
  const auto with = [&](const std::string& name, const std::string& holders) {
    return "Take " + name + " away from " + holders;
  };
  const std::string name = printable(asked_->name);
  const std::size_t several = asked_->owners.size();
  std::string holders = holders_;
  if (several > 1 && columns_of(with(name, holders)) > room)
    holders = std::to_string(several) + " holders";
  const std::size_t others = columns_of(with("", holders));
  const std::size_t left = room - std::min(room, others);
  return shortened(with(shortened(name, std::max(left, shortest_name)), holders), room) + answer;
}

std::string top_view::bottom_line(std::size_t columns) const {
  if (mode_ == mode::filter) return "/" + typed_ + "_";
  if (mode_ == mode::confirm) return question(columns);
  if (!said_.empty()) return said_;
  return "? help  / filter  enter details  u unlock  p pause  q quit";
}

std::vector<std::string> top_view::table_lines(screen_size size, wall_clock::time_point now) {
  const std::size_t room = size.rows - lines_above - lines_below;
  if (selected_row_ < first_row_) first_row_ = selected_row_;
  if (selected_row_ >= first_row_ + room) first_row_ = selected_row_ - room + 1;
  first_row_ = std::min(first_row_, shown_.size() > room ? shown_.size() - room : 0);
  const std::size_t width = size.columns - 1;  // the mark of the selected row
  std::vector<std::string> out{emphasized(
      shortened(' ' + table_line(column_layout{width}, {"NAME", "KIND", "HOLDER", "HELD", "LEASE",
                                                        "WAITING", "OLDEST", "REASON"}),
                size.columns),
      bold_on)};
  for (std::size_t i = first_row_; i < std::min(first_row_ + room, shown_.size()); ++i) {
    const bool here = i == selected_row_;
    const std::string line =
        shortened((here ? '>' : ' ') + table_line(column_layout{width}, top_cells(shown_[i], now)),
                  size.columns);
    out.push_back(here ? emphasized(line, reverse_on) : line);
  }
  if (shown_.empty()) {
    const bool asking = state_.health.round.count() == 0;
    const std::string why = asking ? "asking the store …" : no_names_text(which_, filter_);
    out.push_back(shortened(' ' + why, size.columns));
  }
  return out;
}

std::vector<std::string> top_view::detail_lines(wall_clock::time_point now) const {
  const listed_name* n = selected();
  if (!n) return {"it is no longer in use", "", "enter or esc goes back"};
  if (!n->error.empty()) return {printable(n->info.name), printable(n->error)};
  std::vector<std::string> out;
  std::istringstream text(name_text(n->info, now, false));
  for (std::string line; std::getline(text, line);) out.push_back(line);
  return out;
}

std::vector<std::string> top_view::body(screen_size size, wall_clock::time_point now) {
  const std::size_t room = size.rows - lines_above_text - lines_below;
  if (mode_ == mode::detail) return cut(detail_lines(now), room, "; holdfast show prints all");
  if (mode_ == mode::help) return cut({help_lines.begin(), help_lines.end()}, room, "");
  return table_lines(size, now);
}

std::vector<std::string> top_view::lines(screen_size size, wall_clock::time_point now) {
  size.rows = std::max<std::size_t>(size.rows, lines_above + lines_below + 1);
  size.columns = std::max<std::size_t>(size.columns, 2);
  std::vector<std::string> all{emphasized(shortened(headline(now), size.columns), bold_on),
                               shortened(status_line(), size.columns)};
  const bool table = mode_ != mode::detail && mode_ != mode::help;
  for (const std::string& line : body(size, now))
    all.push_back(table ? line : shortened(line, size.columns));
  all.resize(size.rows - lines_below);
  all.push_back(shortened(bottom_line(size.columns), size.columns));
  return all;
}

}  // namespace holdfast::tool
