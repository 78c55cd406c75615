#include "gui/models/runs/run_choices.h"

#include <utility>

#include "gui/models/runs/run_words.h"
#include "src/service/runs/run_watch.h"

namespace ferry::gui {

namespace fs = std::filesystem;

RunChoice read_run_choice(const fs::path& run) {
  std::error_code error;
  service::RunWatch watch(run);
  const service::RunFacts& facts = watch.look();
  return {.path = run,
          .name = run_name(run),
          .phase = facts.phase,
          .has_final = fs::exists(run / "final" / "config.json", error),
          .checkpoints = runs::complete_checkpoints(run)};
}

std::vector<RunChoice> read_run_choices(const std::vector<fs::path>& runs) {
  std::vector<RunChoice> choices;
  for (const fs::path& run : runs)
    if (RunChoice choice = read_run_choice(run); choice.phase != "unreadable")
      choices.push_back(std::move(choice));
  return choices;
}

}  // namespace ferry::gui
