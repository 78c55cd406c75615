#include "src/runs/index/run_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/json/json_reader.h"
#include "src/base/print.h"
#include "src/files/growing_lines.h"
#include "src/files/plain_file.h"
#include "src/runs/directory/run_directory.h"
#include "src/runs/index/run_index.h"
#include "src/runs/logs/mean_loss.h"

namespace ferry::runs {
namespace {

namespace fs = std::filesystem;

bool is_run(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path / "run.json", error);
}

void sort_by_age(std::vector<RunSummary>& all) {
  std::ranges::sort(all, {}, [](const RunSummary& run) {
    return std::pair(run.record->value("created", ""), run.path);
  });
}

void add_runs(const std::vector<fs::path>& paths, std::vector<RunSummary>& all) {
  for (const fs::path& path : paths)
    try {
      all.push_back(summarise(path));
    } catch (const std::exception& error) {  // a broken one must not hide the others
      log_line(fmt::format("'{}' is left out: {}", path.string(), error.what()));
    }
}

std::vector<fs::path> runs_in(const fs::path& directory) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error))
    if (is_run(it->path())) found.push_back(it->path());
  return found;
}

/** At most kListed_max of them, those that changed last: reading a run takes a millisecond. */
std::vector<fs::path> newest_of(const std::vector<fs::path>& runs) {
  if (runs.size() <= kListed_max) return runs;
  std::vector<std::pair<fs::file_time_type, fs::path>> by_time;
  for (const fs::path& run : runs) {
    std::error_code error;
    by_time.emplace_back(fs::last_write_time(run / "run.json", error), run);
  }
  std::ranges::nth_element(by_time, by_time.begin() + kListed_max, std::ranges::greater());
  std::vector<fs::path> newest;
  for (size_t i = 0; i < kListed_max; ++i)
    newest.push_back(by_time[i].second);
  log_line(fmt::format("{} older runs are left out: name their directory, or a run",
                       runs.size() - kListed_max));
  return newest;
}

double number_or_nan(const nlohmann::ordered_json& value) {
  return value.is_number() ? value.get<double>() : std::nan("");
}

/** Throws Error(data) for a file that is longer than any run's: reading it would take hours. */
void check_size(const fs::path& metrics) {
  constexpr size_t kFile_bytes_max = 4 * kGiB;  // 16 million steps
  const size_t n_bytes = open_plain_file(metrics).size_bytes;
  if (n_bytes > kFile_bytes_max)
    throw Error(Fault::data, "runs.read",
                fmt::format("'{}' has {}, expected at most {}", metrics.string(),
                            format_bytes(static_cast<int64_t>(n_bytes)),
                            format_bytes(static_cast<int64_t>(kFile_bytes_max))),
                "it is not what a run wrote");
}

}  // namespace

std::string RunSummary::phase() const {
  return record->value("phase", "unreadable");
}

RunSummary summarise(const fs::path& run) {
  RunSummary summary{.path = run, .record = read_run(run), .last_step = {}, .last_evaluation = {}};
  const fs::path metrics = run / "metrics.jsonl";
  std::error_code error;
  if (!fs::is_regular_file(metrics, error)) return summary;  // no step yet
  check_size(metrics);
  ShownLoss loss;
  ferry::read_lines(metrics, 0, [&](std::string_view line, int64_t) {
    nlohmann::ordered_json values;
    if (parse_json(line, values) || !values.is_object()) return true;  // it is being written
    if (const auto ms = values.find("step_ms"); ms != values.end() && ms->is_number())
      summary.training_seconds += ms->get<double>() / 1e3;
    if (values.contains("loss")) {
      loss.add(number_or_nan(values["loss"]), values.contains("loss_mean"));
      summary.last_step = std::move(values);
    } else if (values.contains("eval_loss")) {
      summary.last_evaluation = std::move(values);
    }
    return true;
  });
  summary.mean_loss = loss.value();
  return summary;
}

std::vector<fs::path> known_runs() {
  RunIndex index;
  std::vector<fs::path> known = runs_in("runs");
  std::error_code error;
  const fs::path here = fs::weakly_canonical(fs::absolute("runs", error), error);
  for (size_t i = 0; i < std::min(known.size(), kListed_max); ++i)
    index.add(known[i]);
  for (const fs::path& run : index.all())
    if (run.parent_path() != here) known.push_back(run);
  return known;
}

std::vector<RunSummary> list_runs(const fs::path& directory) {
  const std::vector<fs::path> found = newest_of(runs_in(directory));
  RunIndex index;
  for (const fs::path& run : found)
    index.add(run);
  std::vector<RunSummary> all;
  add_runs(found, all);
  sort_by_age(all);
  return all;
}

std::vector<RunSummary> list_known_runs() {
  std::vector<RunSummary> all;
  add_runs(newest_of(known_runs()), all);
  sort_by_age(all);
  return all;
}

fs::path find_run(const std::string& given) {
  const fs::path path(given);
  for (const fs::path& candidate : {path, fs::path("runs") / path})
    if (is_run(candidate)) return candidate.has_filename() ? candidate : candidate.parent_path();
  std::vector<fs::path> meant, begun;
  for (const fs::path& run : known_runs()) {
    const std::string name = run.filename().string();
    if (name == given) meant.push_back(run);
    if (!given.empty() && name.starts_with(given)) begun.push_back(run);
  }
  if (meant.empty()) meant = begun;
  if (meant.size() == 1) return meant[0];
  if (meant.empty())
    throw Error(Fault::data, "runs.open", fmt::format("there is no run '{}'", given),
                "`ferry runs ls` lists those that are known; a directory is taken as well");
  throw Error(Fault::data, "runs.open",
              fmt::format("'{}' may be any of {} runs", given, meant.size()),
              fmt::format("say more of it, or give a directory such as '{}'", meant[0].string()));
}

}  // namespace ferry::runs
