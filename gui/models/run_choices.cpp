#include "gui/models/run_choices.h"

#include <QCoreApplication>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "gui/models/text.h"
#include "src/runs/index/run_list.h"
#include "src/service/runs/run_watch.h"

namespace ferry::gui {

namespace fs = std::filesystem;

namespace {

struct RunChoiceWords {
  Q_DECLARE_TR_FUNCTIONS(RunChoiceWords)
};

QString text_of(const nlohmann::ordered_json& record, const char* key) {
  if (!record.is_object()) return {};
  const auto at = record.find(key);
  return at != record.end() && at->is_string() ? to_text(at->get_ref<const std::string&>())
                                               : QString();
}

}  // namespace

RunChoice read_run_choice(const fs::path& run) {
  std::error_code error;
  service::RunWatch watch(run);
  const service::RunFacts& facts = watch.look();
  return {.path = run,
          .name = path_text((run.has_filename() ? run : run.parent_path()).filename()),
          .model = text_of(watch.record(), "model"),
          .phase = to_text(facts.phase),
          .created = text_of(watch.record(), "created"),
          .has_final = fs::exists(run / "final" / "config.json", error),
          .checkpoints = runs::complete_checkpoints(run)};
}

std::vector<RunChoice> read_run_choices(const fs::path& directory) {
  std::set<fs::path> paths;
  std::error_code error;
  for (const fs::path& run : runs::known_runs())
    paths.insert(fs::absolute(run, error).lexically_normal());
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    std::error_code of_entry;
    if (fs::exists(it->path() / "run.json", of_entry))
      paths.insert(fs::absolute(it->path(), of_entry).lexically_normal());
  }
  std::vector<RunChoice> choices;
  for (const fs::path& path : paths)
    if (RunChoice choice = read_run_choice(path); choice.phase != "unreadable")
      choices.push_back(std::move(choice));
  std::stable_sort(choices.begin(), choices.end(),
                   [](const RunChoice& a, const RunChoice& b) { return a.created > b.created; });
  return choices;
}

QString phase_word(const QString& phase) {
  if (phase == "preparing") return RunChoiceWords::tr("preparing");
  if (phase == "training") return RunChoiceWords::tr("training");
  if (phase == "evaluating") return RunChoiceWords::tr("evaluating");
  if (phase == "sampling") return RunChoiceWords::tr("making samples");
  if (phase == "saving") return RunChoiceWords::tr("saving");
  if (phase == "paused") return RunChoiceWords::tr("paused");
  if (phase == "finished") return RunChoiceWords::tr("finished");
  if (phase == "stopped") return RunChoiceWords::tr("stopped");
  if (phase == "failed") return RunChoiceWords::tr("failed");
  if (phase == "lost") return RunChoiceWords::tr("process gone");
  if (phase == "unstarted") return RunChoiceWords::tr("not started");
  return RunChoiceWords::tr("unreadable");
}

}  // namespace ferry::gui
