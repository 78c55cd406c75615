#pragma once
// The runs that a model can be chosen from: with a word for their state and their checkpoints.

#include <QString>
#include <filesystem>
#include <string>
#include <vector>

#include "src/runs/directory/checkpoints.h"

namespace ferry::gui {

struct RunChoice {
  std::filesystem::path path;
  QString name;
  std::string phase;       ///< as run.json has it, `lost` where its process is gone
  bool has_final = false;  ///< it holds a finished model
  std::vector<runs::Checkpoint> checkpoints;  ///< complete ones, oldest first
};

/** These runs, in their order; what cannot be read is left out. For a thread: of 500 runs it reads
 * 500 files. */
std::vector<RunChoice> read_run_choices(const std::vector<std::filesystem::path>& runs);
/** One of them; its phase is "unreadable" where there is no run. */
RunChoice read_run_choice(const std::filesystem::path& run);

}  // namespace ferry::gui
