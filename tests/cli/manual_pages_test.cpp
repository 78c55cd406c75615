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
#include "tests/cli/run_ferry.h"

namespace ferry::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kReadmeLines = 220;
/** Options of programs that pages name: TensorBoard, hf, GoogleTest. */
constexpr std::string_view kOfOthers[] = {"logdir",    "local-dir",      "gtest_filter",
                                          "no-python", "nproc-per-node", "nproc_per_node",
                                          "use_env",   "no_python",      "num_gpus"};
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

/** The first group of every match. */
std::set<std::string> names_in(const std::string& text, const std::regex& pattern) {
  std::set<std::string> result;
  for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it)
    result.insert((*it)[1]);
  return result;
}

/** Flags that the scripts take: patterns of a shell's `case`, arguments of Python's parser. */
std::set<std::string> flags_of_scripts() {
  static const std::regex kFlag(R"((?:^|\n) *(?:parser\.add_argument\('|)--([a-z-]+)(?:'|\)))");
  std::set<std::string> result;
  for (const auto& entry : fs::directory_iterator(kRoot / "scripts"))
    if (entry.is_regular_file()) result.merge(names_in(text_of(entry.path()), kFlag));
  return result;
}

/** Flags of all verbs, as the program offers them to a shell. */
std::set<std::string> flags_of_ferry() {
  static const std::regex kVerb(R"((?:^|\n)([a-z]+)\t)"), kFlag(R"(\n--([a-z-]+))");
  std::set<std::string> flags;
  for (const std::string& verb : names_in(run_ferry({{"completion", "--offer", ""}}).out, kVerb))
    flags.merge(names_in(run_ferry({{"completion", "--offer", verb, "--"}}).out, kFlag));
  return flags;
}

TEST_F(ManualPages, NamesOptionsThatExist) {
  if (ferry_binary().empty()) GTEST_SKIP() << "FERRY_BINARY names no ferry; run through meson test";
  const std::set<std::string> of_ferry = flags_of_ferry(), of_scripts = flags_of_scripts();
  EXPECT_TRUE(of_ferry.contains("file-bytes"));
  EXPECT_TRUE(of_scripts.contains("no-packages") && of_scripts.contains("long"));
  static const std::regex kOption(R"((^|[ `(])--([a-z][a-z_-]*))");
  size_t n_options = 0;
  for (const fs::path& page : pages()) {
    // Its commands are those of benchmarks and of other programs.
    if (page.filename() == "RESULTS.md") continue;
    const std::string text = text_of(page);
    for (std::sregex_iterator it(text.begin(), text.end(), kOption), end; it != end; ++it) {
      const std::string name = (*it)[2];
      ++n_options;
      EXPECT_TRUE(of_ferry.contains(name) || of_scripts.contains(name) ||
                  config::find_option(name).option != nullptr ||
                  config::find_foreign_flag(name) != nullptr ||
                  std::ranges::find(kOfOthers, name) != std::end(kOfOthers))
          << page << " names --" << name;
    }
  }
  EXPECT_GT(n_options, 30u);
}

}  // namespace
}  // namespace ferry::cli
