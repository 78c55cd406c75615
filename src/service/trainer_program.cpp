#include "src/service/trainer_program.h"

#include <fmt/format.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/files/paths.h"

namespace ferry::service {

namespace fs = std::filesystem;

std::optional<fs::path> find_trainer() {
  std::error_code error;
  if (std::string given = environment_variable("FERRY_TRAINER"); !given.empty()) {
    if (access(given.c_str(), X_OK) == 0 && fs::is_regular_file(given, error)) return given;
    throw Error(Fault::usage, "cli.trainer",
                fmt::format("FERRY_TRAINER names no program: '{}'", given),
                "unset it, or give the path of ferry-trainer");
  }
  // An app that was told of a ferry elsewhere takes that one's other half, too.
  const fs::path ferry = environment_variable("FERRY");
  for (const fs::path& here : {ferry.parent_path(), program_directory()})
    for (const char* where : {"ferry-trainer", "../libexec/ferry/ferry-trainer",
                              "../train/ferry-trainer", "../../src/train/ferry-trainer"})
      if (!here.empty() && access((here / where).c_str(), X_OK) == 0)
        return (here / where).lexically_normal();
  return std::nullopt;
}

std::filesystem::path find_measuring_trainer() {
  if (const auto trainer = find_trainer()) return *trainer;
  throw Error(Fault::machine, "cli.bench", "ferry-trainer, which measures, is not beside ferry",
              "build it (scripts/setup, then ninja), or set FERRY_TRAINER to its path");
}

}  // namespace ferry::service
