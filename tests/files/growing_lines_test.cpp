// Files that grow while they are read: halves of lines, cuts, replacements, lines without end.

#include "src/files/growing_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "tests/files/test_files.h"

namespace ferry {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr size_t kAll = size_t{1} << 30;

class GrowingLines : public ::testing::Test {
 protected:
  void append(const std::string& text) { std::ofstream(file_, std::ios::app) << text; }
  /** Follows to the end and gives the lines that came; those before are forgotten at a new start.
   */
  std::vector<std::string> come(size_t bytes_max = kAll) {
    std::vector<std::string> lines;
    for (;;) {
      growth_ = follower_.follow(bytes_max, [&](std::string_view line, int64_t offset) {
        lines.emplace_back(line);
        offsets_.push_back(offset);
      });
      if (growth_.is_anew) {
        lines.clear();
        offsets_.clear();
        ++n_starts_;
      }
      if (!growth_.is_behind) return lines;
    }
  }

  test::TempDir directory_;
  fs::path file_ = directory_ / "lines";
  LineFollower follower_{file_};
  LineFollower::Growth growth_;
  std::vector<int64_t> offsets_;
  int n_starts_ = 0;
};

TEST_F(GrowingLines, ComeOnceTheyHaveTheirEnd) {
  EXPECT_THAT(come(), IsEmpty());
  EXPECT_FALSE(growth_.is_there);
  append("one\ntw");
  EXPECT_THAT(come(), ElementsAre("one"));
  EXPECT_THAT(come(), IsEmpty());
  append("o");
  EXPECT_THAT(come(), IsEmpty());
  append("\n\nthree\n");
  EXPECT_THAT(come(), ElementsAre("two", "", "three"));
  EXPECT_THAT(offsets_, ElementsAre(0, 4, 8, 9));
  EXPECT_EQ(n_starts_, 0);
}

TEST_F(GrowingLines, AreReadOnceWhateverTheLimit) {
  append("one\ntwo\nthree\n");
  EXPECT_THAT(come(1), ElementsAre("one", "two", "three"));
  append("four\n");
  const auto growth = follower_.follow(kAll, [](std::string_view, int64_t) {});
  EXPECT_EQ(growth.n_bytes, 5u);
  EXPECT_EQ(follower_.follow(kAll, [](std::string_view, int64_t) {}).n_bytes, 0u);
}

TEST_F(GrowingLines, BeginAnewWhereTheFileWasCut) {
  append("one\ntwo\nthr");
  come();
  fs::resize_file(file_, 4);
  EXPECT_THAT(come(), ElementsAre("one"));
  EXPECT_EQ(n_starts_, 1);
  append("2\n");
  EXPECT_THAT(come(), ElementsAre("2"));
  EXPECT_EQ(n_starts_, 1);
}

TEST_F(GrowingLines, BeginAnewWhereTheFileWasCutAndIsLongerNow) {
  append("one\ntwo\n");
  come();
  fs::resize_file(file_, 4);
  append("other\nand more\n");
  EXPECT_THAT(come(), ElementsAre("one", "other", "and more"));
  EXPECT_EQ(n_starts_, 1);
}

TEST_F(GrowingLines, GoOnWhereOnlyWhatWasNotReadWasCut) {
  append("one\n");
  come();
  append("torn");
  fs::resize_file(file_, 4);
  append("two\n");
  EXPECT_THAT(come(), ElementsAre("two"));
  EXPECT_EQ(n_starts_, 0);
}

TEST_F(GrowingLines, BeginAnewInAnotherFileOfTheName) {
  append("one\n");
  come();
  std::ofstream(directory_ / "other") << "one\nmore\n";
  fs::rename(directory_ / "other", file_);
  EXPECT_THAT(come(), ElementsAre("one", "more"));
  EXPECT_EQ(n_starts_, 1);
}

TEST_F(GrowingLines, StayWhereTheFileWentAway) {
  append("one\n");
  come();
  fs::remove(file_);
  EXPECT_THAT(come(), IsEmpty());
  EXPECT_FALSE(growth_.is_there);
  EXPECT_FALSE(growth_.is_anew);
  EXPECT_THAT(growth_.trouble, IsEmpty());
  append("new\n");
  EXPECT_THAT(come(), ElementsAre("new"));
  EXPECT_EQ(n_starts_, 1);
}

TEST_F(GrowingLines, ThatAreTooLongAreLeftOut) {
  const std::string longest(kLine_bytes_max, 'x'), too_long(kLine_bytes_max + 1, 'y');
  append("a\n" + longest + "\n" + too_long + "\nb\n" + std::string(8 * kLine_bytes_max, 'z'));
  EXPECT_THAT(come(), ElementsAre("a", longest, "b"));
  EXPECT_EQ(offsets_.back(), static_cast<int64_t>(2 + longest.size() + 1 + too_long.size() + 1));
  append("z\nc\n");
  EXPECT_THAT(come(1000), ElementsAre("c"));
}

TEST_F(GrowingLines, OfWhatIsNoFileAreATrouble) {
  fs::create_directory(file_);
  EXPECT_THAT(come(), IsEmpty());
  EXPECT_THAT(growth_.trouble, HasSubstr("a directory"));
  fs::remove(file_);
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  EXPECT_THAT(come(), IsEmpty());  // and does not wait for its writer
  EXPECT_THAT(growth_.trouble, HasSubstr("a pipe"));
  fs::remove(file_);
  append("one\n");
  EXPECT_THAT(come(), ElementsAre("one"));
}

TEST_F(GrowingLines, AreReadFromAPlaceOn) {
  append("one\ntwo\nthree\nlast");
  std::vector<std::string> lines;
  const auto keep = [&](std::string_view line, int64_t) {
    lines.emplace_back(line);
    return lines.size() < 3;
  };
  read_lines(file_, 4, keep);
  EXPECT_THAT(lines, ElementsAre("two", "three", "last"));
  lines.clear();
  read_lines(file_, 0, keep);
  EXPECT_THAT(lines, ElementsAre("one", "two", "three"));
}

TEST(LineSplitter, GivesTheSameForEveryWayToCutAText) {
  const std::string text = "\none\n\ntwo three\n" + std::string(20, 'x') + "\nrest";
  std::vector<std::pair<std::string, int64_t>> whole;
  LineSplitter of_whole;
  of_whole.add(text, [&](std::string_view line, int64_t at) { whole.emplace_back(line, at); });
  for (size_t piece = 1; piece < text.size(); ++piece) {
    std::vector<std::pair<std::string, int64_t>> lines;
    LineSplitter splitter;
    for (size_t at = 0; at < text.size(); at += piece)
      splitter.add(std::string_view(text).substr(at, piece),
                   [&](std::string_view line, int64_t at) { lines.emplace_back(line, at); });
    EXPECT_EQ(lines, whole) << piece;
    EXPECT_EQ(splitter.rest(), "rest");
    EXPECT_EQ(splitter.rest_begin(), static_cast<int64_t>(text.size()) - 4);
  }
}

}  // namespace
}  // namespace ferry
