// ferry runs ls | show | compare | pause | resume | stop | save | set | check | report: a client of
// run directories and of their control sockets.

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "src/base/error.h"
#include "src/base/print.h"
#include "src/cli/commands.h"
#include "src/cli/run_report.h"
#include "src/cli/run_tables.h"
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

constexpr std::string_view kRunsHelp =
    "ferry runs - look at runs, and steer those that are going on\n\n"
    "usage: ferry runs ls [DIRECTORY]         all known runs, or those in a directory\n"
    "       ferry runs show RUN               what it is doing, and how far it is\n"
    "       ferry runs compare RUN RUN        settings that differ, and what came of them\n"
    "       ferry runs pause RUN              drops the step in progress; frees the GPU\n"
    "       ferry runs resume RUN             goes on with a paused one\n"
    "       ferry runs save RUN               a checkpoint now\n"
    "       ferry runs stop RUN [--no-save]   a checkpoint, and the end\n"
    "       ferry runs set RUN KEY=VALUE      learning_rate, weight_decay or max_grad_norm\n"
    "       ferry runs check RUN              reads its checkpoints and compares the checksums\n"
    "       ferry runs report RUN [--output FILE]   one zip to send along: settings, log, "
    "metrics,\n"
    "                                         this machine; no tokens, no texts, paths "
    "shortened\n\n"
    "RUN is a directory, or a name that ls shows, or the beginning of just one. ls, show and\n"
    "compare take --json.\n"
    "A run whose process is gone goes on with: ferry train --resume RUN\n";

constexpr std::string_view kOutputFlag = "--output=";

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
    for (const auto* line : {&*run->last_step, &*run->last_evaluation})
      if (line->is_object())
        for (const auto& [key, value] : line->items())
          if (value.is_number()) keys.insert(key);
  const auto last = [](const runs::RunSummary& run, const std::string& key) {
    const bool in_step = run.last_step->is_object() && run.last_step->contains(key);
    return number_text(in_step ? *run.last_step : *run.last_evaluation, key.c_str(), "{:.6g}");
  };
  for (const std::string& key : keys)
    add(key, last(run_a, key), last(run_b, key));
  wants_json ? print_run_json(out) : fmt::print("{}", table.text(term::detect_terminal(1)));
}

void check(const fs::path& run) {
  const auto all = runs::complete_checkpoints(run);
  if (all.empty()) fmt::print("{} has no complete checkpoint\n", run.string());
  for (const runs::Checkpoint& checkpoint : all) {
    const bool is_there = runs::check_checkpoint(checkpoint.path);
    fmt::print("{}: {}\n", checkpoint.path.string(),
               is_there ? "whole" : "removed by its run meanwhile");
  }
}

void report(const fs::path& run, const fs::path& output) {
  const fs::path written = write_run_report(run, output);
  log_line(
      "settings, the log's end, metrics, this machine, plan against actual; tokens and texts are "
      "left out, paths shortened: look through it before you send it");
  fmt::print("{}\n", written.string());
}

/** The run's own error keeps its code ("[config.value] ..."); another answer has none. */
Error refusal_of(const std::string& answer) {
  const size_t end = answer.find("] ");
  if (!answer.starts_with('[') || end == std::string::npos)
    return Error(Fault::usage, "runs.control", answer);
  return Error(Fault::usage, answer.substr(1, end - 1), answer.substr(end + 2));
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
  if (!answer.is_done) throw refusal_of(answer.text);
  fmt::print("{}\n", answer.text);
}

}  // namespace

int run_runs(Arguments arguments) {
  bool wants_json = false, saves = true;
  std::string output;
  std::vector<std::string> words;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--help" || argument == "-h") {
      fmt::print("{}", kRunsHelp);
      return 0;
    }
    if (argument == "--json")
      wants_json = true;
    else if (argument == "--no-save")
      saves = false;
    else if (argument == "--output" && i + 1 < arguments.size())
      output = arguments[++i];
    else if (argument.starts_with(kOutputFlag))
      output = argument.substr(kOutputFlag.size());
    else
      words.push_back(argument);
  }
  const std::string verb = words.empty() ? "" : words[0];
  const auto is = [&](std::string_view name, size_t n_words) {
    return verb == name && words.size() == n_words + 1 && (saves || name == "stop") &&
           (output.empty() || name == "report");
  };
  if (is("ls", 0) || is("ls", 1)) {
    list_runs(words.size() > 1 ? words[1] : "", wants_json);
  } else if (is("show", 1)) {
    show_run(runs::find_run(words[1]), wants_json);
  } else if (is("compare", 2)) {
    compare(runs::find_run(words[1]), runs::find_run(words[2]), wants_json);
  } else if (is("check", 1) && !wants_json) {
    check(runs::find_run(words[1]));
  } else if (is("report", 1) && !wants_json) {
    report(runs::find_run(words[1]), output);
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
