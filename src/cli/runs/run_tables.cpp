#include "src/cli/runs/run_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "src/base/bytes.h"
#include "src/base/print.h"
#include "src/files/paths.h"
#include "src/runs/directory/checkpoints.h"
#include "src/runs/index/run_list.h"
#include "src/term/table.h"

namespace ferry::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using runs::RunSummary;

ordered_json to_json(const RunSummary& run) {
  ordered_json out = *run.record;
  out["path"] = run.path.string();
  out["training_seconds"] = run.training_seconds;
  out["loss_mean"] = run.mean_loss;
  out["last_step"] = *run.last_step;
  out["last_evaluation"] = *run.last_evaluation;
  return out;
}

/** The last component of a path in run.json: model or dataset. */
std::string name_in(const ordered_json& record, const char* key) {
  const auto found = record.find(key);
  if (found == record.end() || !found->is_string()) return "-";
  fs::path path = found->get<std::string>();
  if (!path.has_filename()) path = path.parent_path();
  return path.filename().string();
}

double number_in(const ordered_json& object, const char* key) {
  if (!object.is_object() || !object.contains(key) || !object[key].is_number()) return 0;
  return object[key].get<double>();
}

std::string percent_text(const RunSummary& run) {
  const double step = number_in(*run.last_step, "step"), all = number_in(*run.record, "n_steps");
  return all > 0 ? fmt::format("{:.0f} %", 100 * std::min(step, all) / all)
                 : number_text(*run.last_step, "step", "{:.0f}");
}

std::string progress_text(const RunSummary& run) {
  const double step = number_in(*run.last_step, "step"), all = number_in(*run.record, "n_steps");
  if (all <= 0) return fmt::format("{:.0f} steps", step);
  return fmt::format("{:.0f} of {:.0f} steps ({})", step, all, percent_text(run));
}

/** The loss as the run printed it last. */
std::string loss_text(const RunSummary& run) {
  return run.last_step->is_object() ? fmt::format("{:.4f}", run.mean_loss) : "-";
}

std::string duration_text(const RunSummary& run) {
  return run.training_seconds > 0 ? term::format_duration(run.training_seconds) : "-";
}

/** "runs", "~/work/runs" */
std::string place_of(const RunSummary& run) {
  const std::string home = environment_variable("HOME");
  const std::string place = run.path.has_parent_path() ? run.path.parent_path().string() : ".";
  return !home.empty() && place.starts_with(home + "/") ? "~" + place.substr(home.size()) : place;
}

/** Status and numbers first: where a name does not fit the line it is the one that is cut, and its
 * beginning is enough to call the run by. */
std::string table_of(const std::vector<const RunSummary*>& all, const term::Terminal& terminal) {
  term::Table table({{"status"},
                     {"progress", term::Align::right},
                     {"loss", term::Align::right},
                     {"took", term::Align::right},
                     {"model"},
                     {"data"},
                     {"run"}});
  // The name of a run mostly repeats both.
  const bool is_narrow = terminal.is_terminal && terminal.width < 100;
  const auto short_name = [&](const RunSummary& run, const char* key) {
    return term::fitted(name_in(*run.record, key), is_narrow ? 12 : 40, terminal);
  };
  for (const RunSummary* run : all)
    table.add_row({run->phase(), percent_text(*run), loss_text(*run), duration_text(*run),
                   short_name(*run, "model"), short_name(*run, "dataset"), run->name()});
  return table.text(terminal);
}

}  // namespace

std::string number_text(const ordered_json& line, const char* key, std::string_view form) {
  const auto found = line.is_object() ? line.find(key) : line.end();
  if (!line.is_object() || found == line.end() || !found->is_number()) return "-";
  return fmt::format(fmt::runtime(form), found->get<double>());
}

namespace {

std::string value_text(const ordered_json& line, const std::string& key) {
  const ordered_json& value = line.at(key);
  if (key.ends_with("_bytes") && value.is_number_integer())
    return format_bytes(value.get<int64_t>());
  return value.is_number() ? number_text(line, key.c_str(), "{:.6g}") : value.dump();
}

}  // namespace

void print_run_json(const ordered_json& value) {
  fmt::print("{}\n", value.dump(2, ' ', false, ordered_json::error_handler_t::replace));
}

void list_runs(const fs::path& directory, bool wants_json) {
  const auto found = directory.empty() ? runs::list_known_runs() : runs::list_runs(directory);
  ordered_json json = ordered_json::array();
  std::vector<std::string> places;  // in the order of their newest run
  std::map<std::string, std::vector<const RunSummary*>> by_place;
  for (const RunSummary& run : found) {
    json.push_back(to_json(run));
    const std::string place = place_of(run);
    std::erase(places, place);
    places.push_back(place);
    by_place[place].push_back(&run);
  }
  if (wants_json) return print_run_json(json);
  if (found.empty())
    return ferry::print(
        fmt::format("no runs {}\n", directory.empty() ? "are known" : "in " + directory.string()));
  const term::Terminal terminal = term::detect_terminal(1);
  for (const std::string& place : places) {
    if (places.size() > 1)
      fmt::print("{}{}:\n", place == places.front() ? "" : "\n", term::printable(place, terminal));
    fmt::print("{}", table_of(by_place[place], terminal));
  }
}

void show_run(const fs::path& path, bool wants_json) {
  const RunSummary run = runs::summarise(path);
  const auto checkpoints = runs::complete_checkpoints(path);
  if (wants_json) {
    ordered_json out = to_json(run);
    out["checkpoints"] = ordered_json::array();
    for (const runs::Checkpoint& checkpoint : checkpoints)
      out["checkpoints"].push_back(checkpoint.path.string());
    return print_run_json(out);
  }
  term::Table table({{"run"}, {run.name()}});
  table.add_row({"status", run.phase()});
  if (const auto reason = run.record->value("exit_reason", ""); !reason.empty())
    table.add_row({"ended", reason});
  if (const auto warning = run.record->value("warning", ""); !warning.empty())
    table.add_row({"warning", warning});
  table.add_row({"model", run.record->value("model", "-")});
  if (const auto parent = run.record->find("parent");
      parent != run.record->end() && parent->is_object())
    table.add_row({"which is of run", parent->value("run", "-")});
  table.add_row({"data", run.record->value("dataset", "-")});
  table.add_row({"progress", progress_text(run)});
  table.add_row({"trained for", duration_text(run)});
  table.add_row({"started", run.record->value("started", "-")});
  table.add_row({"process", fmt::format("{} on {}", run.record->value("pid", int64_t{0}),
                                        run.record->value("host", "?"))});
  table.add_rule();
  if (run.last_step->is_object()) table.add_row({"loss (mean)", loss_text(run)});
  for (const ordered_json* line : {&*run.last_step, &*run.last_evaluation})
    if (line->is_object())
      for (const auto& [key, value] : line->items())
        if (key != "time" && key != "loss_mean" &&
            (line == &*run.last_step || key.starts_with("eval_")))
          table.add_row({key, value_text(*line, key)});
  table.add_rule();
  table.add_row({"checkpoints", checkpoints.empty()
                                    ? "none"
                                    : fmt::format("{}, the last is {}", checkpoints.size(),
                                                  checkpoints.back().path.filename().string())});
  table.add_row({"directory", run.path.string()});
  fmt::print("{}", table.text(term::detect_terminal(1)));
  if (run.phase() == "lost")
    ferry::print(fmt::format(
        "its process is gone (killed, or out of host memory); continue with: ferry train "
        "--resume '{}'\n",
        path.string()));
  if (run.phase() == "unstarted")
    ferry::print(fmt::format(
        "it was ended before its first step (Ctrl-C, or killed); begin it with: ferry train "
        "--resume '{}'\n",
        path.string()));
}

}  // namespace ferry::cli
