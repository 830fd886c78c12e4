#include "tool/manual.hpp"

#include <fstream>

#include "tool/cli.hpp"
#include "tool/cli_words.hpp"
#include "tool/completion.hpp"
#include "tool/fixture.hpp"

namespace tool_test::manual_test {

namespace {

using holdfast::tool::command_words;
using holdfast::tool::completion_script;
using holdfast::tool::manual_page_of;
using holdfast::tool::manual_source;
using holdfast::tool::whole_grammar;

class manual : public holdfast_tool {};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// fish's form of an option: "-l wait" for --wait, "-s w" for -w.
std::string fish_word(const std::string& option) {
  return option.starts_with("--") ? " -l " + option.substr(2) + ' '
                                  : " -s " + option.substr(1) + ' ';
}

/// The part of a script between two marks.
std::string between(const std::string& text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  if (at == text.npos) return {};
  return text.substr(at, text.find(to, at + from.size()) - at);
}

}  // namespace

TEST(whole_grammar, every_option_is_in_help_manual_and_the_completions_of_all_shells) {
  const auto bash = completion_script("bash");
  const auto zsh = completion_script("zsh");
  const auto fish = completion_script("fish");
  ASSERT_GE(whole_grammar().size(), 17u);
  for (const command_words& c : whole_grammar()) {
    const std::string name(c.about.name);
    const auto help = holdfast::tool::parse(words{name, "--help"}).help;
    const auto page = manual_source(manual_page_of(c.about));
    const auto in_bash = between(bash, "    " + name + ")\n", ";;");
    const auto in_zsh = between(zsh, "    " + name + ")\n", ";;");
    ASSERT_GE(c.options.size(), 6u) << name;
    for (const auto& option : c.options) {
      std::string of_fish;
      for (const auto& one : option.names) {
        SCOPED_TRACE(name + ' ' + one);
        EXPECT_TRUE(has(help, one));
        EXPECT_TRUE(has(page, '*' + one + '*'));
        EXPECT_TRUE(has(in_bash, ' ' + one) || has(in_bash, '\'' + one));
        EXPECT_TRUE(has(in_zsh, ')' + one + '[') || has(in_zsh, ')' + one + '=') ||
                    has(in_zsh, ')' + one + '+') || has(in_zsh, '*' + one));
        of_fish += fish_word(one);
        of_fish.pop_back();
      }
      EXPECT_TRUE(has(fish, "'__holdfast_at " + name + '\'' + of_fish + ' ')) << of_fish;
      for (const auto& choice : option.choices) EXPECT_TRUE(has(in_bash, choice)) << choice;
    }
    EXPECT_TRUE(has(holdfast::tool::overview(), "holdfast " + name)) << name;
    EXPECT_TRUE(has(manual_source("holdfast"), "*holdfast-" + name + "*(1)")) << name;
  }
}

TEST_F(manual, every_page_renders_without_a_warning) {
  const auto pages = tool({"manual"}).out;
  std::istringstream in(pages);
  int count = 0;
  for (std::string page; std::getline(in, page); ++count) {
    const auto source = tool({"manual", page});
    ASSERT_EQ(source.code, 0) << page;
    const auto roff = run_to_end({"scdoc"}, around, source.out);
    ASSERT_EQ(roff.code, 0) << page << ": " << roff.err;
    const auto shown =
        run_to_end({"groff", "-K", "utf8", "-man", "-Tutf8", "-ww", "-P-cbou"}, around, roff.out);
    EXPECT_EQ(shown.code, 0) << page;
    EXPECT_EQ(shown.err, "") << page;
    EXPECT_TRUE(has(shown.out, page + "(1)")) << shown.out;
    EXPECT_FALSE(has(shown.out, "\\")) << page << ": " << shown.out;
  }
  EXPECT_GE(count, 18);
}

TEST_F(manual, a_page_that_is_not_there_is_answered_with_the_nearest) {
  const auto r = tool({"manual", "holdfast-wach"});
  EXPECT_EQ(r.code, 64);
  EXPECT_TRUE(has(r.err, "did you mean holdfast-watch?")) << r.err;
  EXPECT_TRUE(has(tool({"manual", "run"}).err, "did you mean holdfast-run?"));
  EXPECT_TRUE(has(tool({"manual", "qqqq"}).err, "holdfast manual lists them"));
}

}  // namespace tool_test::manual_test
