// The work of the page's actions: steering runs, cloning, deleting, reports.

#include <QtWidgets>
#include <nlohmann/json.hpp>

#include "gui/models/runs/run_words.h"
#include "gui/models/settings/option_text.h"
#include "gui/models/text.h"
#include "gui/pages/runs/inline_bar.h"
#include "gui/pages/runs/runs_page.h"
#include "src/config/config.h"
#include "src/config/named_places.h"
#include "src/service/runs/delete_run.h"
#include "src/service/runs/run_report.h"
#include "src/service/runs/run_watch.h"

namespace ferry::gui {

namespace fs = std::filesystem;
using service::RunAction;

namespace {

constexpr size_t kNamesMax = 3;

/** The run's settings that differ from the built-in ones, for a new run. */
config::Config settings_of(const fs::path& run) {
  const fs::path file = run / "config.toml";
  config::Config read, settings;
  config::read_toml_file(read, file, config::Source::file);
  config::take_back_places(read);  // the run may be somebody else's
  const config::Config built_in;
  for (const config::Option& option : config::option_table()) {
    const std::string_view key = option.key;
    const config::Value& value = read.value(key);
    // The directory and the place to go on from are the old run's own.
    if (key == "output_dir" || key == "resume_from_checkpoint" || value == built_in.value(key))
      continue;
    settings.set(key, value, config::to_toml(option, value), {config::Source::file, file.string()});
  }
  return settings;
}

fs::path report_file(const fs::path& run) {
  QString where = QStandardPaths::writableLocation(QStandardPaths::DownloadLocation);
  if (where.isEmpty() || !QDir(where).exists()) where = QDir::homePath();
  const QString name = QStringLiteral("ferry-report-") + run_name(run);
  fs::path file = to_path(where) / to_path(name + ".zip");
  for (int n = 2; is_there(file); ++n)
    file = to_path(where) / to_path(name + '-' + QString::number(n) + ".zip");
  return file;
}

/** The first few by name, so that a question stays short. */
QString names_of(const std::vector<fs::path>& runs) {
  QStringList names;
  for (size_t i = 0; i < std::min(runs.size(), kNamesMax); ++i)
    names << isolated(run_name(runs[i]));
  const QString named = listed(names);
  if (runs.size() <= kNamesMax) return named;
  return RunsPage::tr("%1 and %n more", "names of runs", static_cast<int>(runs.size() - kNamesMax))
      .arg(named);
}

bool may_delete(const fs::path& run) {
  service::RunWatch watch(run);
  return service::allowed_actions(watch.look()).allows(RunAction::delete_run);
}

}  // namespace

void RunsPage::open_live() {
  if (const int row = only(); row >= 0)
    emit shared().navigator.live_wanted(shared().runs.path_of(row));
}

void RunsPage::pause() {
  for (const int row : selected())
    if (shared().runs.allowed(row).allows(RunAction::pause))
      requests_.pause(shared().runs.path_of(row));
}

void RunsPage::resume() {
  // A start adds rows: paths first.
  std::vector<fs::path> paused, ended;
  for (const int row : selected()) {
    const service::AllowedActions allowed = shared().runs.allowed(row);
    if (allowed.allows(RunAction::resume))
      paused.push_back(shared().runs.path_of(row));
    else if (allowed.allows(RunAction::resume_run))
      ended.push_back(shared().runs.path_of(row));
  }
  for (const fs::path& run : paused)
    requests_.resume(run);
  for (const fs::path& run : ended)
    shared().launcher.resume(run);
}

void RunsPage::stop() {
  for (const int row : selected())
    if (shared().runs.allowed(row).allows(RunAction::stop))
      requests_.stop(shared().runs.path_of(row));
}

void RunsPage::ask_extend() {
  const int row = only();
  if (row < 0) return;
  const fs::path run = shared().runs.path_of(row);
  const auto had =
      static_cast<int>(std::min<int64_t>(steps_in(shared().runs.record_of(row)), 1'000'000'000));
  inline_->ask_number(tr("%1 has had %2 steps. Further steps:")
                          .arg(isolated(run_name(run)), QLocale().toString(had)),
                      std::max(1, had / 2), tr("Extend"), [this, run, had](int more) {
                        shared().launcher.resume(
                            run, {QStringLiteral("--max-steps=%1").arg(qlonglong{had} + more)});
                      });
}

void RunsPage::clone() {
  const int row = only();
  if (row < 0) return;
  const fs::path run = shared().runs.path_of(row);
  config::Config settings;
  if (const auto trouble = words_of_trouble([&] { settings = settings_of(run); }))
    return inline_->tell(*trouble);
  emit shared().navigator.new_run_wanted(settings);
}

void RunsPage::ask_delete() {
  const std::vector<fs::path> runs = paths_of(selected());
  if (runs.empty()) return;
  inline_->ask(tr("Move %1 to the trash, with all checkpoints?").arg(names_of(runs)),
               tr("Move to trash"), [this, runs] { move_to_trash(runs); });
}

void RunsPage::move_to_trash(const std::vector<fs::path>& runs) {
  const auto left = std::make_shared<std::vector<fs::path>>();
  do_beside(
      [runs = not_starting(runs), left] {
        for (const fs::path& run : runs) {
          // Somebody may have gone on with it.
          if (is_there(run) && may_delete(run) && !QFile::moveToTrash(path_text(run)))
            left->push_back(run);
        }
        return QString();
      },
      [this, runs, left](const QString&) {
        for (const fs::path& run : not_starting(runs))
          if (!is_there(run)) shared().runs.forget(run);
        if (left->empty()) return;
        inline_->ask(tr("There is no trash for %1. Delete for good?").arg(names_of(*left)),
                     tr("Delete for good"), [this, left] { delete_for_good(*left); });
      });
}

std::vector<fs::path> RunsPage::not_starting(std::vector<fs::path> runs) {
  std::erase_if(runs, [this](const fs::path& run) { return shared().launcher.is_starting(run); });
  return runs;
}

void RunsPage::delete_for_good(const std::vector<fs::path>& runs) {
  do_beside(
      [runs = not_starting(runs)] {
        for (const fs::path& run : runs)
          if (may_delete(run)) service::delete_run(run);
        return QString();
      },
      [this, runs](const QString&) {
        for (const fs::path& run : not_starting(runs))
          if (!is_there(run)) shared().runs.forget(run);
      });
}

void RunsPage::write_report() {
  const int row = only();
  if (row < 0) return;
  const fs::path run = shared().runs.path_of(row), file = report_file(run);
  do_beside([run, file] { return path_text(service::write_run_report(run, file)); },
            [this](const QString& written) {
              inline_->tell(
                  tr("The report is written: %1").arg(isolated(written)), tr("Open folder"),
                  [written] {
                    QDesktopServices::openUrl(QUrl::fromLocalFile(QFileInfo(written).path()));
                  });
            });
}

void RunsPage::do_beside(std::function<QString()> work, std::function<void(const QString&)> then) {
  if (is_busy_) return inline_->tell(tr("Something is being written"));
  is_busy_ = true;
  allow_actions();
  work_ = std::jthread([this, work = std::move(work), then = std::move(then)] {
    QString result;
    const auto trouble = words_of_trouble([&] { result = work(); });
    QMetaObject::invokeMethod(
        this,
        [this, result, trouble, then] {
          is_busy_ = false;
          if (trouble)
            inline_->tell(*trouble);
          else
            then(result);
          show_state();
        },
        Qt::QueuedConnection);
  });
}

}  // namespace ferry::gui
