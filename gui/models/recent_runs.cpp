#include "gui/models/recent_runs.h"

#include <QDateTime>
#include <QLocale>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "gui/models/run_progress.h"
#include "gui/models/text.h"
#include "src/runs/directory/run_directory.h"
#include "src/runs/index/run_list.h"

namespace ferry::gui {

namespace fs = std::filesystem;

std::vector<RecentRun> recent_runs(const fs::path& directory, size_t n_max) {
  std::set<fs::path> paths;
  std::error_code error;
  for (const fs::path& run : runs::known_runs())
    paths.insert(fs::absolute(run, error).lexically_normal());
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error))
    if (std::error_code none; fs::is_regular_file(it->path() / "run.json", none))
      paths.insert(fs::absolute(it->path(), none).lexically_normal());
  std::vector<std::pair<QString, RecentRun>> found;
  for (const fs::path& path : paths)
    trouble_of([&] {
      const nlohmann::ordered_json record = runs::read_record(path);
      RecentRun run{.path = path,
                    .name = path_text(path.filename()),
                    .model = {},
                    .created = {},
                    .phase = {}};
      run.model = path_text(to_path(text_in(record, "model")).filename());
      run.phase = record.value("phase", "unreadable");
      found.emplace_back(text_in(record, "created"), std::move(run));
    });
  std::ranges::stable_sort(found, std::greater<>(), [](const auto& run) { return run.first; });
  if (found.size() > n_max) found.resize(n_max);
  std::vector<RecentRun> newest;
  for (auto& [created, run] : found) {
    const QDateTime time = QDateTime::fromString(created, Qt::ISODate).toLocalTime();
    run.created = time.isValid() ? QLocale().toString(time, QLocale::ShortFormat) : QString();
    // Only the newest ones' processes are looked at: hundreds take a while.
    trouble_of([&run = run] {
      if (!has_ended(run.phase)) run.phase = runs::read_run(run.path).value("phase", run.phase);
    });
    newest.push_back(std::move(run));
  }
  return newest;
}

RecentRuns::~RecentRuns() = default;

void RecentRuns::look(const fs::path& directory, size_t n_max) {
  if (is_looking_) return;
  is_looking_ = true;
  thread_ = std::jthread([this, directory, n_max] {
    std::vector<RecentRun> runs;
    trouble_of([&] { runs = recent_runs(directory, n_max); });
    QMetaObject::invokeMethod(
        this, [this, runs = std::move(runs)]() mutable { take(std::move(runs)); },
        Qt::QueuedConnection);
  });
}

void RecentRuns::take(std::vector<RecentRun> runs) {
  runs_ = std::move(runs);
  is_looking_ = false;
  emit found();
}

}  // namespace ferry::gui
