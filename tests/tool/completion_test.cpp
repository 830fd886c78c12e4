#include "tool/completion.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <holdfast/holdfast.hpp>
#include <sstream>

#include "harness/eventually.hpp"
#include "harness/redis_server.hpp"
#include "harness/tcp.hpp"
#include "paths.hpp"
#include "tool/fixture.hpp"
#include "tool/tmux.hpp"

namespace tool_test::completion_test {

namespace {

using holdfast::tool::bash_completion_of;
using holdfast::tool::read_bash_word;

class shell_line;

/// Its shells find a `holdfast` that completes names however long the store takes: half a second,
/// the limit of the program, may be over on a loaded machine before it has begun.
class completion : public holdfast_tool {
 protected:
  completion() {
    const auto bin = folder.path() / "bin";
    std::filesystem::create_directory(bin);
    std::ofstream(patient_) << "#!/bin/sh\nexec env --block-signal=ALRM '" HOLDFAST_TOOL
                               "' \"$@\"\n";
    std::filesystem::permissions(patient_, std::filesystem::perms::owner_all);
    around.environment.push_back("PATH=" + bin.string() + ':' + std::getenv("PATH"));
  }
  /// Makes the name used, without a process that holds it.
  void use(const std::string& name) const {
    ASSERT_EQ(tool({"latch", "--down", "1", "--", name, "2"}).code, 0) << name;
  }
  std::string names(words more) const {
    more.insert(more.begin(), {patient_, "completion", "names"});
    const auto r = run_to_end(more, around);
    EXPECT_EQ(r.code, 0);
    EXPECT_EQ(r.err, "");
    return r.out;
  }
  /// The common behaviour of bash and zsh.
  void completes_words(shell_line& shell) const;

 private:
  const std::string patient_ = folder.file("bin/holdfast");
};

/// A shell as people have it, with the script; `holdfast` prints the words that it gets.
class shell_line {
 public:
  /// `settings` are read by the shell before the script.
  shell_line(harness::surroundings around, const std::string& shell, const std::string& command,
             const std::string& settings)
      : screen_(without_history(std::move(around)), command, 120) {
    screen_.type("PS1='> '; " + settings + "\n");
    screen_.type("source <(holdfast completion " + shell + ")\n");
    screen_.type("holdfast() { printf '<%s>' \"$@\"; echo end; }; echo ready$((1))\n");
    screen_.shows("ready1");
  }

  /// The program's arguments when this is typed, then TAB, then `more` and ENTER: "<show><a b>"
  std::string after_tab(const std::string& typed, const std::string& more = "") {
    screen_.type("clear; echo at$((" + std::to_string(++line_) + "))\n");
    screen_.shows("at" + std::to_string(line_));
    screen_.type("holdfast " + typed + "\t" + more + "\n");
    screen_.shows("end\n");
    const std::string all = screen_.screen();
    const auto end = all.find("end\n");
    const auto from = all.rfind("\n<", end) + 1;
    return all.substr(from, end - from);
  }
  /// Checks the words that are offered where several fit.
  void offers(const std::string& typed, const words& all) {
    screen_.type("clear; echo at$((" + std::to_string(++line_) + "))\n");
    screen_.shows("at" + std::to_string(line_));
    screen_.type("holdfast " + typed + "\t");
    for (const auto& one : all) screen_.shows(one);
    screen_.press({"C-c"});
  }

 private:
  static harness::surroundings without_history(harness::surroundings around) {
    around.environment.push_back("HISTFILE=/dev/null");
    return around;
  }
  const tmux screen_;
  int line_ = 0;
};

void completion::completes_words(shell_line& shell) const {
  for (const auto* name : {"order:1000", "order:2000", "zebra"}) use(name);
  EXPECT_EQ(shell.after_tab("sho", "x"), "<show><x>");
  EXPECT_EQ(shell.after_tab("help vers"), "<help><version>");
  EXPECT_EQ(shell.after_tab("run x --on-lost w"), "<run><x><--on-lost><warn>");
  EXPECT_EQ(shell.after_tab("run x --on-lost=w"), "<run><x><--on-lost=warn>");
  EXPECT_EQ(shell.after_tab("manual holdfast-wa"), "<manual><holdfast-watch>");
  EXPECT_EQ(shell.after_tab("show z"), "<show><zebra>");
  EXPECT_EQ(shell.after_tab("run -n --ttl 3s order:2", "-- true"),
            "<run><-n><--ttl><3s><order:2000><--><true>");
  EXPECT_EQ(shell.after_tab("show -- z"), "<show><--><zebra>");
  shell.offers("watch x --until ", {"granted", "hand-over", "free"});
}

class bash_line : public shell_line {
 public:
  explicit bash_line(const harness::surroundings& around)
      : shell_line(around, "bash", "bash --norc --noprofile",
                   "bind 'set show-all-if-ambiguous on'; bind 'set bell-style none'") {}
};

class zsh_line : public shell_line {
 public:
  explicit zsh_line(const harness::surroundings& around, const std::string& dump)
      : shell_line(around, "zsh", "zsh -f",
                   "unsetopt beep; autoload -Uz compinit; compinit -u -d " + dump) {}
};

/// fish's offers for a line, without the descriptions.
class fish_line {
 public:
  explicit fish_line(harness::surroundings around) : around_(std::move(around)) {}
  std::string offers(const std::string& typed) const {
    const auto r = run_to_end({"fish", "--no-config", "-c",
                               "holdfast completion fish | source; complete -C $argv[1]; or true",
                               "--", "holdfast " + typed},
                              around_);
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(r.err, "");
    std::string all;
    std::istringstream lines(r.out);
    for (std::string line; std::getline(lines, line);)
      all += line.substr(0, line.find('\t')) + '\n';
    return all;
  }

 private:
  harness::surroundings around_;
};

}  // namespace

TEST_F(completion, bash_completes_commands_options_values_and_names) {
  bash_line bash(around);
  completes_words(bash);
  EXPECT_EQ(bash.after_tab("run x --on-l", "kill"), "<run><x><--on-lost><kill>");
  EXPECT_EQ(bash.after_tab("list --sort le", "x"), "<list><--sort><lease><x>");
  EXPECT_EQ(bash.after_tab("completion zs"), "<completion><zsh>");
  EXPECT_EQ(bash.after_tab("show order:1"), "<show><order:1000>");
  EXPECT_EQ(bash.after_tab("sem zebra ", "3"), "<sem><zebra><3>") << "a count is no name";
  bash.offers("show order:", {"1000", "2000"});
}

TEST_F(completion, bash_completes_the_command_after_the_dashes_and_files) {
  bash_line bash(around);
  EXPECT_EQ(bash.after_tab("run x -- base6"), "<run><x><--><base64>");
  const std::string file = folder.file("a file");
  std::filesystem::create_directory(file);
  EXPECT_EQ(bash.after_tab("run x -- cat " + folder.file("a"), " -"),
            "<run><x><--><cat><" + file + "/><->");
  EXPECT_EQ(bash.after_tab("run x --fence-file " + folder.file("a"), " -"),
            "<run><x><--fence-file><" + file + "/><->");
}

TEST_F(completion, zsh_completes_commands_options_values_names_and_files) {
  zsh_line zsh(around, folder.file("dump"));
  completes_words(zsh);
  EXPECT_EQ(zsh.after_tab("run x --on-l", "kill"), "<run><x><--on-lost=kill>");
  EXPECT_EQ(zsh.after_tab("run x -- base6"), "<run><x><--><base64>");
  zsh.offers("show order:", {"order:1000", "order:2000"});
  const std::string file = folder.file("a file");
  std::ofstream(file) << "text";
  EXPECT_EQ(zsh.after_tab("run x --fence-file " + folder.file("a")),
            "<run><x><--fence-file><" + file + ">");
}

TEST_F(completion, fish_completes_commands_options_values_names_and_files) {
  for (const auto* name : {"order:1000", "order:2000", "zebra"}) use(name);
  const fish_line fish(around);
  EXPECT_EQ(fish.offers("sho"), "show\n");
  EXPECT_EQ(fish.offers("help vers"), "version\n");
  EXPECT_EQ(fish.offers("run x --on-l"), "--on-lost\n");
  EXPECT_EQ(fish.offers("run x --on-lost w"), "warn\n");
  EXPECT_EQ(fish.offers("run x --on-lost=w"), "--on-lost=warn\n");
  EXPECT_EQ(fish.offers("manual holdfast-wa"), "holdfast-watch\n");
  EXPECT_EQ(fish.offers("show z"), "zebra\n");
  EXPECT_EQ(fish.offers("show order:"), "order:1000\norder:2000\n");
  EXPECT_EQ(fish.offers("run -n --ttl 3s order:2"), "order:2000\n");
  EXPECT_EQ(fish.offers("sem zebra "), "") << "a count is no name";
  EXPECT_EQ(fish.offers("show -- z"), "zebra\n");
  EXPECT_EQ(fish.offers("show -- --sto"), "") << "after -- nothing is an option";
  EXPECT_EQ(fish.offers("run x -- base6"), "base64\n");
  const std::string file = folder.file("a-file");
  std::ofstream(file) << "text";
  EXPECT_EQ(fish.offers("run x --fence-file " + folder.file("a")), file + "\n");
}

TEST_F(completion, zsh_and_fish_read_the_store_that_the_command_line_names) {
  const std::string other = "sqlite:" + folder.file("other.db");
  ASSERT_EQ(tool({"latch", "zebra", "2", "--down", "1", "--store", other}).code, 0);
  zsh_line zsh(around, folder.file("dump"));
  const fish_line fish(around);
  for (const std::string& option : {" --store " + other, " --store=" + other}) {
    EXPECT_EQ(fish.offers("show" + option + " z"), "zebra\n") << option;
    EXPECT_EQ(zsh.after_tab("show" + option + " z").substr(0, 14), "<show><--store") << option;
    EXPECT_TRUE(zsh.after_tab("show" + option + " z").ends_with("<zebra>")) << option;
  }
  EXPECT_EQ(fish.offers("show --store $HOLDFAST_STORE z"), "");
  EXPECT_EQ(zsh.after_tab("show --store $HOLDFAST_STORE z", "x"),
            "<show><--store><" + store + "><zx>");
}

TEST_F(completion, bash_reads_the_store_that_the_command_line_names) {
  const std::string other = "sqlite:" + folder.file("other.db");
  ASSERT_EQ(tool({"latch", "zebra", "2", "--down", "1", "--store", other}).code, 0);
  bash_line bash(around);
  EXPECT_EQ(bash.after_tab("show --store " + other + " z"),
            "<show><--store><" + other + "><zebra>");
  EXPECT_EQ(bash.after_tab("show --store=" + other + " z"), "<show><--store=" + other + "><zebra>");
  EXPECT_EQ(bash.after_tab("show --store '" + other + "' z"),
            "<show><--store><" + other + "><zebra>");
  EXPECT_EQ(bash.after_tab("show --store \"$HOLDFAST_STORE\" z"),
            "<show><--store><" + store + "><z>");
}

TEST_F(completion, bash_gets_each_name_as_one_word_that_does_nothing) {
  const words evil{"a b; touch pwned",
                   "b$(touch pwned)",
                   "c`touch pwned`",
                   "d'touch pwned",
                   "e\"touch pwned",
                   "f\\ pwned",
                   "g*",
                   "h!x",
                   "i&touch pwned|x>y",
                   "j#{1,2}",
                   "über",
                   "l\xe2\x80\xae"};
  for (const auto& name : evil) use(name);
  auto inside = around;
  inside.environment.push_back("HISTFILE=/dev/null");
  inside.folder = folder.path().string();
  bash_line bash(inside);
  for (std::size_t i = 0; i + 1 < evil.size(); ++i) {
    const std::string begin = evil[i].substr(0, i == 10 ? 2 : 1);
    EXPECT_EQ(bash.after_tab("show " + begin), "<show><" + evil[i] + ">");
  }
  EXPECT_EQ(bash.after_tab("show 'a"), "<show><" + evil[0] + ">") << "in quotes";
  EXPECT_EQ(bash.after_tab("show \"a"), "<show><" + evil[0] + ">") << "in quotes";
  EXPECT_EQ(bash.after_tab("show a\\ b"), "<show><" + evil[0] + ">");
  EXPECT_EQ(bash.after_tab("show l"), "<show><l>")
      << "a name that hides its letters is not offered";
  EXPECT_FALSE(std::filesystem::exists(folder.file("pwned")));
}

TEST_F(completion, zsh_and_fish_get_each_name_as_one_word) {
  const words evil{"a b; touch pwned", "b$(touch pwned)", "c`touch pwned`", "d'touch pwned", "g*"};
  for (const auto& name : evil) use(name);
  auto inside = around;
  inside.folder = folder.path().string();
  zsh_line zsh(inside, folder.file("dump"));
  const fish_line fish(inside);
  for (const auto& name : evil) {
    EXPECT_EQ(zsh.after_tab("show " + name.substr(0, 1)), "<show><" + name + ">");
    EXPECT_EQ(fish.offers("show " + name.substr(0, 1)), name + "\n");
  }
  EXPECT_EQ(zsh.after_tab("show 'a"), "<show><" + evil[0] + ">") << "in quotes";
  for (const auto* store_word : {"'$a[$(touch pwned)]'", "'$(touch pwned)'", "'`touch pwned`'"})
    EXPECT_TRUE(zsh.after_tab("show --store " + std::string(store_word) + " g").ends_with("<g>"));
  EXPECT_FALSE(std::filesystem::exists(folder.file("pwned")));
}

TEST_F(completion, names_of_an_unavailable_store_are_not_completed_and_nothing_is_made) {
  EXPECT_EQ(names({"x", "--store", "sqlite:" + folder.file("none.db")}), "");
  EXPECT_FALSE(std::filesystem::exists(folder.file("none.db")));
  const std::string file = folder.file("store.url");
  std::ofstream(file) << "sqlite:" << folder.file("none.db") << '\n';
  EXPECT_EQ(names({"x", "--store", "file:" + file}), "");
  EXPECT_FALSE(std::filesystem::exists(folder.file("none.db"))) << "a file: URL names it";
  EXPECT_EQ(names({"x", "--store", "nonsense:"}), "");
  EXPECT_EQ(names({"x", "--store", "memory:"}), "");
}

TEST_F(completion, no_message_appears_in_the_middle_of_the_line) {
  const harness::redis_server server;
  around.environment.front() = "HOLDFAST_STORE=" + server.url("?dialect=setnx");
  const words line{"env", "--block-signal=ALRM", HOLDFAST_TOOL, "completion", "names", "x"};
  const auto warned = run_to_end(line, around);
  EXPECT_EQ(warned.code, 0);
  EXPECT_EQ(warned.out + warned.err, "");
}

TEST_F(completion, names_begin_with_the_word_and_pattern_signs_count_as_letters) {
  use("a*b");
  use("axb");
  EXPECT_EQ(names({"a*"}), "a*b\n");
  EXPECT_EQ(names({"a"}), "a*b\naxb\n");
  EXPECT_EQ(names({"--bash", "--", "a"}), "a\\*b\naxb\n");
}

TEST_F(completion, a_store_that_never_answers_does_not_keep_the_shell) {
  const harness::fake_server silent{[](std::string&) { return std::optional<std::string>(""); }};
  const std::string url = "redis://127.0.0.1:" + std::to_string(silent.port());
  around.environment.front() = "HOLDFAST_STORE=" + url + "?connect_timeout=60s";
  // Half a second, or the minute that a session would wait: timeout(1) distinguishes these.
  words line{"timeout", "8", HOLDFAST_TOOL, "completion", "names"};
  EXPECT_EQ(run_to_end(line, around).code, 0);
}

TEST(bash_words, are_read_as_bash_means_them) {
  const auto text = [](const char* typed) {
    const auto w = read_bash_word(typed);
    return w ? w->text : "?";
  };
  EXPECT_EQ(text(""), "");
  EXPECT_EQ(text("a\\ b"), "a b");
  EXPECT_EQ(text("'a\\ $b"), "a\\ $b");
  EXPECT_EQ(text("\"a b\""), "a b");
  EXPECT_EQ(text("\"a\\\"b"), "a\"b");
  for (const char* no : {"$a", "`a", "\"$a", "a'b", "a\"b", "'a'b", "\"a\"b"})
    EXPECT_EQ(text(no), "?") << no;
}

TEST(bash_words, are_quoted_so_that_the_shell_gets_the_name) {
  EXPECT_EQ(bash_completion_of("order:1000/é", 0), "order:1000/é");
  EXPECT_EQ(bash_completion_of("a b$;", 0), "a\\ b\\$\\;");
  EXPECT_EQ(bash_completion_of("a b$;", '\''), "a b$;");
  EXPECT_EQ(bash_completion_of("a'b", '\''), std::nullopt);
  EXPECT_EQ(bash_completion_of("a$b", '"'), std::nullopt);
}

}  // namespace tool_test::completion_test
