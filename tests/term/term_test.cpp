// Drawing for terminals, character by character: with UTF-8 and without, with colour and without,
// wide and narrow.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "src/term/confusion.h"
#include "src/term/curve.h"
#include "src/term/progress.h"
#include "src/term/table.h"

namespace ferry::term {
namespace {

constexpr Terminal kUtf8 = {true, false, true, 80}, kAscii = {true, false, false, 80};
constexpr Terminal kColor = {true, true, true, 80}, kPipe = {false, false, true, 80};

TEST(Text, WidthIsWhatTheTerminalShows) {
  EXPECT_EQ(display_width("abc"), 3);
  EXPECT_EQ(display_width("naïve"), 5);
  EXPECT_EQ(display_width("nai\u0308ve"), 5);  // a combining mark
  EXPECT_EQ(display_width("日本"), 4);
  EXPECT_EQ(display_width("\xff\xfe"), 2);
  EXPECT_EQ(display_width(""), 0);
}

TEST(Text, NothingThatIsPrintedCanDisturbTheTerminal) {
  EXPECT_EQ(printable("a\x1b[31mb\n\tc\x7f", kUtf8), "a?[31mb??c?");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m",
                      kUtf8),
            "?31m");  // C1 control
  EXPECT_EQ(printable("a\u202e"
                      "b",
                      kUtf8),
            "a?b");  // turns the direction
  EXPECT_EQ(printable("\xff\xc0\x80\xed\xa0\x80", kUtf8), "??????");
  EXPECT_EQ(printable("naïve 日", kUtf8), "naïve 日");
  EXPECT_EQ(printable("naïve 日", kAscii), "na?ve ?");
}

TEST(Text, FitsByColumnsNotBytes) {
  EXPECT_EQ(fitted("business", 8, kUtf8), "business");
  EXPECT_EQ(fitted("entertainment", 8, kUtf8), "enterta…");
  EXPECT_EQ(fitted("entertainment", 8, kAscii), "enterta~");
  EXPECT_EQ(fitted("日本語", 4, kUtf8), "日…");
  EXPECT_EQ(fitted("abc", 0, kUtf8), "");
}

TEST(Text, Durations) {
  EXPECT_EQ(format_duration(0.4), "0 s");
  EXPECT_EQ(format_duration(59.6), "1 min 00 s");
  EXPECT_EQ(format_duration(200), "3 min 20 s");
  EXPECT_EQ(format_duration(3840), "1 h 04 min");
  EXPECT_EQ(format_duration(183600), "2 d 3 h");
  EXPECT_EQ(format_duration(-1), "?");
  EXPECT_EQ(format_duration(std::nan("")), "?");
}

TEST(Detection, FollowsTheVariables) {
  auto with = [](const char* name, const char* value) {
    const char* old = std::getenv(name);
    std::string kept = old ? old : "";
    setenv(name, value, 1);
    Terminal terminal = detect_terminal(-1);
    if (old)
      setenv(name, kept.c_str(), 1);
    else
      unsetenv(name);
    return terminal;
  };
  EXPECT_TRUE(with("LC_ALL", "de_DE.UTF-8").has_utf8);
  EXPECT_TRUE(with("LC_ALL", "C.utf8").has_utf8);
  EXPECT_FALSE(with("LC_ALL", "C").has_utf8);
  EXPECT_EQ(with("COLUMNS", "132").width, 132);
  EXPECT_EQ(with("COLUMNS", "-5").width, 80);
  EXPECT_FALSE(detect_terminal(-1).has_color);
  EXPECT_FALSE(detect_terminal(-1).is_terminal);
}

TEST(TableText, AlignsByColumns) {
  Table table({{"tag"}, {"bytes", Align::right}});
  table.add_row({"weights", "43.3 MiB"});
  table.add_row({"größe", "9 B"});
  table.add_rule();
  table.add_row({"in all", "43.3 MiB"});
  EXPECT_EQ(table.text(kUtf8),
            "tag         bytes\n"
            "weights  43.3 MiB\n"
            "größe         9 B\n"
            "─────────────────\n"
            "in all   43.3 MiB\n");
  EXPECT_EQ(table.text(kAscii),
            "tag         bytes\n"
            "weights  43.3 MiB\n"
            "gr??e         9 B\n"
            "-----------------\n"
            "in all   43.3 MiB\n");
  EXPECT_TRUE(table.text(kColor).starts_with("\x1b[1mtag         bytes\x1b[0m\nweights"));
}

TEST(TableText, GivesWayOnANarrowTerminalOnly) {
  Table table({{""}, {""}});
  table.add_row({"key", "a long text that does not fit into so few columns"});
  Terminal narrow = kUtf8;
  narrow.width = 20;
  EXPECT_EQ(table.text(narrow), "key  a long text th…\n");
  Terminal pipe = kPipe;
  pipe.width = 20;
  EXPECT_EQ(table.text(pipe), "key  a long text that does not fit into so few columns\n");
}

TEST(TableText, BarsGiveWayUncut) {
  Terminal narrow = kUtf8;
  for (const auto& [width, columns] : {std::pair{80, 24}, {55, 17}, {20, 8}}) {
    narrow.width = width;
    EXPECT_EQ(bar_width(narrow), columns) << width;
  }
  Table table({{"a"}, {""}});
  table.add_row({"b", bar(10, 10, 16, narrow)});
  table.add_row({"c", bar(5, 10, 16, narrow) + "    "});  // what is empty takes no column
  EXPECT_EQ(table.text(narrow), "a\nb  ████████████████\nc  ████████\n");
}

TEST(Bar, IsProportional) {
  EXPECT_EQ(bar(0, 10, 4, kUtf8), "    ");
  EXPECT_EQ(bar(10, 10, 4, kUtf8), "████");
  EXPECT_EQ(bar(5, 10, 4, kUtf8), "██  ");
  EXPECT_EQ(bar(3, 10, 4, kUtf8), "█▎  ");
  EXPECT_EQ(bar(20, 10, 4, kUtf8), "████");
  EXPECT_EQ(bar(5, 10, 4, kAscii), "##  ");
  EXPECT_EQ(bar(5, 0, 4, kAscii), "    ");
  EXPECT_EQ(bar(std::nan(""), 10, 4, kAscii), "    ");
}

TEST(Curve, FallsInAscii) {
  const double values[] = {4, 3, 2, 1};
  EXPECT_EQ(draw_curve(values, {.width = 12, .height = 4, .title = "loss"}, kAscii),
            "loss\n"
            "4 +**\n"
            "  |  **\n"
            "  |    **\n"
            "1 +      **\n"
            "   1 step 4\n");
}

TEST(Curve, FallsInBraille) {
  const double values[] = {4, 3, 2, 1};
  EXPECT_EQ(draw_curve(values, {.width = 12, .height = 2}, kUtf8),
            "4 ┤⠉⠒⠤⣀\n"
            "1 ┤    ⠉⠒⠤⣀\n"
            "   1 step 4\n");
}

TEST(Curve, ManyValuesAreAveragedAndGapsStay) {
  std::vector<double> values(1000, 1.0);
  for (size_t i = 0; i < 500; ++i)
    values[i] = 3.0;
  for (size_t i = 200; i < 400; ++i)
    values[i] = std::nan("");
  EXPECT_EQ(draw_curve(values, {.width = 13, .height = 2}, kAscii),
            "3 +** **\n"
            "1 +     ****\n"
            "   1 step 1000\n"
            "(200 values that are not finite are left out)\n");
}

TEST(Curve, AnythingIsDrawable) {
  EXPECT_EQ(draw_curve({}, {}, kUtf8), "");
  const double bad[] = {std::nan(""), std::numeric_limits<double>::infinity()};
  EXPECT_EQ(draw_curve(bad, {}, kUtf8), "");
  const double one[] = {0.5};
  EXPECT_FALSE(draw_curve(one, {}, kUtf8).empty());
  const double flat[] = {2, 2, 2};
  EXPECT_FALSE(draw_curve(flat, {.width = 5, .height = 1}, kAscii).empty());
  const double huge[] = {-1e308, 1e308};
  EXPECT_FALSE(draw_curve(huge, {}, kUtf8).empty());
  EXPECT_NE(draw_curve(flat, {}, kColor).find("\x1b[36m"), std::string::npos);
}

TEST(Confusion, RowsAreTrueColumnsPredicted) {
  const std::string labels[] = {"business", "sport", "tech"};
  const int64_t counts[] = {98, 0, 2, 0, 50, 0, 5, 1, 94};
  EXPECT_EQ(draw_confusion_matrix(labels, counts, kUtf8),
            "true \\ predicted  business  sport  tech    right\n"
            "        business        98      ·     2   98.0 %\n"
            "           sport         ·     50     ·  100.0 %\n"
            "            tech         5      1    94   94.0 %\n");
  EXPECT_EQ(draw_confusion_matrix(labels, counts, kAscii).find("\xc2"), std::string::npos);
  std::string colored = draw_confusion_matrix(labels, counts, kColor);
  EXPECT_NE(colored.find("\x1b[32m      98\x1b[0m"), std::string::npos);  // right: green
  EXPECT_NE(colored.find("\x1b[31m   2\x1b[0m"), std::string::npos);      // wrong: red
}

TEST(Confusion, ALabelWithoutSamplesHasNoShare) {
  const std::string labels[] = {"a", "b"};
  const int64_t counts[] = {3, 0, 0, 0};
  EXPECT_EQ(draw_confusion_matrix(labels, counts, kUtf8),
            "true \\ predicted  a  b    right\n"
            "               a  3  ·  100.0 %\n"
            "               b  ·  0        -\n");
}

TEST(Confusion, ManyLabelsBecomeAList) {
  std::vector<std::string> labels;
  for (int i = 0; i < 40; ++i)
    labels.push_back("label" + std::to_string(i));
  std::vector<int64_t> counts(1600, 0);
  EXPECT_EQ(draw_confusion_matrix(labels, counts, kUtf8), "40 labels, none taken for another\n");
  counts[3 * 40 + 7] = 12;
  counts[8 * 40 + 1] = 30;
  EXPECT_EQ(draw_confusion_matrix(labels, counts, kUtf8),
            "true    predicted  count\n"
            "label8  label1        30\n"
            "label3  label7        12\n");
  for (size_t i = 0; i < 20; ++i)
    counts[i * 40 + 39] = 1;
  EXPECT_TRUE(draw_confusion_matrix(labels, counts, kUtf8).ends_with("and 12 other pairs\n"));
}

TEST(ProgressText, EstimatesOnlyWhenItCan) {
  ProgressState state{"training", "step", 2, 100, 0, 5.0, "loss 0.512"};
  EXPECT_EQ(progress_text(state, kUtf8),
            "training ▕▍                   ▏   2 %  2/100  estimating  loss 0.512");
  state.done = 50;
  EXPECT_EQ(progress_text(state, kAscii),
            "training [#########         ]  50 %  50/100  10.0 steps/s  5 s left  loss 0.512");
  state.detail = "loss 0.5120  lr 5.00e-05  grad 1.22";  // the bar goes before a number does
  EXPECT_EQ(progress_text(state, kAscii),
            "training  50 %  50/100  10.0 steps/s  5 s left  loss 0.5120  lr 5.00e-05");
  state.detail = {};
  state.done = 100;
  state.elapsed_s = 250;
  EXPECT_EQ(progress_text(state, kPipe), "training 100 %  100/100  2.50 s/step  4 min 10 s");
}

TEST(ProgressText, KeepsTheLossOnAnyTerminal) {
  const ProgressState state{"training",
                            "step",
                            1240,
                            12400,
                            0,
                            3000.0,
                            "loss 0.5120  lr 5.00e-05  grad 1.22  812 tokens/s  1.2 GiB"};
  Terminal terminal = kAscii;
  for (const auto& [width, text] : std::initializer_list<std::pair<int, const char*>>{
           {101,
            "training  10 %  1240/12400  2.42 s/step  7 h 30 min left  loss 0.5120  lr 5.00e-05  "
            "grad 1.22"},
           {80, "training  10 %  1240/12400  2.42 s/step  7 h 30 min left  loss 0.5120"},
           {60, "training  10 %  1240/12400  7 h 30 min left  loss 0.5120"},
           {45, "training  10 %  1240/12400  loss 0.5120"}}) {
    terminal.width = width;
    EXPECT_EQ(progress_text(state, terminal), text) << width;
  }
}

TEST(ProgressText, CountsTheRateOfThisSessionOnly) {
  ProgressState state{"training", "step", 60, 100, 50, 10.0, {}};
  EXPECT_EQ(progress_text(state, kPipe), "training  60 %  60/100  1.0 steps/s  40 s left");
}

TEST(ProgressText, WorksWithoutATotalAndStaysOnTheLine) {
  ProgressState state{"reading", "row", 1200, 0, 0, 2.0, {}};
  EXPECT_EQ(progress_text(state, kPipe), "reading 1200  600 rows/s  2 s");
  Terminal narrow = kUtf8;
  narrow.width = 24;
  state.detail = "a long detail that cannot fit";
  EXPECT_EQ(display_width(progress_text(state, narrow)), 23);
}

class ProgressLines : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "ferry-progress-XXXXXX").string();
    int descriptor = mkstemp(name.data());
    path_ = name;
    file_ = fdopen(descriptor, "w");
  }
  void TearDown() override { std::filesystem::remove(path_); }
  std::string written() {
    std::fclose(file_);
    std::ifstream stream(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  std::string path_;
  std::FILE* file_ = nullptr;
};

TEST_F(ProgressLines, APipeGetsALineForEachTenth) {
  {
    Progress progress(file_, kPipe, "training", 1000);
    for (int i = 1; i <= 1000; ++i)
      progress.update(i, "loss 0.5");
    progress.finish();
  }
  std::string text = written();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 11);  // the first, and ten tenths
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("1000/1000"), std::string::npos);
}

TEST_F(ProgressLines, ATerminalGetsOneLineThatIsRewritten) {
  {
    Progress progress(file_, kUtf8, "training", 10);
    progress.update(1);
    progress.log_line("checkpoint written");
    progress.update(10);
    progress.finish();
  }
  std::string text = written();
  EXPECT_NE(text.find("\r\x1b[Kcheckpoint written\n"), std::string::npos);
  EXPECT_NE(text.find("10/10"), std::string::npos);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_EQ(text.back(), '\n');
}

TEST_F(ProgressLines, AnOpenLineEndsWithTheObject) {
  {
    Progress progress(file_, kUtf8, "training", 10);
    progress.update(1);
  }
  EXPECT_EQ(written().back(), '\n');
}

}  // namespace
}  // namespace ferry::term
