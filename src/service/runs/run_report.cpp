#include "src/service/runs/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/json/json_reader.h"
#include "src/config/config.h"
#include "src/files/mapped_file.h"
#include "src/files/paths.h"
#include "src/files/zip_file.h"
#include "src/runs/directory/checkpoints.h"
#include "src/runs/index/run_list.h"
#include "src/runs/logs/train_log.h"
#include "src/runs/redaction.h"
#include "src/service/machine/facts.h"
#include "src/term/table.h"

namespace ferry::service {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr int64_t kLines_max = 2000, kTail_bytes_max = 4 * kMiB;

/** A link could lead to any file of the user, and the report is sent to others. */
bool is_link(const fs::path& file) {
  std::error_code error;
  return fs::is_symlink(fs::symlink_status(file, error));
}

/** The last lines of a file, whole ones; of one that cannot be read, why. */
std::string tail_of(const fs::path& file) {
  std::error_code error;
  if (is_link(file)) return fmt::format("({} is a link: left out)\n", file.filename().string());
  std::ifstream stream;
  // Opening a pipe would wait for its writer.
  if (fs::is_regular_file(file, error)) stream.open(file, std::ios::binary | std::ios::ate);
  if (!stream.is_open()) return fmt::format("({} cannot be read)\n", file.filename().string());
  const int64_t n_bytes = stream.tellg(), begin = std::max<int64_t>(0, n_bytes - kTail_bytes_max);
  stream.seekg(begin);
  std::string text(static_cast<size_t>(n_bytes - begin), '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(stream.gcount()));
  if (begin > 0) text.erase(0, text.find('\n') + 1);  // cut in its middle
  size_t at = text.size();
  for (int64_t n = 0; n <= kLines_max && at != text.npos && at > 0; ++n)
    at = text.rfind('\n', at - 1);
  return at == text.npos || at == 0 ? text : text.substr(at + 1);
}

/** Numbers only: nothing else in metrics.jsonl is needed, and nothing else is known to be harmless.
 */
std::string numbers_of(const std::string& lines) {
  std::string out;
  for (size_t begin = 0; begin < lines.size();) {
    const size_t end = std::min(lines.find('\n', begin), lines.size());
    ordered_json line;
    if (parse_json(std::string_view(lines).substr(begin, end - begin), line)) line = nullptr;
    ordered_json kept = ordered_json::object();
    if (line.is_object())
      for (const auto& [key, value] : line.items())
        if (value.is_number() || value.is_boolean() || value.is_null()) kept[key] = value;
    if (!kept.empty()) out += kept.dump() + "\n";
    begin = end + 1;
  }
  return out;
}

std::string dump(const ordered_json& value) {
  return value.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

/** run.json: parsed where it can be, for then every text in it is known as one. */
std::string record_text(const fs::path& run,
                        ordered_json& record,
                        const runs::Redaction& redaction) {
  if (!record.is_object()) return redaction.text(tail_of(run / "run.json"));
  record.erase("host");
  redaction.clean(record);
  return dump(record);
}

std::string number_or_dash(const ordered_json& object, const char* key, bool is_bytes) {
  if (!object.is_object() || !object.contains(key) || !object[key].is_number()) return "-";
  return is_bytes ? format_bytes(object[key].is_number_integer() ? object[key].get<int64_t>() : 0)
                  : term::format_duration(object[key].get<double>());
}

/** The plan, promise and outcome in run.json, beside what the steps took. */
std::string plan_text(const fs::path& run, const ordered_json& record) {
  const term::Terminal plain;
  std::string out;
  const ordered_json empty = ordered_json::object();
  const auto part = [&](const char* key) -> const ordered_json& {
    return record.is_object() && record.contains(key) && record[key].is_object() ? record[key]
                                                                                 : empty;
  };
  if (const auto rows = part("plan").find("rows"); rows != part("plan").end()) {
    out += part("plan").value("why", "") + "\n\n";
    term::Table table({{"tag"}, {"place"}, {"bytes", term::Align::right}});
    for (const auto& row : *rows)
      table.add_row({row.value("tag", "?"), row.value("place", "?"),
                     format_bytes(row.value("bytes", int64_t{0}))});
    out += table.text(plain) + "\n";
  }
  if (record.is_object() && record.contains("host_budget_bytes"))
    out += fmt::format("host memory that it could have: {}\n\n",
                       number_or_dash(record, "host_budget_bytes", /*is_bytes=*/true));
  term::Table table({{""}, {"expected", term::Align::right}, {"actual", term::Align::right}});
  const ordered_json &promised = part("promised"), &actual = part("actual");
  for (const auto& [title, key, is_bytes] :
       {std::tuple{"training time", "training_seconds", false},
        std::tuple{"samples", "sample_seconds", false},
        std::tuple{"peak host memory", "host_bytes_peak", true},
        std::tuple{"peak GPU memory", "gpu_bytes_peak", true}})
    table.add_row(
        {title, number_or_dash(promised, key, is_bytes), number_or_dash(actual, key, is_bytes)});
  out += table.text(plain) + "\n";
  const auto all = runs::complete_checkpoints(run);
  for (const runs::Checkpoint& checkpoint : all)
    out += checkpoint.path.filename().string() + " is complete\n";
  if (all.empty()) out += "there is no complete checkpoint\n";
  return out;
}

/** All that the run's files name as paths: blanks in them would hide that from who looks at text.
 */
std::vector<std::string> paths_named_in(const fs::path& run, const ordered_json& record) {
  std::error_code error;
  std::vector<std::string> paths = {fs::absolute(run, error).lexically_normal().string()};
  for (const char* key : {"model", "dataset"})
    if (record.is_object() && record.contains(key) && record[key].is_string())
      paths.push_back(record[key].get<std::string>());
  if (is_link(run / "config.toml")) return paths;
  try {
    config::Config settings;
    config::read_toml_file(settings, run / "config.toml", config::Source::file);
    for (const config::Option& option : config::option_table())
      if (option.type == config::Type::path)
        paths.push_back(settings.maybe_text(option.key).value_or(""));
    for (const std::string& directory : settings.list("nvme_path"))
      paths.push_back(directory);
  } catch (const Error&) {  // damaged: what is quoted in it is known as a path all the same
  }
  return paths;
}

fs::path free_name(const fs::path& run) {
  const std::string stem = "ferry-report-" + fs::absolute(run).filename().string();
  std::error_code error;
  fs::path name = stem + ".zip";
  for (int n = 2; fs::exists(name, error); ++n)
    name = fmt::format("{}-{}.zip", stem, n);
  return name;
}

}  // namespace

fs::path write_run_report(const fs::path& run, const fs::path& output) {
  ordered_json record;
  try {
    if (!is_link(run / "run.json")) record = *runs::summarise(run).record;
  } catch (const Error&) {  // damaged: it goes as text
  }
  const runs::Redaction redaction(environment_variable("HOME"), paths_named_in(run, record));
  ordered_json machine = machine_report();
  redaction.clean(machine);
  const std::string plan = redaction.text(plan_text(run, record));
  const std::vector<ZipEntry> entries = {
      {"config.toml", redaction.text(tail_of(run / "config.toml"))},
      {"train.log", redaction.text(tail_of(run / runs::kTrainLogName))},
      {"run.json", record_text(run, record, redaction)},
      {"metrics.jsonl", numbers_of(tail_of(run / "metrics.jsonl"))},
      {"doctor.json", dump(machine)},
      {"plan.txt", plan},
  };
  const fs::path target = output.empty() ? free_name(run) : output;
  write_zip(target, entries);
  return target;
}

}  // namespace ferry::service
