// ferry runs ls | show | compare | pause | resume | stop | save | set | check: a client of run
// directories and of their control sockets.

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <iterator>
#include <set>

#include "src/base/error.h"
#include "src/cli/commands.h"
#include "src/config/config.h"
#include "src/runs/checkpoints.h"
#include "src/runs/control.h"
#include "src/runs/run_directory.h"
#include "src/runs/run_list.h"
#include "src/term/table.h"

namespace ferry::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::string_view kHelp =
    "ferry runs - look at runs, and steer those that are going on\n\n"
    "usage: ferry runs ls [DIRECTORY]         all runs under runs/, or elsewhere\n"
    "       ferry runs show RUN               what it is doing, and how far it is\n"
    "       ferry runs compare RUN RUN        settings that differ, and what came of them\n"
    "       ferry runs pause RUN              after the step in progress; frees the GPU\n"
    "       ferry runs resume RUN             goes on with a paused one\n"
    "       ferry runs save RUN               a checkpoint now\n"
    "       ferry runs stop RUN [--no-save]   a checkpoint, and the end\n"
    "       ferry runs set RUN KEY=VALUE      learning_rate, weight_decay or max_grad_norm\n"
    "       ferry runs check RUN              reads its checkpoints and compares the checksums\n\n"
    "RUN is a directory, or a name under runs/. ls, show and compare take --json.\n"
    "A run whose process is gone goes on with: ferry train --resume RUN\n";

std::string number(const ordered_json& line, const char* key, std::string_view form) {
  const auto found = line.is_object() ? line.find(key) : line.end();
  if (!line.is_object() || found == line.end() || !found->is_number()) return "-";
  return fmt::format(fmt::runtime(form), found->get<double>());
}

ordered_json to_json(const runs::RunSummary& run) {
  ordered_json out = run.record;
  out["path"] = run.path.string();
  out["last_step"] = run.last_step;
  out["last_evaluation"] = run.last_evaluation;
  return out;
}

void print_json(const ordered_json& value) {
  fmt::print("{}\n", value.dump(2, ' ', false, ordered_json::error_handler_t::replace));
}

void list(const fs::path& directory, bool wants_json) {
  ordered_json all = ordered_json::array();
  term::Table table({{"run"}, {"phase"}, {"step"}, {"loss"}, {"eval loss"}, {"started"}});
  for (const runs::RunSummary& run : runs::list_runs(directory)) {
    all.push_back(to_json(run));
    table.add_row({run.name(), run.phase(), number(run.last_step, "step", "{:.0f}"),
                   number(run.last_step, "loss", "{:.4f}"),
                   number(run.last_evaluation, "eval_loss", "{:.4f}"),
                   run.record.value("started", "-")});
  }
  if (wants_json) return print_json(all);
  if (all.empty()) return fmt::print("no runs in {}\n", directory.string());
  fmt::print("{}", table.text(term::detect_terminal(1)));
}

void show(const fs::path& path, bool wants_json) {
  const runs::RunSummary run = runs::summarise(path);
  const auto checkpoints = runs::complete_checkpoints(path);
  if (wants_json) {
    ordered_json out = to_json(run);
    out["checkpoints"] = ordered_json::array();
    for (const runs::Checkpoint& checkpoint : checkpoints)
      out["checkpoints"].push_back(checkpoint.path.string());
    return print_json(out);
  }
  term::Table table({{"run"}, {run.name()}});
  table.add_row({"phase", run.phase()});
  if (const auto reason = run.record.value("exit_reason", ""); !reason.empty())
    table.add_row({"why", reason});
  table.add_row({"process", fmt::format("{} on {}", run.record.value("pid", 0),
                                        run.record.value("host", "?"))});
  table.add_row({"started", run.record.value("started", "-")});
  for (const ordered_json* line : {&run.last_step, &run.last_evaluation})
    if (line->is_object())
      for (const auto& [key, value] : line->items())
        table.add_row({key, value.dump()});
  table.add_row({"checkpoints", checkpoints.empty()
                                    ? "none"
                                    : fmt::format("{}, the last is {}", checkpoints.size(),
                                                  checkpoints.back().path.string())});
  fmt::print("{}", table.text(term::detect_terminal(1)));
  if (run.phase() == "lost")
    fmt::print(
        "its process is gone (killed, or out of host memory); go on with: ferry train "
        "--resume '{}'\n",
        path.string());
}

/** Settings as their run resolved them. */
config::Config settings_of(const fs::path& run) {
  config::Config config;
  config::read_toml_file(config, run / "config.toml", config::Source::file);
  return config;
}

void compare(const fs::path& a, const fs::path& b, bool wants_json) {
  const config::Config of_a = settings_of(a), of_b = settings_of(b);
  const runs::RunSummary run_a = runs::summarise(a), run_b = runs::summarise(b);
  ordered_json out;
  term::Table table({{""}, {run_a.name()}, {run_b.name()}});
  const auto add = [&](std::string_view key, const std::string& x, const std::string& y) {
    table.add_row({std::string(key), x, y});
    out[std::string(key)] = {x, y};
  };
  for (const config::Option& option : config::option_table()) {
    if (of_a.value(option.key) == of_b.value(option.key)) continue;
    add(option.key, config::to_toml(option, of_a.value(option.key)),
        config::to_toml(option, of_b.value(option.key)));
  }
  std::set<std::string> keys;
  for (const auto* run : {&run_a, &run_b})
    for (const auto* line : {&run->last_step, &run->last_evaluation})
      if (line->is_object())
        for (const auto& [key, value] : line->items())
          if (value.is_number()) keys.insert(key);
  const auto last = [](const runs::RunSummary& run, const std::string& key) {
    const bool in_step = run.last_step.is_object() && run.last_step.contains(key);
    return number(in_step ? run.last_step : run.last_evaluation, key.c_str(), "{:.6g}");
  };
  for (const std::string& key : keys)
    add(key, last(run_a, key), last(run_b, key));
  wants_json ? print_json(out) : fmt::print("{}", table.text(term::detect_terminal(1)));
}

void check(const fs::path& run) {
  const auto all = runs::complete_checkpoints(run);
  if (all.empty()) fmt::print("{} has no complete checkpoint\n", run.string());
  for (const runs::Checkpoint& checkpoint : all) {
    runs::check_checkpoint(checkpoint.path);
    fmt::print("{}: whole\n", checkpoint.path.string());
  }
}

/** Asks the process of the run; its answer is the output. */
void ask(const fs::path& run, const nlohmann::json& question) {
  const ordered_json record = runs::read_run(run);
  const std::string phase = record.value("phase", "");
  const auto socket = record.find("control_socket");
  if (phase == "lost" || phase == "finished" || phase == "stopped" || phase == "failed")
    throw Error(
        Fault::usage, "runs.control", fmt::format("'{}' is not going on: {}", run.string(), phase),
        phase == "finished" ? "its model is in final/"
                            : fmt::format("go on with: ferry train --resume '{}'", run.string()));
  if (socket == record.end() || !socket->is_string())
    throw Error(Fault::machine, "runs.control",
                fmt::format("'{}' has no control socket yet", run.string()),
                "try again once it trains; it obeys SIGINT (save and leave) meanwhile");
  const runs::ControlAnswer answer = runs::ask_run(socket->get<std::string>(), question);
  if (!answer.is_done) throw Error(Fault::usage, "runs.control", answer.text);
  fmt::print("{}\n", answer.text);
}

}  // namespace

int run_runs(Arguments arguments) {
  bool wants_json = false, saves = true;
  std::vector<std::string> words;
  for (const std::string& argument : arguments) {
    if (argument == "--help" || argument == "-h") {
      fmt::print("{}", kHelp);
      return 0;
    }
    if (argument == "--json")
      wants_json = true;
    else if (argument == "--no-save")
      saves = false;
    else
      words.push_back(argument);
  }
  const std::string verb = words.empty() ? "" : words[0];
  const auto is = [&](std::string_view name, size_t n_words) {
    return verb == name && words.size() == n_words + 1 && (saves || name == "stop");
  };
  if (is("ls", 0) || is("ls", 1)) {
    list(words.size() > 1 ? words[1] : "runs", wants_json);
  } else if (is("show", 1)) {
    show(runs::find_run(words[1]), wants_json);
  } else if (is("compare", 2)) {
    compare(runs::find_run(words[1]), runs::find_run(words[2]), wants_json);
  } else if (is("check", 1) && !wants_json) {
    check(runs::find_run(words[1]));
  } else if ((is("pause", 1) || is("resume", 1) || is("save", 1) || is("stop", 1)) && !wants_json) {
    ask(runs::find_run(words[1]), {{"command", verb}, {"save", saves ? "yes" : "no"}});
  } else if (is("set", 2) && !wants_json && words[2].find('=') != std::string::npos) {
    const size_t equals = words[2].find('=');
    ask(runs::find_run(words[1]), {{"command", "set"},
                                   {"key", words[2].substr(0, equals)},
                                   {"value", words[2].substr(equals + 1)}});
  } else {
    throw Error(Fault::usage, "cli.runs", fmt::format("'ferry runs {}'", fmt::join(words, " ")),
                "ferry runs --help lists what there is");
  }
  return 0;
}

}  // namespace ferry::cli
