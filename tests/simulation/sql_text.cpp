#include "simulation/sql_text.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>
#include <stdexcept>

#include "store/mariadb/statements.hpp"
#include "store/postgres/schema.hpp"

namespace simulation {

namespace {

using op = sql_expression::op;
using verb = sql_statement::verb;

struct token {
  enum class kind { word, quoted, text, number, symbol, end };
  kind is = kind::end;
  std::string text{};
};

bool is_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

std::string unhex(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    unsigned one = 0;
    std::from_chars(digits.data() + i, digits.data() + i + 2, one, 16);
    bytes += static_cast<char>(one);
  }
  return bytes;
}

// Replaces each server's expressions for its clock, and for whether it accepts writes, with one
// word.
std::string with_words(std::string text) {
  using holdfast::store::mariadb::takes_writes;
  constexpr const char* clock = "clock()";
  for (const auto& [words, word] :
       {std::pair<std::string_view, const char*>{holdfast::store::postgres::server_clock, clock},
        {holdfast::store::postgres::rough_clock, clock},
        {holdfast::store::mariadb::server_clock, clock},
        {takes_writes, "takes_writes()"}}) {
    for (auto at = text.find(words); at != text.npos; at = text.find(words, at)) {
      text.replace(at, words.size(), word);
    }
  }
  return text;
}

class lexer {
 public:
  explicit lexer(std::string_view text) : text_(text) {}

  token next() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    if (at_ == text_.size()) return {};
    const char c = text_[at_];
    if (c == '\'' || c == '"' || c == '`') return quoted(c);
    if (is_digit(c)) return {token::kind::number, run(is_digit)};
    if (is_letter(c)) return {token::kind::word, run(is_letter)};
    if (c == '$') {
      ++at_;
      return {token::kind::symbol, "$" + run(is_digit)};
    }
    for (const std::string_view s : {"->>", "::", "<=", ">="}) {
      if (text_.substr(at_).starts_with(s)) {
        at_ += s.size();
        return {token::kind::symbol, std::string(s)};
      }
    }
    ++at_;
    return {token::kind::symbol, std::string(1, c)};
  }

 private:
  template <class Kind>
  std::string run(Kind belongs) {
    const auto first = at_;
    while (at_ < text_.size() && belongs(text_[at_])) ++at_;
    return std::string(text_.substr(first, at_ - first));
  }
  token quoted(char mark) {
    std::string inside;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == mark && (at_ + 1 == text_.size() || text_[at_ + 1] != mark)) break;
      if (text_[at_] == mark) ++at_;
      inside += text_[at_];
    }
    ++at_;
    return {mark == '\'' ? token::kind::text : token::kind::quoted, std::move(inside)};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

class parser {
 public:
  explicit parser(std::string text) : whole_(std::move(text)) {
    lexer all(whole_);
    do {
      tokens_.push_back(all.next());
    } while (tokens_.back().is != token::kind::end);
  }

  sql_statements statements() {
    sql_statements all;
    while (now().is != token::kind::end) {
      if (!take(";")) all.push_back(std::make_shared<const sql_statement>(statement()));
    }
    return all;
  }

 private:
  const token& now(std::size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  bool is(std::string_view what, std::size_t ahead = 0) const {
    const token& t = now(ahead);
    return (t.is == token::kind::word || t.is == token::kind::symbol) && t.text == what;
  }
  bool take(std::string_view what) {
    if (!is(what)) return false;
    ++at_;
    return true;
  }
  bool take_all(std::initializer_list<std::string_view> words) {
    std::size_t ahead = 0;
    for (const auto w : words) {
      if (!is(w, ahead++)) return false;
    }
    at_ += words.size();
    return true;
  }
  void must(std::string_view what) {
    if (!take(what)) refuse(what);
  }
  [[noreturn]] void refuse(std::string_view wanted) const {
    throw std::logic_error("the simulated server does not understand (wanted '" +
                           std::string(wanted) + "', found '" + now().text + "'): " + whole_);
  }
  std::string word() {
    if (now().is != token::kind::word && now().is != token::kind::quoted) refuse("a name");
    return tokens_[at_++].text;
  }

  // ---- statements

  sql_statement statement() {
    sql_statement s;
    s.text = whole_.substr(0, 60);
    if (is("with")) return with();
    if (is("insert")) return insert();
    if (is("update")) return update();
    if (is("delete")) return remove();
    if (is("select") && is("exists", 1)) return only(verb::look);
    if (is("select") && asks_the_catalogue()) return only(verb::set);  // which shows nothing
    if (is("select")) return select();
    if (is("begin") || is("start")) return only(verb::begin);
    if (is("commit")) return only(verb::commit);
    if (is("rollback")) return only(verb::rollback);
    if (is("set") || is("show")) return only(verb::set);
    if (take("listen")) {
      s.text = word();
      s.what = verb::listen;
      return s;
    }
    refuse("a statement");
  }
  // Whether this query, up to its end, is about the server's own tables.
  bool asks_the_catalogue() const {
    int inside = 0;
    for (std::size_t i = 1; now(i).is != token::kind::end && !is(";", i) && inside >= 0; ++i) {
      if (is("from", i) && inside == 0)
        return is("pg_catalog", i + 1) || is("information_schema", i + 1);
      inside += is("(", i) ? 1 : is(")", i) ? -1 : 0;
    }
    return false;
  }
  sql_statement only(verb what) {
    sql_statement s;
    s.what = what;
    for (; now().is != token::kind::end && !is(";"); ++at_) {
      s.text += (s.text.empty() ? "" : " ") + now().text;
      if (!is("?")) continue;
      const auto its = parameter(questions_++);
      if (s.text.ends_with("innodb_lock_wait_timeout = ?")) s.limit = its;
    }
    return s;
  }

  sql_statement with() {
    must("with");
    (void)word();
    must("as");
    must("(");
    auto first = std::make_shared<const sql_statement>(remove());
    must(")");
    sql_statement s = update();
    s.source = std::move(first);
    return s;
  }

  sql_statement select() {
    sql_statement s;
    must("select");
    if (!is("from")) s.outputs = list();
    if (take("from")) {
      tables(s);
      if (take("where")) read_where(s);
      if (take_all({"order", "by"})) (void)word();
      if (take("limit")) s.limit = any();
      read_locks(s);
    }
    return s;
  }

  void tables(sql_statement& s) {
    do {
      table(s);
    } while (take(","));
    if (!take_all({"left", "join"})) return;
    table(s);
    must("on");
    s.left_join = true;
    read_where(s);
  }
  void table(sql_statement& s) {
    const bool is_meta = table_name(s);
    take("as");
    const bool named = now().is == token::kind::word && !is("where") && !is("on") && !is("left") &&
                       !is("for") && !is("lock") && !is("order") && !is("set") && !is("select");
    if (named) (is_meta ? meta_name_ : records_name_) = word();
  }
  bool table_name(sql_statement& s) {
    std::string name = word();
    while (take(".")) name = word();
    s.meta |= name == "holdfast_meta";
    s.records |= name == "holdfast_records";
    s.gone |= name == "gone";
    if (!s.meta && !s.records && !s.gone) refuse("a table");
    return name == "holdfast_meta";
  }
  void read_where(sql_statement& s) {
    s.where = any();
    s.has_where = true;
  }
  void read_locks(sql_statement& s) {
    sql_lock how = sql_lock::none;
    if (take_all({"for", "share"}) || take_all({"lock", "in", "share", "mode"})) {
      how = sql_lock::share;
    } else if (take_all({"for", "update"}) || take_all({"for", "no", "key", "update"})) {
      how = sql_lock::exclusive;
    }
    if (how == sql_lock::none) return;
    const std::string only_of = take("of") ? word() : "";
    s.skips_locked = take_all({"skip", "locked"});
    if (s.meta && (only_of.empty() || only_of == meta_name_)) s.locks_meta = how;
    if (s.records && (only_of.empty() || only_of == records_name_)) s.locks_records = how;
  }

  sql_statement insert() {
    sql_statement s;
    s.what = verb::insert;
    must("insert");
    must("into");
    table(s);
    s.source = std::make_shared<const sql_statement>(select());
    if (take_all({"on", "conflict"})) {
      must("(");
      (void)word();
      must(")");
      must("do");
      if (!take("nothing")) keep_what_is_there(s);
    } else if (take_all({"on", "duplicate", "key"})) {
      keep_what_is_there(s);
    }
    returning(s);
    return s;
  }
  void keep_what_is_there(sql_statement& s) {
    must("update");
    take("set");
    (void)word();
    must("=");
    (void)any();
    if (take("where")) (void)any();
    s.conflict_locks = true;
  }

  sql_statement update() {
    sql_statement s;
    s.what = verb::update;
    must("update");
    table(s);
    must("set");
    do {
      const auto to = column(word());
      must("=");
      s.assignments.emplace_back(to, sum());
    } while (take(","));
    if (take("where")) read_where(s);
    returning(s);
    return s;
  }

  sql_statement remove() {
    sql_statement s;
    s.what = verb::remove;
    must("delete");
    must("from");
    table(s);
    if (take_all({"where", "name", "=", "any", "(", "array", "("})) {
      where_of_those(s);
    } else if (take("where")) {
      read_where(s);
    }
    returning(s);
    return s;
  }

  // Parses … any (array(select name …)): the rows that this select names, and has locked.
  void where_of_those(sql_statement& s) {
    const sql_statement named = select();
    must(")");
    must(")");
    s.where = named.where;
    s.has_where = named.has_where;
    s.skips_locked = named.skips_locked;
  }

  void returning(sql_statement& s) {
    if (take("returning")) s.returning = list();
  }

  std::vector<sql_expression> list() {
    std::vector<sql_expression> all;
    do {
      all.push_back(any());
      if (take("as")) (void)word();
    } while (take(","));
    return all;
  }

  // ---- expressions, from the loosest binding to the tightest

  static sql_expression made(op is, std::vector<sql_expression> of) {
    sql_expression e;
    e.is = is;
    e.of = std::move(of);
    return e;
  }
  static sql_expression constant(sql_value v) {
    sql_expression e;
    e.value = std::move(v);
    return e;
  }

  sql_expression any() {
    auto e = all_of();
    while (take("or")) e = made(op::either, {std::move(e), all_of()});
    return e;
  }
  sql_expression all_of() {
    auto e = comparison();
    while (take("and")) e = made(op::both, {std::move(e), comparison()});
    return e;
  }

  sql_expression comparison() {
    if (take("not")) return made(op::negation, {comparison()});
    auto left = sum();
    if (take("=")) return is("any") ? one_of_an_array(std::move(left)) : pair(op::equal, left);
    if (take("<=")) return pair(op::less_or_equal, left);
    if (take("<")) return pair(op::less, left);
    if (take(">=")) return made(op::negation, {pair(op::less, left)});
    if (take(">")) return pair(op::greater, left);
    if (take("~") || take("regexp")) return pair(op::matches, left);
    if (take("between")) {
      auto least = sum();
      must("and");
      return made(op::between, {std::move(left), std::move(least), sum()});
    }
    if (take_all({"is", "null"})) return made(op::is_null, {std::move(left)});
    if (take_all({"not", "in"})) return made(op::negation, {one_of(std::move(left))});
    if (take("in")) return one_of(std::move(left));
    return left;
  }
  sql_expression pair(op what, sql_expression& left) {
    return made(what, {std::move(left), sum()});
  }
  sql_expression one_of(sql_expression left) {
    must("(");
    auto all = list();
    must(")");
    all.insert(all.begin(), std::move(left));
    return made(op::in, std::move(all));
  }
  sql_expression one_of_an_array(sql_expression left) {
    must("any");
    must("(");
    auto e = made(op::in, {std::move(left), any()});
    e.word = "array";
    must(")");
    return e;
  }

  sql_expression sum() {
    auto e = quotient();
    while (is("+") || is("-")) {
      const op what = take("+") ? op::plus : (must("-"), op::minus);
      e = made(what, {std::move(e), quotient()});
    }
    return e;
  }
  sql_expression quotient() {
    auto e = element();
    while (take("/")) e = made(op::over, {std::move(e), element()});
    return e;
  }
  sql_expression element() {
    auto e = cast();
    while (take("->>")) e = made(op::element, {std::move(e), cast()});
    return e;
  }
  sql_expression cast() {
    auto e = primary();
    while (take("::")) e = converted(std::move(e), word());
    return e;
  }
  sql_expression converted(sql_expression e, std::string_view to) {
    const bool number = to == "bigint" || to == "int" || to == "unsigned" || to == "float8";
    return made(number ? op::to_number : op::to_text, {std::move(e)});
  }

  sql_expression primary() {
    const token t = now();
    if (t.is == token::kind::number) return ++at_, number(t.text);
    if (t.is == token::kind::text) return ++at_, constant(sql_value::of(t.text));
    if (take("-")) return made(op::minus, {constant(sql_value::of(std::int64_t{0})), primary()});
    if (take("(")) return parenthesis();
    if (take("?")) return parameter(questions_++);
    if (t.is == token::kind::symbol && t.text.starts_with('$')) {
      ++at_;
      return parameter(std::stoll(t.text.substr(1)) - 1);
    }
    if (take("case")) return when();
    if (is("cast") && is("(", 1)) return cast_as();
    if (take("true")) return constant(sql_value::of(true));
    if (take("false")) return constant(sql_value::of(false));
    return named();
  }
  static sql_expression number(const std::string& digits) {
    return constant(sql_value::of(static_cast<std::int64_t>(std::stoll(digits))));
  }
  static sql_expression parameter(std::int64_t which) {
    auto e = constant(sql_value::of(which));
    e.is = op::parameter;
    return e;
  }
  sql_expression parenthesis() {
    sql_expression e;
    if (is("select") && asks_the_catalogue()) {
      for (int inside = 0; inside > 0 || !is(")"); ++at_) inside += is("(") ? 1 : is(")") ? -1 : 0;
      e = constant({});
    } else if (is("select")) {
      e.is = op::subquery;
      e.asks = std::make_shared<const sql_statement>(select());
    } else {
      e = any();
    }
    must(")");
    return e;
  }
  sql_expression when() {
    must("when");
    auto condition = any();
    must("then");
    auto value = any();
    must("end");
    return made(op::when, {std::move(condition), std::move(value)});
  }
  sql_expression cast_as() {
    must("cast");
    must("(");
    auto e = any();
    must("as");
    e = converted(std::move(e), word());
    must(")");
    return e;
  }
  // Parses schema.function(…), alias.column, or one of them alone.
  sql_expression named() {
    std::string name = word();
    while (take(".")) name = word();
    sql_expression e;
    if (!take("(")) {
      e.is = op::column;
      e.from = column(name);
      return e;
    }
    e.is = op::call;
    e.word = std::move(name);
    if (take(")")) return e;
    e.of = list();
    must(")");
    return e;
  }
  sql_column column(const std::string& name) const {
    static const std::map<std::string, sql_column, std::less<>> known{
        {"name", sql_column::name},     {"version", sql_column::version},
        {"record", sql_column::record}, {"format", sql_column::format},
        {"id", sql_column::id},         {"fence_floor", sql_column::fence_floor},
        {"fence", sql_column::fence}};
    if (const auto at = known.find(name); at != known.end()) return at->second;
    if (name == meta_name_) return sql_column::whole;
    refuse("a column, not " + name);
  }

  const std::string whole_;
  std::vector<token> tokens_;
  std::size_t at_ = 0;
  std::int64_t questions_ = 0;
  std::string meta_name_;
  std::string records_name_;
};

}  // namespace

std::int64_t sql_value::as_number() const noexcept {
  if (is == kind::number) return number;
  std::int64_t n = 0;
  std::from_chars(text.data(), text.data() + text.size(), n);
  return n;
}

const sql_statements& parse_sql(const std::string& text) {
  static std::map<std::string, sql_statements, std::less<>> known;
  auto at = known.find(text);
  if (at == known.end()) at = known.emplace(text, parser(with_words(text)).statements()).first;
  return at->second;
}

std::string take_values(std::string_view text, std::vector<sql_value>& values) {
  std::string shape;
  shape.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const bool in_a_word = !shape.empty() && (is_letter(shape.back()) || shape.back() == '[');
    if (text.substr(i).starts_with("x'") && !in_a_word) {
      const auto end = text.find('\'', i + 2);
      values.push_back(sql_value::of(unhex(text.substr(i + 2, end - i - 2))));
      shape += '?';
      i = end + 1;
    } else if (text[i] == '\'') {
      const auto end = text.find('\'', i + 1);
      shape += text.substr(i, end - i + 1);
      i = end + 1;
    } else if (is_digit(text[i]) && !in_a_word && !shape.ends_with('(')) {
      std::int64_t n = 0;
      const auto read = std::from_chars(text.data() + i, text.data() + text.size(), n);
      values.push_back(sql_value::of(n));
      shape += '?';
      i = static_cast<std::size_t>(read.ptr - text.data());
    } else {
      shape += text[i++];
    }
  }
  return shape;
}

}  // namespace simulation
