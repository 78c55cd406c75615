#include "src/runs/run_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "src/base/error.h"
#include "src/runs/run_directory.h"

namespace ferry::runs {
namespace {

namespace fs = std::filesystem;

bool is_run(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path / "run.json", error);
}

}  // namespace

RunSummary summarise(const fs::path& run) {
  RunSummary summary{.path = run, .record = read_run(run), .last_step = {}, .last_evaluation = {}};
  std::ifstream lines(run / "metrics.jsonl");
  for (std::string line; std::getline(lines, line);) {
    auto values = nlohmann::ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!values.is_object()) continue;  // the line that is being written
    if (values.contains("loss"))
      summary.last_step = std::move(values);
    else if (values.contains("eval_loss"))
      summary.last_evaluation = std::move(values);
  }
  return summary;
}

std::vector<RunSummary> list_runs(const fs::path& directory) {
  std::vector<RunSummary> all;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    if (!is_run(it->path())) continue;
    try {
      all.push_back(summarise(it->path()));
    } catch (const Error&) {  // a broken one must not hide the others
    }
  }
  std::ranges::sort(all, {}, [](const RunSummary& run) {
    return std::pair(run.record.value("created", ""), run.path);
  });
  return all;
}

fs::path find_run(const std::string& given) {
  const fs::path path(given);
  for (const fs::path& candidate : {path, fs::path("runs") / path})
    if (is_run(candidate)) return candidate.has_filename() ? candidate : candidate.parent_path();
  throw Error(Fault::data, "runs.open", fmt::format("there is no run '{}'", given),
              "`ferry runs ls` lists those under runs/");
}

}  // namespace ferry::runs
