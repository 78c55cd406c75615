#include "src/runs/directory/sample_files.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

namespace ferry::runs {
namespace {

constexpr std::string_view kStem = "step-", kEnding = ".jsonl";

}  // namespace

std::string sample_file_of(int64_t step) {
  return fmt::format("{}{:06}{}", kStem, step, kEnding);
}

std::optional<int64_t> step_of_samples(const std::string& file_name) {
  if (!file_name.starts_with(kStem) || !file_name.ends_with(kEnding)) return std::nullopt;
  const char* const begin = file_name.data() + kStem.size();
  const char* const end = file_name.data() + file_name.size() - kEnding.size();
  int64_t step = 0;
  const auto [stop, error] = std::from_chars(begin, end, step);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return step;
}

}  // namespace ferry::runs
