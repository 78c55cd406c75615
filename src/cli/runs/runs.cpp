// ferry runs ls | show | compare | pause | resume | stop | save | sample | set | check | report |
// stores | delete: a client of run directories and of their control sockets.

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/nearest_name.h"
#include "src/base/print.h"
#include "src/cli/commands.h"
#include "src/cli/runs/run_tables.h"
#include "src/cli/runs/stores.h"
#include "src/config/config.h"
#include "src/runs/directory/checkpoints.h"
#include "src/runs/directory/run_directory.h"
#include "src/runs/directory/settings_file.h"
#include "src/runs/index/run_list.h"
#include "src/service/runs/comparison.h"
#include "src/service/runs/run_client.h"
#include "src/service/runs/run_report.h"
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
    "       ferry runs resume RUN             continues a paused one\n"
    "       ferry runs save RUN               a checkpoint now\n"
    "       ferry runs sample RUN             goes on with its prompts now (--sample-prompts)\n"
    "       ferry runs stop RUN [--no-save]   a checkpoint, and the end\n"
    "       ferry runs set RUN KEY=VALUE      learning_rate, weight_decay, max_grad_norm\n"
    "                                         or eval_steps\n"
    "       ferry runs check RUN              reads its checkpoints and compares the checksums\n"
    "       ferry runs report RUN [--output FILE]   one zip to send along: settings, log, "
    "metrics,\n"
    "                                         this machine; no tokens, no texts, paths "
    "shortened\n"
    "       ferry runs stores [DIRECTORY...]  states that runs have on drives (--nvme-path), and "
    "what\n"
    "                                         is left over of runs that are gone\n"
    "       ferry runs delete RUN [--yes]     the run and its states on drives; says what it "
    "takes,\n"
    "                                         and removes it with --yes. Or FILE.states\n\n"
    "RUN is a directory, or a name that ls shows, or the beginning of just one. All take\n"
    "--json.\n"
    "A run whose process is gone is resumed with: ferry train --resume RUN\n";

constexpr std::string_view kOutputFlag = "--output=";

/** The results of a run, apart from the metrics of its evaluations. */
struct Result {
  std::string_view name, key;
  std::string_view form;  // of the number; "bytes", "duration" and "loss" are kinds of their own
};
constexpr Result kResults[] = {{"steps", "step", "{:.0f}"},
                               {"epochs", "epoch", "{:.2f}"},
                               {"training time", "", "duration"},
                               {"last loss", "", "loss"},
                               {"tokens seen", "num_input_tokens_seen", "{:.0f}"},
                               {"tokens/s", "train_tokens_per_second", "{:.0f}"},
                               {"host memory", "host_bytes", "bytes"}};

std::string result_text(const runs::RunSummary& run, const Result& result) {
  if (result.form == "loss")
    return run.last_step->is_object() ? fmt::format("{:.4f}", run.mean_loss) : "-";
  if (result.form == "duration")
    return run.training_seconds > 0 ? term::format_duration(run.training_seconds) : "-";
  if (result.form != "bytes") return number_text(*run.last_step, result.key.data(), result.form);
  const ordered_json& step = *run.last_step;
  const std::string key(result.key);
  if (!step.is_object() || !step.contains(key) || !step[key].is_number()) return "-";
  return format_bytes(step[key].get<int64_t>());
}

/** For programs: every number of the last step and the last evaluation as it is. */
void add_all_numbers(ordered_json& out, const runs::RunSummary& a, const runs::RunSummary& b) {
  const auto value_of = [](const runs::RunSummary& run, const std::string& key) {
    for (const ordered_json* line : {&*run.last_step, &*run.last_evaluation})
      if (line->is_object() && line->contains(key)) return (*line)[key];
    return ordered_json();
  };
  std::set<std::string> keys;
  for (const auto* run : {&a, &b})
    for (const ordered_json* line : {&*run->last_step, &*run->last_evaluation})
      if (line->is_object())
        for (const auto& [key, value] : line->items())
          if (value.is_number() && key != "time") keys.insert(key);
  for (const std::string& key : keys)
    out["results"][key] = {value_of(a, key), value_of(b, key)};
}

void compare(const fs::path& a, const fs::path& b, bool wants_json) {
  const service::RunComparison compared = service::compare_runs(std::array{a, b});
  const runs::RunSummary &run_a = compared.runs[0], &run_b = compared.runs[1];
  ordered_json out;
  term::Table table({{""}, {run_a.name()}, {run_b.name()}});
  for (const service::SettingDifference& setting : compared.settings) {
    const std::string key(setting.option->key);
    table.add_row({key, setting.values[0], setting.values[1]});
    out["settings"][key] = setting.values;
  }
  if (wants_json) return add_all_numbers(out, run_a, run_b), print_run_json(out);
  if (!compared.settings.empty()) table.add_rule();
  for (const Result& result : kResults) {
    const std::string x = result_text(run_a, result), y = result_text(run_b, result);
    if (x != "-" || y != "-") table.add_row({std::string(result.name), x, y});
  }
  for (const std::string& metric : compared.metrics)
    table.add_row({metric, number_text(*run_a.last_evaluation, metric.c_str(), "{:.4f}"),
                   number_text(*run_b.last_evaluation, metric.c_str(), "{:.4f}")});
  fmt::print("{}", table.text(term::detect_terminal(1)));
}

/** The same for programs; the exit code says whether all is as it was written. */
int check_as_json(const fs::path& run) {
  int exit_code = 0;
  ordered_json out = {{"run", run.string()}, {"checkpoints", ordered_json::array()}};
  for (const runs::Checkpoint& checkpoint : runs::complete_checkpoints(run)) {
    ordered_json entry = {{"path", checkpoint.path.string()}, {"step", checkpoint.step}};
    try {
      entry["state"] = runs::check_checkpoint(checkpoint.path) ? "intact" : "removed";
    } catch (const Error& error) {
      entry["state"] = "damaged";
      entry["message"] = error.what();
      exit_code = error.exit_code();
    }
    out["checkpoints"].push_back(entry);
  }
  const runs::SettingsState state = runs::check_settings_file(run);
  out["settings"] = state == runs::SettingsState::as_written  ? "intact"
                    : state == runs::SettingsState::unchecked ? "without a checksum"
                                                              : "changed";
  if (state == runs::SettingsState::changed) exit_code = static_cast<int>(Fault::data);
  print_run_json(out);
  return exit_code;
}

void check(const fs::path& run) {
  const auto all = runs::complete_checkpoints(run);
  if (all.empty()) ferry::print(fmt::format("{} has no complete checkpoint\n", run.string()));
  for (const runs::Checkpoint& checkpoint : all) {
    const bool is_there = runs::check_checkpoint(checkpoint.path);
    ferry::print(fmt::format("{}: {}\n", checkpoint.path.string(),
                             is_there ? "intact" : "removed by its run meanwhile"));
  }
  const fs::path settings = run / "config.toml";
  switch (runs::check_settings_file(run)) {
    case runs::SettingsState::as_written:
      return ferry::print(fmt::format("{}: intact\n", settings.string()));
    case runs::SettingsState::unchecked:
      return ferry::print(
          fmt::format("{}: an older Ferry wrote it, without a checksum\n", settings.string()));
    case runs::SettingsState::changed:
      throw Error(
          Fault::data, "runs.check",
          fmt::format("'{}' is not as Ferry wrote it: edited, or damaged", settings.string()),
          "read it through; the next resume writes it anew with its checksum");
  }
}

void report(const fs::path& run, const fs::path& output, bool wants_json) {
  const fs::path written = service::write_run_report(run, output);
  log_line(
      "settings, the log's end, metrics, this machine, plan against actual; tokens and texts are "
      "left out, paths shortened: look through it before you send it");
  if (wants_json) return print_run_json({{"report", written.string()}});
  ferry::print(fmt::format("{}\n", written.string()));
}

/** The run's own error keeps its code ("[config.value] ..."); another answer has none. */
Error refusal_of(const std::string& answer) {
  const size_t end = answer.find("] ");
  if (!answer.starts_with('[') || end == std::string::npos)
    return Error(Fault::usage, "runs.control", answer);
  return Error(Fault::usage, answer.substr(1, end - 1), answer.substr(end + 2));
}

/** Asks the process of the run; its answer is the output. */
void ask(const fs::path& run, const nlohmann::json& question, bool wants_json) {
  const fs::path socket = service::control_socket_of(run, runs::read_run(run));
  const runs::ControlAnswer answer = runs::ask_run(socket, question);
  if (!answer.is_done) throw refusal_of(answer.text);
  if (wants_json) return print_run_json({{"answer", answer.text}});
  ferry::print(fmt::format("{}\n", answer.text));
}

struct RunsVerb {
  std::string_view name, words;  // after it
};
constexpr RunsVerb kVerbs[] = {{"ls", "[DIRECTORY]"},
                               {"show", "RUN"},
                               {"compare", "RUN RUN"},
                               {"pause", "RUN"},
                               {"resume", "RUN"},
                               {"save", "RUN"},
                               {"sample", "RUN"},
                               {"stop", "RUN [--no-save]"},
                               {"set", "RUN KEY=VALUE"},
                               {"check", "RUN"},
                               {"report", "RUN [--output FILE]"},
                               {"stores", "[DIRECTORY...]"},
                               {"delete", "RUN [--yes]"}};
/** The names other programs use. */
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"list", "ls"},      {"status", "show"}, {"info", "show"},
    {"diff", "compare"}, {"kill", "stop"},   {"continue", "resume"},
    {"verify", "check"}, {"rm", "delete"},   {"remove", "delete"}};

[[noreturn]] void refuse(const std::vector<std::string>& words) {
  const auto wrong = [](const std::string& what, const std::string& hint) {
    return Error(Fault::usage, "cli.runs", what, hint);
  };
  if (words.empty()) throw wrong("ferry runs needs a verb", "ferry runs ls lists the known runs");
  const std::string& verb = words[0];
  for (const RunsVerb& known : kVerbs)
    if (verb == known.name)
      throw wrong(
          words.size() == 1 && known.words.starts_with("RUN")
              ? fmt::format("ferry runs {} needs a RUN", verb)
              : fmt::format("'ferry runs {}' is not how {} is called", fmt::join(words, " "), verb),
          fmt::format("usage: ferry runs {} {}; `ferry runs ls` lists runs", verb, known.words));
  if (verb == "log" || verb == "logs" || verb == "tail")
    throw wrong(fmt::format("ferry runs has no '{}'", verb),
                "what a run says is in RUN/train.log: tail -f RUN/train.log");
  std::string meant;
  for (const auto& [other, name] : kOtherNames)
    if (verb == other) meant = name;
  if (meant.empty()) {
    std::vector<std::string_view> names;
    for (const RunsVerb& known : kVerbs)
      names.push_back(known.name);
    meant = nearest_name(verb, names);
  }
  throw wrong(fmt::format("ferry runs has no '{}'", verb),
              meant.empty() ? "ferry runs --help lists what there is"
                            : fmt::format("did you mean '{}'?", meant));
}

}  // namespace

int run_runs(Arguments arguments) {
  bool wants_json = false, saves = true, is_sure = false;
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
    else if (argument == "--yes")
      is_sure = true;
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
           (output.empty() || name == "report") && (!is_sure || name == "delete");
  };
  if (is("ls", 0) || is("ls", 1)) {
    list_runs(words.size() > 1 ? words[1] : "", wants_json);
  } else if (is("show", 1)) {
    show_run(runs::find_run(words[1]), wants_json);
  } else if (verb == "stores" && is("stores", words.size() - 1)) {
    list_stores(std::span(words).subspan(1), wants_json);
  } else if (is("delete", 1)) {
    delete_remains(words[1], is_sure, wants_json);
  } else if (is("compare", 2)) {
    compare(runs::find_run(words[1]), runs::find_run(words[2]), wants_json);
  } else if (is("check", 1)) {
    if (wants_json) return check_as_json(runs::find_run(words[1]));
    check(runs::find_run(words[1]));
  } else if (is("report", 1)) {
    report(runs::find_run(words[1]), output, wants_json);
  } else if (is("pause", 1) || is("resume", 1) || is("save", 1) || is("sample", 1) ||
             is("stop", 1)) {
    ask(runs::find_run(words[1]), {{"command", verb}, {"save", saves ? "yes" : "no"}}, wants_json);
  } else if (is("set", 2) && words[2].find('=') != std::string::npos) {
    const size_t equals = words[2].find('=');
    ask(runs::find_run(words[1]),
        {{"command", "set"},
         {"key", words[2].substr(0, equals)},
         {"value", words[2].substr(equals + 1)}},
        wants_json);
  } else {
    refuse(words);
  }
  return 0;
}

}  // namespace ferry::cli
