// ferry-trainer: the torch half. `ferry train | eval | predict | export` check their command line
// and become this program; it reads the same command line with the same table. `ferry doctor` and
// `ferry bench` start it to measure.

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "simd/level.h"
#include "src/base/error.h"
#include "src/base/out_of_memory.h"
#include "src/base/print.h"
#include "src/config/command_line.h"
#include "src/config/models.h"
#include "src/engine/torch_setup.h"
#include "src/engine/weights.h"
#include "src/files/lost_pages.h"
#include "src/measure/bench_verb.h"
#include "src/runs/run_index.h"
#include "src/runs/train_log.h"
#include "src/train/checkpoint/checkpoint.h"
#include "src/train/checkpoint/export.h"
#include "src/train/checkpoint/final_model.h"
#include "src/train/loop/interrupt.h"
#include "src/train/loop/report.h"

namespace ferry {
namespace {

void start_torch(const config::Config& config, const Machine& machine) {
  set_up_torch({.deterministic = config.flag("deterministic"),
                .intra_op_threads = static_cast<int>(
                    config.maybe_integer("intra_op_threads").value_or(machine.n_cores))});
}

/** The run that `ferry train` works on, as far as there is one. */
struct OpenRun {
  std::filesystem::path path;  ///< empty: there is no directory yet
  std::optional<runs::RunDirectory> directory;
  std::optional<runs::TrainLog> log;
  std::optional<Listening> listening;  // last: it ends before the log
};

/** Makes and locks the directory; from here on train.log hears what is said. */
void open_run(OpenRun& run,
              const Job& job,
              const std::vector<std::string>& notes,
              std::vector<std::string> words) {
  run.directory.emplace(make_output_directory(job, run.path));
  words.insert(words.begin(), {"ferry", "train"});
  run.log.emplace(run.path, words);
  run.listening.emplace([&run](std::string_view line) { run.log->add(line); });
  for (const std::string& line : notes)
    log_only(fmt::format("ferry: {}", line));  // the ferry binary has said them
}

/** Says why in run.json, then goes on as an error. */
[[noreturn]] void rethrow_failed(runs::RunDirectory& run) {
  try {
    throw;
  } catch (const std::exception& e) {
    const auto no_memory = out_of_memory(e);
    try {
      run.set_phase(runs::Phase::failed, {{"exit_reason", no_memory ? no_memory->what() : e.what()},
                                          {"actual", actual_json()}});
    } catch (const std::exception&) {  // the directory may be what failed; e says more
    }
    throw;
  }
}

/** The model that was best, not the last one; its predictions too. */
void load_best(TrainingResult& result, Session& session, const Job& job) {
  if (!result.best || result.best->step == session.n_steps()) return;
  load_model(*result.best, job, session);
  result.evaluation = evaluate(session, job, /*labelled=*/true);
}

int finish_training(TrainingResult result,
                    Session& session,
                    const Job& job,
                    const Promise& promise,
                    runs::RunDirectory& run,
                    const term::Terminal& terminal) {
  load_best(result, session, job);
  save_predictions(result.evaluation, job, run.path() / "predictions.jsonl");
  run.set_phase(runs::Phase::saving);
  const auto final = save_final(session, job, run.path());
  run.set_phase(runs::Phase::finished,
                {{"exit_reason", "finished"}, {"actual", actual_json(&result)}});
  print_end(result, job, promise, final, terminal);
  return 0;
}

/** Refuses changes to a finished run: they cannot be had any more. */
void refuse_changes(const config::Config& config, const runs::ResumePoint& finished) {
  std::string asks;
  for (const char* key : {"num_train_epochs", "max_steps", "max_time"})
    if (config.origin(key).source == config::Source::command_line) asks = config.origin(key).where;
  const auto all = runs::complete_checkpoints(finished.run);
  if (finished.checkpoint && finished.checkpoint->step != all.back().step)
    asks = finished.checkpoint->path.filename().string();
  if (asks.empty()) return;
  throw Error(Fault::usage, "train.resume",
              fmt::format("'{}' is finished, and {} asks for more", finished.run.string(), asks),
              fmt::format("start a new run from its model: --model '{}'; or remove '{}' first",
                          (finished.run / "final").string(), (finished.run / "final").string()));
}

bool is_finished(const runs::ResumePoint& resumed) {
  std::error_code error;
  return std::filesystem::exists(resumed.run / "final", error);
}

int say_finished(const runs::ResumePoint& finished) {
  print(fmt::format("the run is finished\nmodel: {}\n", (finished.run / "final").string()));
  return 0;
}

int train_in(OpenRun& run, config::CommandLine command, const std::vector<std::string>& words) {
  const term::Terminal terminal = term::detect_terminal(1);
  std::optional<runs::ResumePoint> resumed;
  const std::string from = command.config.text("resume_from_checkpoint");
  if (!from.empty()) {
    resumed = runs::find_resume_point(from);
    run.path = resumed->run;
  }
  if (resumed && is_finished(*resumed)) {
    refuse_changes(command.config, *resumed);
    return say_finished(*resumed);
  }
  catch_interrupts();
  auto job = prepare_training(std::move(command.config));
  if (resumed && resumed->checkpoint) check_same(*resumed->checkpoint, *job);
  const auto directory = resumed ? resumed->run : choose_output_directory(*job);
  start_torch(job->config, job->machine);
  const int64_t before_bytes = process_bytes();
  LoadReport loaded;
  auto session = open_session(*job, &loaded);
  run.path = directory;
  open_run(run, *job, command.notes, words);
  if (resumed) {  // before the run was locked another process may have taken it further, or ended
                  // it
    resumed = runs::find_resume_point(from);
    if (is_finished(*resumed)) return say_finished(*resumed);
  }
  if (!resumed) write_settings(*job, run.path);  // first: what has them can go on
  nlohmann::ordered_json about = {{"model", job->config.text("model_name_or_path")},
                                  {"dataset", job->config.text("dataset")},
                                  {"n_steps", job->n_steps},
                                  {"identity", *job->identity},
                                  {"plan", plan_json(job->plan, job->machine.plan.has_gpu)}};
  if (!resumed) about["parent"] = runs::parent_of(job->directory.path());
  run.directory->set_phase(runs::Phase::preparing, about);
  runs::RunIndex().add(run.path);
  try {
    print_start(*job, loaded, resumed && resumed->checkpoint, terminal);
    // This comes before the states are loaded: its neutral update may turn a -0 into +0.
    Promise promise =
        rehearse(*session, *job, resumed && resumed->checkpoint ? resumed->checkpoint->step : 0);
    if (resumed && resumed->checkpoint) {
      load_checkpoint(*resumed->checkpoint, *job, *session);
      print(fmt::format("resumed from {}\n", resumed->checkpoint->path.string()));
      log_only(fmt::format("resumed from {}", resumed->checkpoint->path.string()));
      for (const std::string& name : runs::put_aside_later(run.path, resumed->checkpoint->step))
        log_line(fmt::format("{} is of the continuation that the run leaves: put aside", name));
    }
    if (resumed) write_settings(*job, run.path);  // the checkpoint has agreed with them
    promise.peak_bytes = before_bytes + planned_host_bytes(*job);
    print_expected(promise);
    promise.gpu_bytes = planned_gpu_bytes(*job);
    run.directory->set("promised", promised_json(promise));
    save_on_interrupts();
    TrainingResult result = train(*session, *job, *run.directory);
    if (!result.is_interrupted)
      return finish_training(std::move(result), *session, *job, promise, *run.directory, terminal);
    const std::string reason = result.is_saved ? "stopped after saving" : "stopped without saving";
    run.directory->set_phase(runs::Phase::stopped,
                             {{"exit_reason", reason}, {"actual", actual_json(&result)}});
    log_line(fmt::format("{}, after step {}; go on with: ferry train --resume '{}'", reason,
                         session->n_steps(), run.path.string()));
    return kInterruptedExit;
  } catch (...) {
    rethrow_failed(*run.directory);
  }
}

int fail_training(const OpenRun& run, const std::exception& error, int exit_code) {
  log_line(fmt::format("ferry: {}", error.what()));
  // The message of a refusal before the run was touched says all that there is to say.
  const bool is_refused = exit_code == static_cast<int>(Fault::does_not_fit) && !run.directory;
  std::error_code code;
  if (exit_code >= runs::kFirstReportedExit && !is_refused &&
      std::filesystem::is_directory(run.path, code))
    log_line(runs::report_advice(run.path));
  return exit_code;
}

int run_train(config::CommandLine command, const std::vector<std::string>& words) {
  OpenRun run;
  try {
    return train_in(run, std::move(command), words);
  } catch (const Error& error) {
    return fail_training(run, error, error.exit_code());
  } catch (const std::exception& error) {
    if (const auto no_memory = out_of_memory(error))
      return fail_training(run, *no_memory, no_memory->exit_code());
    return fail_training(run, error, static_cast<int>(Fault::machine));
  }
}

nlohmann::ordered_json to_json(const Evaluation& evaluation, const Job& job) {
  nlohmann::ordered_json out;
  out["samples"] = job.eval.size();
  out["eval_loss"] = evaluation.loss;
  for (const auto& [name, value] : evaluation.metrics)
    out[name] = value;
  return out;
}

int run_eval(config::CommandLine command) {
  auto job = prepare_inference(std::move(command.config), /*wants_labels=*/true, {});
  start_torch(job->config, job->machine);
  auto session = open_session(*job);
  for (const std::string& note : job->notes)
    fmt::print(stderr, "{}\n", note);
  Evaluation evaluation = evaluate(*session, *job, /*labelled=*/true);
  if (command.wants_json)
    fmt::print("{}\n", to_json(evaluation, *job).dump());
  else
    print_metrics(evaluation, *job, term::detect_terminal(1));
  return 0;
}

int run_predict(config::CommandLine command) {
  auto job = prepare_inference(std::move(command.config), /*wants_labels=*/false, command.words);
  start_torch(job->config, job->machine);
  auto session = open_session(*job);
  Evaluation evaluation = evaluate(*session, *job, /*labelled=*/false);
  for (size_t i = 0; i < evaluation.predictions.size(); ++i) {
    const Prediction& p = evaluation.predictions[i];
    if (!command.wants_json) {
      fmt::print("{}\n", describe(p, job->scheme));
      continue;
    }
    nlohmann::ordered_json row;
    row["text"] = job->eval_examples.examples[i].text;
    if (const auto& second = job->eval_examples.examples[i].text_pair) row["text_pair"] = *second;
    if (job->scheme.problem == ProblemType::regression) {
      row["value"] = p.scores[0];
    } else {
      row["labels"] = nlohmann::ordered_json::array();  // also where no label is likely
      for (int32_t c : p.classes)
        row["labels"].push_back(job->scheme.labels.name(c));
      for (size_t c = 0; c < p.scores.size(); ++c)
        row["scores"][job->scheme.labels.name(static_cast<int32_t>(c))] = p.scores[c];
    }
    row["logits"] = p.logits;
    fmt::print("{}\n", row.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  }
  return 0;
}

int run_export(const config::CommandLine& command) {
  const std::filesystem::path to = command.config.text("output_dir");
  export_model(config::find_model(command.config.text("model_name_or_path")), to);
  fmt::print("{}\n", to.string());
  return 0;
}

int run(const std::string& verb, const std::vector<std::string>& arguments) {
  simd::level();  // a FERRY_SIMD that this machine cannot do shows before any work
  if (verb == "bench") return measure::run_bench_verb(arguments);
  config::CommandLine command = config::parse_command_line(verb, arguments);
  config::check_required(command);
  if (verb == "train") return run_train(std::move(command), arguments);
  if (verb == "eval") return run_eval(std::move(command));
  if (verb == "predict") return run_predict(std::move(command));
  if (verb == "export") return run_export(command);
  throw Error(Fault::usage, "trainer", fmt::format("'{}' is not a verb of the trainer", verb),
              "see `ferry --help`");
}

}  // namespace
}  // namespace ferry

int main(int argc, char** argv) {
  // A limit on file sizes is then an error with a message, and what was half-written goes.
  std::signal(SIGXFSZ, SIG_IGN);
  ferry::end_on_lost_pages();
  try {
    if (argc < 2)
      throw ferry::Error(ferry::Fault::usage, "trainer", "no verb", "start it through `ferry`");
    const int exit_code = ferry::run(argv[1], std::vector<std::string>(argv + 2, argv + argc));
    const int failure = ferry::print_failure();  // a reader that went away is no fault of the run
    const bool is_reader_gone = failure == EPIPE || failure == EIO;
    if (!is_reader_gone && (std::fflush(stdout) != 0 || std::ferror(stdout) != 0))
      throw ferry::Error(ferry::Fault::machine, "cli.output", "cannot write to standard output",
                         "is the disk full?");
    return exit_code;
  } catch (const ferry::Error& e) {
    ferry::log_line(fmt::format("ferry: {}", e.what()));
    return e.exit_code();
  } catch (const std::exception& e) {
    const auto no_memory = ferry::out_of_memory(e);
    ferry::log_line(fmt::format("ferry: {}", no_memory ? no_memory->what() : e.what()));
    return static_cast<int>(no_memory ? no_memory->fault() : ferry::Fault::machine);
  }
}
