#include "src/inputs/given_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "src/base/error.h"
#include "src/data/read/dataset_files.h"

namespace ferry {

namespace fs = std::filesystem;

void check_data_exists(const config::Config& config, std::string_view key) {
  const std::string& path = config.text(key);
  std::error_code error;
  if (path.empty()) return;
  const auto files = dataset_files(path);
  const auto missing =
      std::ranges::find_if(files, [&](const fs::path& file) { return !fs::exists(file, error); });
  if (missing == files.end()) return;
  throw Error(
      Fault::data, "data.open",
      fmt::format("no such file or directory: '{}' ({} from {})", missing->string(), key,
                  config.origin(key).where),
      config.text("resume_from_checkpoint").empty()
          ? "paths count from the current directory"
          : fmt::format("where it was moved, give its new place: --{} PATH (the same texts)",
                        key == "dataset" ? "dataset" : "eval-dataset"));
}

}  // namespace ferry
