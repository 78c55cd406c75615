// README.md and the manual pages beside the code: links lead somewhere, every page is listed in
// README.md, and the options that pages name exist.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>

#include "src/config/command_line/foreign_flags.h"
#include "src/config/options/option.h"
#include "tests/config/config_fixture.h"

namespace ferry::config {
namespace {

namespace fs = std::filesystem;

constexpr size_t kReadmeLines = 220;
const fs::path kRoot = FERRY_SOURCE_ROOT;

std::string text_of(const fs::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/** All pages of the source tree, README.md among them; builds, runs and environments are left out.
 */
std::vector<fs::path> pages() {
  std::vector<fs::path> result = {kRoot / "README.md"};
  for (const char* room : {"src", "offload", "models", "simd", "scripts", "tests", "presets"})
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / room))
      if (entry.path().extension() == ".md") result.push_back(entry.path());
  return result;
}

/** The text without code blocks: their lines begin with four spaces or stand between fences. */
std::string prose_of(const std::string& page) {
  std::istringstream lines(page);
  std::string result;
  bool in_fence = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) in_fence = !in_fence;
    if (!in_fence && !line.starts_with("    ")) result += line + "\n";
  }
  return result;
}

/** The names that a page's headings have in links: lower case, words joined by dashes. */
std::set<std::string> anchors_of(const fs::path& page) {
  std::istringstream lines(prose_of(text_of(page)));
  std::set<std::string> result;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('#')) continue;
    std::string anchor;
    for (char c : line.substr(std::min(line.find(' ') + 1, line.size()))) {
      if (c == ' ' || c == '-') anchor += '-';
      if (std::isalnum(static_cast<unsigned char>(c)) || c == '_')
        anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    result.insert(anchor);
  }
  return result;
}

struct Link {
  fs::path page, file;
  std::string anchor;
};

/** Links to files of the tree; addresses on the web are left out. */
std::vector<Link> links_of(const fs::path& page) {
  static const std::regex kLink(R"(\]\(([^)#]*)(#[^)]*)?\))");
  const std::string text = prose_of(text_of(page));
  std::vector<Link> result;
  for (std::sregex_iterator it(text.begin(), text.end(), kLink), end; it != end; ++it) {
    const std::string file = (*it)[1], anchor = (*it)[2];
    if (file.find("://") != std::string::npos) continue;
    result.push_back({page, file.empty() ? page : (page.parent_path() / file).lexically_normal(),
                      anchor.empty() ? "" : anchor.substr(1)});
  }
  return result;
}

class ManualPages : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(kRoot / "README.md")) GTEST_SKIP() << "no source tree at " << kRoot;
  }
};

TEST_F(ManualPages, LinksLeadToFilesAndHeadings) {
  size_t n_links = 0;
  for (const fs::path& page : pages())
    for (const Link& link : links_of(page)) {
      ++n_links;
      EXPECT_TRUE(fs::exists(link.file)) << link.page << " links to " << link.file;
      if (!link.anchor.empty() && fs::exists(link.file)) {
        EXPECT_TRUE(anchors_of(link.file).contains(link.anchor))
            << link.page << " links to " << link.file << "#" << link.anchor;
      }
    }
  EXPECT_GT(n_links, 20u);
}

TEST_F(ManualPages, ReadmeListsEveryPageAndStaysShort) {
  std::set<fs::path> listed = {kRoot / "README.md"};
  for (const Link& link : links_of(kRoot / "README.md"))
    listed.insert(link.file);
  for (const fs::path& page : pages())
    EXPECT_TRUE(listed.contains(page)) << page << " is not listed in README.md";
  const std::string readme = text_of(kRoot / "README.md");
  EXPECT_LE(std::count(readme.begin(), readme.end(), '\n'), kReadmeLines);
}

/** Flags of commands, of scripts/ and of tensorboard, which are no options of the table. */
const std::set<std::string> kFlags = {
    "card", "config", "cpu",    "decoder", "depth",         "directory", "dry-run",    "file-bytes",
    "gui",  "help",   "here",   "json",    "logdir",        "long",      "no-measure", "no-save",
    "only", "option", "output", "preset",  "request-bytes", "seconds",   "tests",      "verbose"};

TEST_F(ManualPages, NamesOptionsThatExist) {
  static const std::regex kOption(R"((^|[ `(])--([a-z][a-z_-]*))");
  size_t n_options = 0;
  for (const fs::path& page : pages()) {
    // Its commands are those of benchmarks and of other programs.
    if (page.filename() == "RESULTS.md") continue;
    const std::string text = text_of(page);
    for (std::sregex_iterator it(text.begin(), text.end(), kOption), end; it != end; ++it) {
      const std::string name = (*it)[2];
      ++n_options;
      EXPECT_TRUE(kFlags.contains(name) || find_option(name).option != nullptr ||
                  find_foreign_flag(name) != nullptr)
          << page << " names --" << name;
    }
  }
  EXPECT_GT(n_options, 30u);
}

}  // namespace
}  // namespace ferry::config
