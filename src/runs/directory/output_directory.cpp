#include "src/runs/directory/output_directory.h"

#include <fmt/format.h>

#include <string>

#include "src/base/error.h"
#include "src/files/write/atomic_file.h"
#include "src/runs/logs/train_log.h"

namespace ferry::runs {

namespace fs = std::filesystem;

void check_unused(const fs::path& run) {
  std::error_code error;
  if (!fs::is_directory(run, error)) return;
  if (fs::exists(run / "final", error))
    throw Error(Fault::usage, "train.output",
                fmt::format("'{}' already holds a trained model", run.string()),
                "choose another output_dir");
  for (fs::directory_iterator it(run, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const bool is_of_killed_start = is_temporary_file(name) || name == kTrainLogName;
    if (is_of_killed_start && !fs::exists(run / "config.toml", error)) continue;
    throw Error(
        Fault::usage, "train.output",
        fmt::format("'{}' is not empty: it holds '{}'", run.string(), name),
        fs::exists(run / "config.toml", error)
            ? fmt::format("go on with that run: ferry train --resume '{}'; or choose another "
                          "output_dir",
                          run.string())
            : "choose another output_dir");
  }
}

}  // namespace ferry::runs
