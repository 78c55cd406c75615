#pragma once
// The runs that a model can be chosen from: with a word for their state and their checkpoints.

#include <QString>
#include <filesystem>
#include <vector>

#include "src/runs/directory/checkpoints.h"

namespace ferry::gui {

struct RunChoice {
  std::filesystem::path path;
  QString name, model, phase;  ///< phase as run.json has it, `lost` where its process is gone
  QString created;             ///< as run.json has it: sorts by time
  bool has_final = false;      ///< it holds a finished model
  std::vector<runs::Checkpoint> checkpoints;  ///< complete ones, oldest first
};

/** The runs under `directory` and those that the index knows, the newest first. For a thread: of
 * 500 runs it reads 500 files. What cannot be read is left out. */
std::vector<RunChoice> read_run_choices(const std::filesystem::path& directory);
/** One of them; its phase is "unreadable" where there is no run. */
RunChoice read_run_choice(const std::filesystem::path& run);

/** "finished", "training", "process gone" for people. */
QString phase_word(const QString& phase);

}  // namespace ferry::gui
