#include "tool/cli_grammar.hpp"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "tool/cli_values.hpp"
#include "tool/failure.hpp"
#include "tool/help.hpp"
#include "tool/nearest.hpp"
#include "tool/store_url.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

using word = std::optional<std::string>;

[[noreturn]] void refuse(const std::string& message) {
  throw failure_exit(exit_code::usage, message);
}

/// "text|json": the type of an option that takes one of a few words, in --help, manual and
/// completion.
std::string one_of(std::span<const std::string_view> known) {
  std::string all;
  for (const auto each : known) all += (all.empty() ? "" : "|") + std::string(each);
  return all;
}

/// CLI11's layout with our usage line: CLI11 does not know the words after the --.
class help_layout : public CLI::Formatter {
 public:
  explicit help_layout(std::string_view usage) : usage_(usage) { column_width(32); }
  std::string make_usage(const CLI::App*, std::string) const override {
    return "\nUsage: " + usage_ + "\n";
  }
  /// CLI11 writes a second empty line if there are options that it does not list.
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    std::string text = CLI::Formatter::make_help(app, std::move(name), mode);
    if (const auto at = text.find("\n\n\n"); at != text.npos) text.erase(at, 1);
    return text;
  }

 private:
  std::string usage_;
};

/// The options that every command has.
class common_grammar : public grammar {
 protected:
  explicit common_grammar(const command_help& about) {
    app_.description(std::string(about.summary));
    app_.name("holdfast " + std::string(about.name));
    app_.footer(std::string(about.footer));
    app_.formatter(std::make_shared<help_layout>(about.usage));
    app_.option_defaults()->take_last();
    app_.add_option("--store", store_,
                    "where the locks are; default: $HOLDFAST_STORE, else a file of this user")
        ->type_name("URL");
    app_.add_option("--color", color_, "when to use colours and bold letters")
        ->type_name(one_of(color_words));
    app_.add_option("--log-format", format_, "format of the messages on stderr")
        ->type_name(one_of(log_format_words));
    app_.add_flag("-v,--verbose", verbose_, "report each step on stderr");
    app_.add_flag("--json", json_, std::string(about.json));
  }

  common_options common() const {
    common_options c;
    if (store_ && store_->empty()) refuse("--store: the URL is empty; write sqlite:PATH");
    c.store = store_.value_or("");
    c.json = json_;
    c.verbose = verbose_;
    c.format = log_format_or({"--log-format", format_}, log_format::text);
    c.color = color_or({"--color", color_}, color_when::automatic);
    return c;
  }

 private:
  word store_, color_, format_;
  bool verbose_ = false, json_ = false;
};

/// The options that choose a lock, for run, hold and try.
class lock_words {
 public:
  void add_to(CLI::App& app) {
    app.add_option("LOCK", name_, "the lock's name")->required()->type_name("");
    app.add_flag("-s,--shared", shared_,
                 "take the lock as a reader, together with others (read-write lock)");
    app.add_flag("-x,--exclusive", exclusive_,
                 "take the lock as a writer, alone (read-write lock)");
    app.add_option("--slots", slots_, "take one of N permits (semaphore)")->type_name("N");
  }
  lock_choice convert() const {
    if (shared_ && exclusive_) refuse("-s and -x exclude each other; give one of them");
    if (slots_ && (shared_ || exclusive_))
      refuse(std::string("--slots and ") + (shared_ ? "-s" : "-x") +
             " exclude each other; give one of them");
    lock_choice c;
    c.name = name_;
    if (exclusive_) c.mode = lock_mode::write;
    if (shared_) c.mode = lock_mode::read;
    if (slots_) c.mode = lock_mode::permit;
    c.slots = number_or({"--slots", slots_}, 1, 1U << 30, 1);
    return c;
  }

 private:
  std::string name_;
  word slots_;
  bool shared_ = false, exclusive_ = false;
};

void add_busy_code(CLI::App& app, word& code) {
  app.add_option("-E,--conflict-exit-code", code, "exit code instead of 75 (busy, or time over)")
      ->type_name("N");
}

class take_words {
 public:
  void add_to(CLI::App& app) {
    lock_.add_to(app);
    app.add_flag("-n,--nonblock,--nb", nonblock_, "do not wait");
    app.add_option("-w,--wait,--timeout", wait_, "wait at most this long; 0 is -n")
        ->type_name("DURATION");
    add_busy_code(app, busy_code_);
    app.add_option("--ttl", ttl_, "length of the lease; default 30s")->type_name("DURATION");
    app.add_flag("--fair", fair_, "strictly in order of arrival");
    app.add_option("--reason", reason_, "shown to others by list and show")->type_name("TEXT");
  }
  take_options convert(const std::string& default_reason) const {
    if (nonblock_ && wait_) refuse("-n and -w exclude each other; give one of them");
    take_options t;
    t.lock = lock_.convert();
    t.fair = fair_;
    t.wait = nonblock_ ? one_try : duration_or({"--wait", wait_}, no_limit);
    t.busy_code = exit_code_or({"--conflict-exit-code", busy_code_}, exit_code::busy);
    t.ttl = lease_or({"--ttl", ttl_}, t.ttl);
    t.reason = reason_or({"--reason", reason_}, default_reason);
    return t;
  }

 private:
  lock_words lock_;
  word wait_, busy_code_, ttl_, reason_;
  bool nonblock_ = false, fair_ = false;
};

/// The options about the command to run, for run and elect.
class child_words {
 public:
  void add_to(CLI::App& app) {
    app.add_option("-c,--command", shell_, "run this with /bin/sh -c")->type_name("STRING");
    app.add_option("--min-hold", min_hold_,
                   "keep the lock at least this long, even if the command ends sooner")
        ->type_name("DURATION");
    app.add_option("--max-run", max_run_, "end the command after this time (124)")
        ->type_name("DURATION");
    app.add_option("--kill-after", kill_after_,
                   "time from TERM to KILL; default 5s, or a third of --ttl if less")
        ->type_name("DURATION");
    app.add_option("--on-lost", on_lost_,
                   "what to do if the lock is lost: send TERM or KILL, or warn; default term")
        ->type_name(one_of(on_lost_words));
    app.add_option("--lost-exit-code", lost_code_, "exit code when the lock was lost; default 79")
        ->type_name("N");
    app.add_option("--fence-file", fence_file_, "write the fence to this file")->type_name("PATH");
    app.add_option("--token-file", token_file_, "the older name of --fence-file")->group("");
    app.add_option("--status-file", status_file_, "write the outcome to this file, as JSON")
        ->type_name("PATH");
  }

  /// All options but how the lock is acquired.
  run_options convert(const std::string& name, const std::optional<words>& after_dashes) const {
    run_options r;
    r.typed = name.substr(0, name.find(' '));
    r.command = command_line(name, after_dashes);
    r.min_hold = duration_or({"--min-hold", min_hold_}, r.min_hold);
    r.max_run = duration_or({"--max-run", max_run_}, r.max_run);
    if (kill_after_) r.kill_after = duration_or({"--kill-after", kill_after_}, {});
    r.on_lost = on_lost_or({"--on-lost", on_lost_}, r.on_lost);
    r.lost_code = exit_code_or({"--lost-exit-code", lost_code_}, r.lost_code);
    if (fence_file_ && token_file_)
      refuse("--fence-file and --token-file are one; give one of them");
    r.fence_file = output_path(fence_file_ ? given{"--fence-file", fence_file_}
                                           : given{"--token-file", token_file_});
    r.status_file = output_path({"--status-file", status_file_});
    return r;
  }

  /// Only the program's name: arguments may contain secrets.
  std::string default_reason(const words& line) const {
    const std::string& path = line.front();
    const std::string base = path.substr(path.rfind('/') + 1);
    if (shell_ || base.size() > 64 || printable(base) != base) return {};
    return base;
  }

 private:
  words command_line(const std::string& name, const std::optional<words>& after_dashes) const {
    if (shell_ && after_dashes) refuse("-c STRING and -- CMD are two commands; give one of them");
    if (shell_) return {"/bin/sh", "-c", *shell_};
    if (!after_dashes || after_dashes->empty() || after_dashes->front().empty())
      refuse("there is no command to run; write: holdfast " + name + " -- CMD ARG…");
    return *after_dashes;
  }

  word shell_, min_hold_, max_run_, kill_after_, on_lost_, lost_code_, fence_file_, token_file_,
      status_file_;
};

// stdout belongs to the child, so JSON is the format of the messages.
tool::command with_child(common_options common, run_options r) {
  tool::command c{std::move(common), {}};
  if (c.common.json) c.common.format = log_format::json;
  c.what = std::move(r);
  return c;
}

class run_grammar : public common_grammar {
 public:
  explicit run_grammar(const command_help& about) : common_grammar(about) {
    take_.add_to(app_);
    child_.add_to(app_);
  }

  tool::command convert(const std::optional<words>& after_dashes) const override {
    run_options r = child_.convert("run LOCK", after_dashes);
    r.take = take_.convert(child_.default_reason(r.command));
    return with_child(common(), std::move(r));
  }

 private:
  take_words take_;
  child_words child_;
};

class sem_grammar : public common_grammar {
 public:
  explicit sem_grammar(const command_help& about) : common_grammar(about) {
    app_.add_option("NAME", name_, "the semaphore's name")->required()->type_name("");
    app_.add_option("COUNT", count_, "how many permits there are")->required()->type_name("");
    app_.add_flag("-n,--nonblock,--nb", nonblock_, "do not wait");
    app_.add_option("-w,--wait,--timeout", wait_, "wait at most this long; 0 is -n")
        ->type_name("DURATION");
    add_busy_code(app_, busy_code_);
    app_.add_option("--ttl", ttl_, "length of the lease; default 30s")->type_name("DURATION");
    app_.add_option("--reason", reason_, "shown to others by list and show")->type_name("TEXT");
    child_.add_to(app_);
  }

  tool::command convert(const std::optional<words>& after_dashes) const override {
    if (nonblock_ && wait_) refuse("-n and -w exclude each other; give one of them");
    run_options r = child_.convert("sem NAME COUNT", after_dashes);
    take_options& t = r.take;
    t.lock.name = name_;
    t.lock.mode = lock_mode::permit;
    t.lock.slots = number_or({"COUNT", count_}, 1, 1U << 30, 1);
    t.wait = nonblock_ ? one_try : duration_or({"--wait", wait_}, no_limit);
    t.busy_code = exit_code_or({"--conflict-exit-code", busy_code_}, exit_code::busy);
    t.ttl = lease_or({"--ttl", ttl_}, t.ttl);
    t.reason = reason_or({"--reason", reason_}, child_.default_reason(r.command));
    return with_child(common(), std::move(r));
  }

 private:
  std::string name_;
  word count_, wait_, busy_code_, ttl_, reason_;
  bool nonblock_ = false;
  child_words child_;
};

class elect_grammar : public common_grammar {
 public:
  explicit elect_grammar(const command_help& about) : common_grammar(about) {
    app_.add_option("NAME", name_, "the election's name")->required()->type_name("");
    app_.add_option("--note", note_, "a public text, for example an address")->type_name("TEXT");
    app_.add_option("--priority", priority_,
                    "the waiting candidate with the greatest priority leads next; default 0")
        ->type_name("N");
    app_.add_option("-w,--wait,--timeout", wait_, "wait at most this long; 0 is one try")
        ->type_name("DURATION");
    add_busy_code(app_, busy_code_);
    app_.add_option("--ttl", ttl_, "length of the lease; default 30s")->type_name("DURATION");
    app_.add_flag("--again", again_,
                  "if leadership was lost, campaign again instead of ending (79)");
    app_.add_option("--http", http_, "answer HTTP requests with the leader: :PORT, or ADDRESS:PORT")
        ->type_name("ADDRESS");
    child_.add_to(app_);
  }

  tool::command convert(const std::optional<words>& after_dashes) const override {
    run_options r = child_.convert("elect NAME", after_dashes);
    r.http = address_or({"--http", http_}, {});
    r.again = again_;
    take_options& t = r.take;
    t.lock.name = name_;
    t.lock.mode = lock_mode::leader;
    t.reason = reason_or({"--note", note_}, child_.default_reason(r.command));
    t.priority = static_cast<std::int32_t>(number_or({"--priority", priority_}, 0, 1'000'000, 0));
    t.wait = duration_or({"--wait", wait_}, no_limit);
    t.busy_code = exit_code_or({"--conflict-exit-code", busy_code_}, exit_code::busy);
    t.ttl = lease_or({"--ttl", ttl_}, t.ttl);
    return with_child(common(), std::move(r));
  }

 private:
  std::string name_;
  word http_, note_, priority_, wait_, busy_code_, ttl_;
  bool again_ = false;
  child_words child_;
};

class hold_grammar : public common_grammar {
 public:
  explicit hold_grammar(const command_help& about) : common_grammar(about) { take_.add_to(app_); }
  tool::command convert(const std::optional<words>&) const override {
    return {common(), hold_options{take_.convert({})}};
  }

 private:
  take_words take_;
};

class try_grammar : public common_grammar {
 public:
  explicit try_grammar(const command_help& about) : common_grammar(about) {
    lock_.add_to(app_);
    add_busy_code(app_, busy_code_);
  }
  tool::command convert(const std::optional<words>&) const override {
    const int code = exit_code_or({"--conflict-exit-code", busy_code_}, exit_code::busy);
    return {common(), try_options{lock_.convert(), code}};
  }

 private:
  lock_words lock_;
  word busy_code_;
};

/// The options that choose names, for list and top.
class names_words {
 public:
  void add_to(CLI::App& app) {
    app.add_option("PATTERN", which_.pattern, "a pattern with * and ?; default: all names")
        ->type_name("");
    app.add_flag("--held", which_.held, "only names that are held");
    app.add_flag("--waiting", which_.waiting, "only names with waiters");
    app.add_option("--sort", sort_, "what to sort by; default name")->type_name(one_of(sort_words));
  }
  name_choice convert() const {
    name_choice c = which_;
    c.sort = word_or({"--sort", sort_}, sort_words, c.sort);
    return c;
  }

 private:
  name_choice which_;
  word sort_;
};

class list_grammar : public common_grammar {
 public:
  explicit list_grammar(const command_help& about) : common_grammar(about) {
    names_.add_to(app_);
    app_.add_flag("--wide", wide_, "do not cut long texts");
  }
  tool::command convert(const std::optional<words>&) const override {
    return {common(), list_options{names_.convert(), wide_}};
  }

 private:
  names_words names_;
  bool wide_ = false;
};

/// The shortest interval between two queries of a store.
constexpr std::chrono::milliseconds least_interval{10};

std::chrono::nanoseconds interval_or(const word& text, std::chrono::nanoseconds fallback,
                                     std::chrono::milliseconds least = least_interval) {
  const auto interval = duration_or({"--interval", text}, fallback);
  if (interval < least)
    refuse("--interval: '" + *text + "' is too short; at least " + std::to_string(least.count()) +
           "ms");
  return interval;
}

class top_grammar : public common_grammar {
 public:
  explicit top_grammar(const command_help& about) : common_grammar(about) {
    names_.add_to(app_);
    app_.add_option("-d,--interval", interval_, "the shortest time between two rounds; default 1s")
        ->type_name("DURATION");
    app_.add_flag("--once", top_.once, "print the table once; needs no terminal");
  }
  tool::command convert(const std::optional<words>&) const override {
    top_options t = top_;
    t.which = names_.convert();
    t.interval = interval_or(interval_, t.interval);
    return {common(), std::move(t)};
  }

 private:
  names_words names_;
  top_options top_;
  word interval_;
};

class watch_grammar : public common_grammar {
 public:
  explicit watch_grammar(const command_help& about) : common_grammar(about) {
    app_.add_option("LOCK", watch_.name, "the lock's name")->required()->type_name("");
    app_.add_option("--until", until_,
                    "end when this event happens, or as soon as the lock is in this state")
        ->type_name(one_of(until_words));
    app_.add_option("-d,--interval", interval_, "the time between two queries; default 200ms")
        ->type_name("DURATION");
    app_.add_option("-w,--wait,--timeout", wait_, "watch at most this long")->type_name("DURATION");
    add_busy_code(app_, busy_code_);
  }
  tool::command convert(const std::optional<words>&) const override {
    watch_options w = watch_;
    w.until = word_or({"--until", until_}, until_words, w.until);
    w.interval = interval_or(interval_, w.interval);
    w.wait = duration_or({"--wait", wait_}, w.wait);
    w.busy_code = exit_code_or({"--conflict-exit-code", busy_code_}, w.busy_code);
    return {common(), std::move(w)};
  }

 private:
  watch_options watch_;
  word until_, interval_, wait_, busy_code_;
};

class graph_grammar : public common_grammar {
 public:
  explicit graph_grammar(const command_help& about) : common_grammar(about) {
    app_.add_option("PATTERN", graph_.pattern, "a pattern with * and ?; default: all names")
        ->type_name("");
    app_.add_flag("--dot", graph_.dot, "for Graphviz: holdfast graph --dot | dot -Tsvg");
  }
  tool::command convert(const std::optional<words>&) const override {
    const auto c = common();
    if (c.json && graph_.dot) refuse("--json and --dot exclude each other; give one of them");
    return {c, graph_};
  }

 private:
  graph_options graph_;
};

class completion_grammar : public common_grammar {
 public:
  explicit completion_grammar(const command_help& about) : common_grammar(about) {
    app_.add_option("WHAT", what_, "the shell whose script to print, or names")
        ->required()
        ->type_name(one_of(completion_words));
    app_.add_option("WORD", completion_.word, "with names: the beginning of the name")
        ->type_name("");
    app_.add_flag("--bash", completion_.for_bash,
                  "with names: WORD and the answer are quoted for bash");
  }
  tool::command convert(const std::optional<words>&) const override {
    completion_options c = completion_;
    c.what = word_or({"WHAT", what_}, completion_words, c.what);
    return {common(), std::move(c)};
  }

 private:
  completion_options completion_;
  word what_;
};

class manual_grammar : public common_grammar {
 public:
  explicit manual_grammar(const command_help& about) : common_grammar(about) {
    app_.add_option("PAGE", manual_.page, "which page; default: list them")->type_name("");
  }
  tool::command convert(const std::optional<words>&) const override { return {common(), manual_}; }

 private:
  manual_options manual_;
};

class show_grammar : public common_grammar {
 public:
  explicit show_grammar(const command_help& about) : common_grammar(about) {
    app_.add_option("LOCK", show_.name, "the lock's name")->required()->type_name("");
  }
  tool::command convert(const std::optional<words>&) const override { return {common(), show_}; }

 private:
  show_options show_;
};

class force_unlock_grammar : public common_grammar {
 public:
  explicit force_unlock_grammar(const command_help& about) : common_grammar(about) {
    app_.add_option("LOCK", force_.name, "the lock's name")->required()->type_name("");
    app_.add_option("--owner", owner_, "take it only from this holder (the id that show prints)")
        ->type_name("ID");
    app_.add_option("--reason", reason_, "why; shown in the output")->type_name("TEXT");
    app_.add_flag("-y,--yes", force_.yes, "do not ask");
  }
  tool::command convert(const std::optional<words>&) const override {
    force_unlock_options f = force_;
    if (owner_) f.owner = checked_owner(*owner_);
    f.reason = reason_or({"--reason", reason_}, {});
    return {common(), std::move(f)};
  }

 private:
  static std::string checked_owner(const std::string& id) {
    const bool hex = id.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (id.size() != 8 || !hex)
      refuse("--owner: '" + quotable(id) +
             "' is not an owner's id: 8 hexadecimal digits, as "
             "holdfast show prints them");
    return id;
  }

  force_unlock_options force_;
  word owner_, reason_;
};

class limit_grammar : public common_grammar {
 public:
  explicit limit_grammar(const command_help& about) : common_grammar(about) {
    app_.add_option("NAME", limit_.name, "the limiter's name")->required()->type_name("");
    app_.add_option("--rate", rates_, "TOKENS/TIME[:BURST]; of several rates, all must allow it")
        ->required()
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->allow_extra_args(false)  // the next word, and a --, do not belong to the option
        ->type_name("RATE");
    app_.add_option("--key", key_, "each text has its own buckets: an address, a user, a job")
        ->type_name("TEXT");
    app_.add_option("-t,--tokens", tokens_, "how many to take; default 1")->type_name("N");
    app_.add_option("-w,--wait,--timeout", wait_, "wait at most this long; default 0")
        ->type_name("DURATION");
    app_.add_flag("--peek", limit_.peek, "say what would happen, and take nothing");
    app_.add_flag("--refund", limit_.refund, "give tokens back");
    app_.add_flag("--reset", limit_.reset, "fill the buckets of this key again");
    app_.add_option("--rules-version", version_,
                    "version of the rates; rates with a greater version replace those in use")
        ->type_name("N");
    add_busy_code(app_, busy_code_);
  }
  tool::command convert(const std::optional<words>&) const override {
    limit_options l = limit_;
    if (l.peek + l.refund + l.reset > 1)
      refuse("--peek, --refund and --reset exclude each other; give one of them");
    // A variable of a script that is not set would make all share one bucket.
    if (key_ && key_->empty())
      refuse(
          "--key: the text is empty; give a text, or leave out --key to have one bucket for all");
    l.key = key_.value_or("");
    l.version = number_or({"--rules-version", version_}, 0, 1U << 30, 0);
    for (const word rate : rates_) l.rules.push_back(rate_of({"--rate", rate}));
    l.rates = rates_;
    if (!l.key.empty()) {
      for (auto& r : l.rules) r.by = {"key"};
    }
    l.tokens = number_or({"--tokens", tokens_}, 1, 1U << 30, 1);
    l.wait = duration_or({"--wait", wait_}, one_try);
    l.busy_code = exit_code_or({"--conflict-exit-code", busy_code_}, exit_code::busy);
    return {common(), std::move(l)};
  }

 private:
  limit_options limit_;
  words rates_;
  word key_, tokens_, wait_, version_, busy_code_;
};

/// The common part of latch and barrier.
class meet_grammar : public common_grammar {
 public:
  meet_grammar(const command_help& about, std::uint32_t most) : common_grammar(about), most_(most) {
    app_.add_option("NAME", name_, "the name that all participants use")->required()->type_name("");
    app_.add_option("COUNT", count_,
                    "how many participants there are; every program states the same number")
        ->required()
        ->type_name("");
    app_.add_option("-w,--wait,--timeout", wait_, "wait at most this long; 0 is one check")
        ->type_name("DURATION");
    add_busy_code(app_, busy_code_);
  }

 protected:
  meet_options meeting() const {
    meet_options m;
    m.name = name_;
    m.count = number_or({"COUNT", count_}, 1, most_, 1);
    m.wait = duration_or({"--wait", wait_}, no_limit);
    m.busy_code = exit_code_or({"--conflict-exit-code", busy_code_}, exit_code::busy);
    return m;
  }

 private:
  const std::uint32_t most_;
  std::string name_;
  word count_, wait_, busy_code_;
};

class latch_grammar : public meet_grammar {
 public:
  explicit latch_grammar(const command_help& about) : meet_grammar(about, 1'000'000) {
    app_.add_option("--down", down_, "count down by N, and do not wait")->type_name("N");
    app_.add_flag("--peek", peek_,
                  "change nothing, and print the count that is left; ends with 0 (open) or 75");
    app_.add_flag("--remove", remove_, "remove the latch");
  }
  tool::command convert(const std::optional<words>&) const override {
    meet_options m = meeting();
    if ((down_ ? 1 : 0) + peek_ + remove_ > 1)
      refuse("--down, --peek and --remove exclude each other; give one of them");
    if (down_) m.what = meet_options::action::count_down;
    if (peek_) m.what = meet_options::action::peek;
    if (remove_) m.what = meet_options::action::remove;
    m.down = number_or({"--down", down_}, 1, 1'000'000, 1);
    return {common(), std::move(m)};
  }

 private:
  word down_;
  bool peek_ = false, remove_ = false;
};

class barrier_grammar : public meet_grammar {
 public:
  explicit barrier_grammar(const command_help& about) : meet_grammar(about, 10'000) {
    app_.add_option("--ttl", ttl_,
                    "how long the others wait for a participant that died; default 30s")
        ->type_name("DURATION");
  }
  tool::command convert(const std::optional<words>&) const override {
    meet_options m = meeting();
    m.what = meet_options::action::arrive_and_wait;
    m.ttl = lease_or({"--ttl", ttl_}, m.ttl);
    return {common(), std::move(m)};
  }

 private:
  word ttl_;
};

class serve_grammar : public common_grammar {
 public:
  explicit serve_grammar(const command_help& about) : common_grammar(about) {
    app_.remove_option(app_.get_option("--store"));
    app_.add_option("--store", stores_,
                    "where the locks are; may be given several times: the page shows all of them")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->allow_extra_args(false)
        ->type_name("URL");
    app_.add_option("--listen", listen_, "address of the page: :PORT, or ADDRESS:PORT")
        ->type_name("ADDRESS");
    app_.add_option("--host", hosts_,
                    "also answer requests whose Host is this name, as a proxy passes it on; may be "
                    "given several times")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->allow_extra_args(false)
        ->type_name("NAME");
    app_.add_flag("--allow-unlock", allow_unlock_,
                  "viewers who have the token may take locks away");
    app_.add_option("--token-file", token_file_, "the token is the first line of this file")
        ->type_name("PATH");
    app_.add_option("--share", share_,
                    "the largest share of the time that queries may take, in percent; default 1")
        ->type_name("PERCENT");
  }
  tool::command convert(const std::optional<words>&) const override {
    if (token_file_ && token_file_->empty()) refuse("--token-file: the path is empty; name a file");
    if (token_file_ && !allow_unlock_) refuse("--token-file is for --allow-unlock; give both");
    serve_options s;
    s.stores = checked_stores();
    s.hosts = checked_hosts();
    s.listen = address_or({"--listen", listen_}, s.listen);
    s.allow_unlock = allow_unlock_;
    s.token_file = token_file_.value_or("");
    s.share = number_or({"--share", share_}, 1, 50, 1) / 100.0;
    return {common(), std::move(s)};
  }

 private:
  words checked_stores() const {
    for (auto url = stores_.begin(); url != stores_.end(); ++url) {
      if (url->empty()) refuse("--store: the URL is empty; write sqlite:PATH");
      if (std::find(stores_.begin(), url, *url) != url)
        refuse("--store: " + quotable(*url) + " is given twice; give each store once");
    }
    return stores_;
  }
  words checked_hosts() const {
    for (const auto& name : hosts_)
      if (name.empty() || name.find_first_of(":/@ ") != name.npos)
        refuse("--host: '" + quotable(name) +
               "' is not a name alone; write it without scheme and port: locks.example.com");
    return hosts_;
  }

  words stores_, hosts_;
  word listen_, token_file_, share_;
  bool allow_unlock_ = false;
};

class ping_grammar : public common_grammar {
 public:
  explicit ping_grammar(const command_help& about) : common_grammar(about) {
    app_.add_option("-c,--count", count_, "how many round trips; 0 until a signal; default 4")
        ->type_name("N");
    app_.add_option("-i,--interval", interval_, "time between two round trips; default 1s")
        ->type_name("DURATION");
  }
  tool::command convert(const std::optional<words>&) const override {
    ping_options p;
    p.count = number_or({"--count", count_}, 0, 1U << 30, p.count);
    p.interval = interval_or(interval_, p.interval, std::chrono::milliseconds(1));
    return {common(), p};
  }

 private:
  word count_, interval_;
};

class doctor_grammar : public common_grammar {
 public:
  explicit doctor_grammar(const command_help& about) : common_grammar(about) {
    app_.add_option("URL", url_, "the store, as --store")->type_name("");
    app_.add_option("--stuck", stuck_, "report waits that are longer than this; default 5m")
        ->type_name("DURATION");
  }
  tool::command convert(const std::optional<words>&) const override {
    doctor_options d;
    d.stuck = duration_or({"--stuck", stuck_}, d.stuck);
    common_options c = common();
    if (url_ && url_->empty()) refuse("the URL is empty; write sqlite:PATH, or leave it out");
    if (url_ && !c.store.empty()) refuse("URL and --store are two stores; give one");
    if (url_) c.store = *url_;
    return {std::move(c), d};
  }

 private:
  word url_, stuck_;
};

class metrics_grammar : public common_grammar {
 public:
  explicit metrics_grammar(const command_help& about) : common_grammar(about) {
    app_.add_option("--format", format_, "prometheus or openmetrics; default prometheus")
        ->type_name("FORMAT");
    app_.add_option("-o,--output", output_, "replace this file, in one step, instead of printing")
        ->type_name("PATH");
  }
  tool::command convert(const std::optional<words>&) const override {
    scrape_options s;
    s.format = metrics_format_or({"--format", format_}, s.format);
    s.output = output_path({"--output", output_});
    return {common(), std::move(s)};
  }

 private:
  word format_, output_;
};

class version_grammar : public common_grammar {
 public:
  explicit version_grammar(const command_help& about) : common_grammar(about) {}
  tool::command convert(const std::optional<words>&) const override {
    return {common(), version_options{}};
  }
};

template <class Grammar>
std::unique_ptr<grammar> make(const command_help& about) {
  return std::make_unique<Grammar>(about);
}

using maker = std::unique_ptr<grammar> (*)(const command_help&);
const std::map<std::string, maker, std::less<>> grammars{
    {"run", make<run_grammar>},         {"hold", make<hold_grammar>},
    {"try", make<try_grammar>},         {"list", make<list_grammar>},
    {"show", make<show_grammar>},       {"force-unlock", make<force_unlock_grammar>},
    {"limit", make<limit_grammar>},     {"elect", make<elect_grammar>},
    {"sem", make<sem_grammar>},         {"latch", make<latch_grammar>},
    {"barrier", make<barrier_grammar>}, {"version", make<version_grammar>},
    {"top", make<top_grammar>},         {"watch", make<watch_grammar>},
    {"graph", make<graph_grammar>},     {"completion", make<completion_grammar>},
    {"manual", make<manual_grammar>},   {"ping", make<ping_grammar>},
    {"doctor", make<doctor_grammar>},   {"metrics", make<metrics_grammar>},
    {"serve", make<serve_grammar>},
};

}  // namespace

std::unique_ptr<grammar> grammar_of(const std::string& name) {
  const auto found = grammars.find(name);
  if (found != grammars.end()) return found->second(help_of(name));
  if (name.starts_with('-'))
    refuse("the command comes first: holdfast COMMAND " + quotable(name) +
           " …; holdfast --help lists the commands");
  words names{"demo", "help"};
  for (const auto& [known, make] : grammars) names.push_back(known);
  const std::string hint = did_you_mean(name, names);
  refuse("'" + quotable(name) + "' is not a command" +
         (hint.empty() ? "; holdfast --help lists them" : hint));
}

}  // namespace holdfast::tool
