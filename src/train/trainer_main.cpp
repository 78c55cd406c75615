// ferry-trainer: the torch half. `ferry train | eval | predict | generate | export` check their
// command line and become this program; it reads the same command line with the same table. `ferry
// doctor` and `ferry bench` start it to measure.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "simd/level.h"
#include "src/base/data_output.h"
#include "src/base/error.h"
#include "src/base/print.h"
#include "src/base/process/out_of_memory.h"
#include "src/base/process/supervision.h"
#include "src/comm/rank_lost.h"
#include "src/config/command_line/command_line.h"
#include "src/config/models/models.h"
#include "src/engine/state/weights.h"
#include "src/engine/torch_setup.h"
#include "src/files/lost_pages.h"
#include "src/files/write/owned_file.h"
#include "src/inputs/chosen_task.h"
#include "src/inputs/empty_answer.h"
#include "src/inputs/model_files.h"
#include "src/measure/bench_verb.h"
#include "src/request/export_target.h"
#include "src/request/nvme.h"
#include "src/request/run_plan.h"
#include "src/runs/directory/settings_file.h"
#include "src/runs/index/run_index.h"
#include "src/runs/logs/train_log.h"
#include "src/train/checkpoint/checkpoint.h"
#include "src/train/checkpoint/export.h"
#include "src/train/checkpoint/export_check.h"
#include "src/train/checkpoint/final_model.h"
#include "src/train/checkpoint/gguf_export.h"
#include "src/train/control/best_model.h"
#include "src/train/control/events.h"
#include "src/train/control/interrupt.h"
#include "src/train/control/room.h"
#include "src/train/evaluate/references.h"
#include "src/train/generate/chatting.h"
#include "src/train/generate/generation.h"
#include "src/train/generate/serving.h"
#include "src/train/loop/hang_watch.h"
#include "src/train/loop/report.h"
#include "src/train/prepare/run_state.h"
#include "src/train/prepare/run_store.h"
#include "src/train/prepare/settle_plan.h"
#include "src/train/ranks/following.h"
#include "src/train/ranks/rank_team.h"

namespace ferry {
namespace {

constexpr const char *kWarning = "warning", *kFinished = "finished";

void start_torch(const config::Config& config, const Machine& machine) {
  set_up_torch({.deterministic = config.flag("deterministic"),
                .intra_op_threads = static_cast<int>(
                    config.maybe_integer("intra_op_threads").value_or(machine.n_cores))});
}

/** The run that `ferry train` works on, as far as there is one. */
struct OpenRun {
  std::filesystem::path path;  ///< empty: there is no directory yet
  std::unique_ptr<runs::RunDirectory> directory;
  std::optional<runs::TrainLog> log;
  std::string advice;                  ///< what more is said where it fails
  std::shared_ptr<RankTeam> team;      ///< where there are several ranks, once they have met
  std::optional<Listening> listening;  // last: it ends before the log
};

/** Takes the directory, which is locked; from here on train.log hears what is said. */
void open_run(OpenRun& run,
              std::unique_ptr<runs::RunDirectory> directory,
              const std::vector<std::string>& notes,
              std::vector<std::string> words) {
  run.directory = std::move(directory);
  words.insert(words.begin(), {"ferry", "train"});
  run.log.emplace(run.path, words);
  run.listening.emplace([&run](std::string_view line) { run.log->add(line); });
  for (const std::string& line : notes)
    log_only(fmt::format("ferry: {}", line));  // the ferry binary has said them
}

/** A run that was started anew says so in all that is kept of it. Who kills it finds its watcher.
 * run.json gets both together with the phase, for from then on this process marks its failures. */
void tell_restart(const OpenRun& run, nlohmann::ordered_json& about) {
  about["watcher"] = is_supervised() ? nlohmann::ordered_json(::getppid()) : nullptr;
  const auto& restart = restart_of_this_process();
  if (!restart) return;
  log_only(fmt::format("ferry: the run starts anew, restart {}", *restart));
  about["restarts"] = run.directory->get("restarts");
  about["restarts"].push_back(*restart);
  tell_event("restart", {{"restart", *restart}});
}

/** Says why in run.json, then goes on as an error. Where the run's directory has gone, that is the
 * error: what failed in it says less. */
[[noreturn]] void rethrow_failed(runs::RunDirectory& run) {
  run.check();
  try {
    throw;
  } catch (const std::exception& e) {
    const auto no_memory = out_of_memory(e);
    try {
      run.set_phase(runs::Phase::failed, {{"exit_reason", no_memory ? no_memory->what() : e.what()},
                                          {"actual", actual_json()}});
    } catch (const std::exception&) {  // the disk may be what failed; e says more
    }
    throw;
  }
}

/** The model that was best, not the last one; its predictions too. */
void load_best(TrainingResult& result,
               Session& session,
               const Job& job,
               const std::filesystem::path& run) {
  if (!result.best || !result.best->checkpoint) return;
  load_model(*result.best->checkpoint, job, session);
  result.evaluation = evaluate(session, job.model, job.data, predictions_of(run));
}

/** Puts predictions.jsonl in its place, made again where the disk had no room for it. Throws
 * DiskFull where it still has none. */
void write_predictions(Evaluation& evaluation,
                       Session& session,
                       const Job& job,
                       const std::filesystem::path& run) {
  if (job.data.eval.size() == 0) return write_text_file(predictions_of(run), "");
  if (!evaluation.predictions)
    evaluation = evaluate(session, job.model, job.data, predictions_of(run));
  try {
    evaluation.predictions->commit();
  } catch (const DiskFull&) {
    evaluation.predictions.reset();
    throw;
  }
}

/** Why a run was left, and from where it would go on. */
std::string say_stopped(const TrainingResult& result,
                        int64_t n_steps,
                        const std::filesystem::path& run) {
  const std::string command =
      runs::shell_line(std::array<std::string, 4>{"ferry", "train", "--resume", run.string()});
  if (result.is_saved)
    return fmt::format("stopped after saving, at step {}; continue with: {}", n_steps, command);
  const auto all = runs::complete_checkpoints(run);
  if (all.empty())
    return fmt::format(
        "stopped without saving: the run has no checkpoint, and begins at step 0 "
        "with: {}",
        command);
  return fmt::format("stopped without saving, at step {}; continue from step {} ({}) with: {}",
                     n_steps, all.back().step, all.back().path.filename().string(), command);
}

int leave(const std::string& reason,
          TrainingResult& result,
          int64_t n_steps,
          runs::RunDirectory& run) {
  run.set_phase(runs::Phase::stopped, {{"exit_reason", reason}, {"actual", actual_json(&result)}});
  log_line(say_stopped(result, n_steps, run.path()));
  tell_event("end", {{"exit_code", kInterruptedExit}, {"exit_reason", reason}, {"step", n_steps}});
  return kInterruptedExit;
}

int finish_training(TrainingResult result,
                    Session& session,
                    const Job& job,
                    const Promise& promise,
                    runs::RunDirectory& run,
                    const term::Terminal& terminal) {
  load_best(result, session, job, run.path());
  nlohmann::ordered_json outcome = nlohmann::ordered_json::object();
  if (const auto warnings = warnings_of(result, job); !warnings.empty())
    outcome[kWarning] = fmt::format("{}", fmt::join(warnings, "; "));
  run.set_phase(runs::Phase::saving, outcome);  // it stays where the run ends beside its model
  outcome.update({{"exit_reason", kFinished}, {"actual", actual_json(&result)}});
  bool has_predictions = false;
  std::filesystem::path final;
  write_when_there_is_room(
      [&] {  // a second time only what the first could not
        if (!has_predictions) write_predictions(result.evaluation, session, job, run.path());
        has_predictions = true;
        if (final.empty())
          final = save_final(session, job.config, job.model, *job.data.task, run.path(),
                             choose_final_dtype(job.config, job.model.table.compute));
        run.set_phase(runs::Phase::finished, outcome);
        run.settle();
      },
      run);
  if (final.empty())
    return leave("stopped while it waited for room on the disk", result, session.n_steps(), run);
  print_end(result, job, promise, final, terminal);
  outcome["exit_code"] = 0;
  outcome["model"] = final.string();
  tell_event("end", outcome);
  return 0;
}

/** True if a finished run is asked for more steps. Throws Error(usage) where something else is
 * asked of it that it cannot do any more. */
bool is_asked_for_more(const config::Config& config, const runs::ResumePoint& finished) {
  config::Config own;
  config::read_toml_file(own, finished.run / "config.toml", config::Source::file);
  bool asks_for_more = false;
  std::string asks;
  for (const config::Option& option : config::option_table()) {
    const config::Origin& origin = config.origin(option.key);
    const bool is_given = origin.source == config::Source::command_line ||
                          origin.source == config::Source::environment;
    if (!is_given || option.effect == config::Effect::free || option.type == config::Type::path ||
        config.value(option.key) == own.value(option.key))
      continue;
    const bool is_length =
        option.key == "num_train_epochs" || option.key == "max_steps" || option.key == "max_time";
    asks_for_more = asks_for_more || is_length;
    if (!is_length) asks = origin.where;
  }
  const auto all = runs::complete_checkpoints(finished.run);
  if (finished.checkpoint && finished.checkpoint->step != all.back().step)
    throw Error(
        Fault::usage, "train.resume",
        fmt::format("'{}' is finished, and {} is not its last checkpoint", finished.run.string(),
                    finished.checkpoint->path.filename().string()),
        fmt::format("move '{}' away to go on from there", (finished.run / "final").string()));
  if (asks_for_more && finished.checkpoint) return true;
  if (asks_for_more) asks = "more steps";
  if (asks.empty()) return false;
  const std::string new_run = fmt::format("start a new run from its model: --model '{}'",
                                          (finished.run / "final").string());
  throw Error(Fault::usage, "train.resume",
              fmt::format("'{}' is finished, so {} cannot be taken", finished.run.string(), asks),
              finished.checkpoint
                  ? fmt::format("--max-steps N beside it, N above {}, continues it; or {}",
                                finished.checkpoint->step, new_run)
                  : fmt::format("it has no checkpoint to continue from; {}", new_run));
}

/** The trained model of a run that goes on for more steps makes room for the next one. */
void put_aside_final(const std::filesystem::path& run) {
  std::error_code error;
  if (!std::filesystem::exists(run / "final", error)) return;
  std::filesystem::remove_all(run / "final.left", error);
  std::filesystem::rename(run / "final", run / "final.left", error);
  if (error)
    throw Error(
        Fault::machine, "train.resume",
        fmt::format("'{}' cannot be renamed: {}", (run / "final").string(), error.message()),
        "move it away");
  log_line("the run was finished and is resumed: its model is now final.left");
}

bool is_finished(const runs::ResumePoint& resumed) {
  std::error_code error;
  return std::filesystem::exists(resumed.run / "final", error);
}

/** A process may be killed when its model is there, and run.json does not say so yet. Gives the
 * warning that run.json has. */
std::string settle_finished(const std::filesystem::path& run) {
  std::string warning;
  try {
    const nlohmann::ordered_json record = runs::read_run(run);
    warning = record.value(kWarning, "");
    if (record.value("phase", "") == runs::name_of(runs::Phase::finished)) return warning;
    runs::RunDirectory directory(run);
    if (!warning.empty()) directory.set(kWarning, warning);
    directory.set_phase(runs::Phase::finished, {{"exit_reason", kFinished}});
  } catch (const Error&) {  // the model is there all the same
  }
  return warning;
}

int say_finished(const runs::ResumePoint& finished) {
  tell_event(
      "end",
      {{"exit_code", 0}, {"exit_reason", kFinished}, {"model", (finished.run / "final").string()}});
  print("the run is finished\n");
  if (const std::string warning = settle_finished(finished.run); !warning.empty())
    print(fmt::format("warning: {}\n", warning));
  print(fmt::format("model: {}\n", (finished.run / "final").string()));
  return 0;
}

/** Reads of a checkpoint; where it is damaged, the earlier one that will do is said too. */
template <typename Read>
void read_from(const runs::Checkpoint& checkpoint, OpenRun& run, Read read) {
  try {
    read();
  } catch (const Error& error) {
    if (error.fault() == Fault::data) run.advice = runs::advice_on_damaged(checkpoint);
    throw;
  }
}

/** Logs what changes from this step on, and keeps it in run.json. */
void tell_changes(const nlohmann::ordered_json& changes, int64_t step, runs::RunDirectory& run) {
  if (changes.empty()) return;
  for (const auto& [key, change] : changes.items()) {
    const auto text = [](const nlohmann::ordered_json& value) {
      return value.is_string() ? value.get<std::string>() : value.dump();
    };
    log_line(fmt::format("{} was {}, and is {} from step {} on", key, text(change.at("was")),
                         text(change.at("is")), step + 1));
  }
  nlohmann::ordered_json history = run.get("history");
  history.push_back({{"step", step}, {"changes", changes}});
  run.set("history", std::move(history));
}

/** The states that a run goes on from. */
struct ResumedFrom {
  std::optional<runs::Checkpoint> checkpoint;  ///< the run's last, or the one that was named
  std::optional<runs::LastStep> last;          ///< of a store: later than the checkpoint
  std::string note;                            ///< why it is not the last step that could be

  bool has_any() const { return checkpoint || last; }
  int64_t step() const { return last ? last->step : checkpoint->step; }
};

/** True where the run's best evaluation until this step has states neither in a checkpoint nor in
 * this step, and the run comes by it again from `checkpoint`. */
bool has_lost_best(const config::Config& config,
                   const std::filesystem::path& run,
                   const std::optional<runs::Checkpoint>& checkpoint,
                   int64_t step) {
  const auto evaluations = runs::read_evaluations(run, step);
  const BestModel best(config, evaluations);
  if (!best.is_loaded_at_end() || evaluations.empty()) return false;
  const int64_t best_step = best.ranking().front();
  return best_step != step && best_step > (checkpoint ? checkpoint->step : 0);
}

/** `from`: the run, or one of its checkpoints. */
ResumedFrom find_states(const runs::ResumePoint& resumed,
                        const std::string& from,
                        const config::Config& config) {
  ResumedFrom found = {.checkpoint = resumed.checkpoint, .last = {}, .note = {}};
  std::error_code error;
  if (is_finished(resumed) || !std::filesystem::equivalent(from, resumed.run, error)) return found;
  found.last = runs::last_step_of(resumed.run, nvme_settings(config).directories);
  if (found.last && resumed.checkpoint && found.last->step <= resumed.checkpoint->step)
    found.last.reset();
  if (found.last && has_lost_best(config, resumed.run, resumed.checkpoint, found.last->step)) {
    found.note = fmt::format(
        "the last step on the drive is {}, and the run goes back: the checkpoint of its best "
        "evaluation was not complete when it ended",
        found.last->step);
    found.last.reset();
  }
  return found;
}

/** Weights and states that the run goes on from, once the session's memory has been tried; where it
 * begins, nothing is read. */
Promise rehearse_and_load(Session& session, Job& job, const ResumedFrom& from, OpenRun& run) {
  Promise promise;
  if (!from.has_any()) {
    promise = rehearse(session, job, 0);
    take_references(session, job, run.path, /*run_begins=*/true);
    // Before its metrics go: without them the steps on the drive must not be gone on from.
    if (!from.note.empty()) session.commit_states();
    return promise;
  }
  const auto load = [&] {
    if (job.model.has_checkpoint) load_model(*from.checkpoint, job, session);
    // Before the states are loaded: its neutral update may turn a -0 into +0.
    promise = rehearse(session, job, from.step());
    take_references(session, job, run.path, /*run_begins=*/false);
    if (from.last)
      job.last_report = load_last_step(*from.last, job, session);
    else
      load_checkpoint(*from.checkpoint, job, session);
  };
  if (from.checkpoint)
    read_from(*from.checkpoint, run, load);
  else
    load();
  const std::string text = fmt::format(
      "resumed at step {} from {}", from.step(),
      from.last ? "the last step on the drive" : from.checkpoint->path.filename().string());
  print(text + "\n");
  log_only(text);
  for (const std::string& name : runs::put_aside_later(run.path, from.step()))
    log_line(fmt::format("{} is of the continuation that the run leaves: put aside", name));
  put_aside_final(run.path);
  tell_changes(from.last ? changes_since(*from.last, job.identity)
                         : changes_since(*from.checkpoint, job.identity),
               from.step(), *run.directory);
  return promise;
}

/** Ranks that this process does not start wait for it from now on: they hear of whatever fails. */
std::shared_ptr<RankTeam> meet_other_hosts(const config::Config& config) {
  const RunRanks ranks = ranks_to_start(config);
  if (!ranks.place || ranks.world == 1) return nullptr;
  if (!ranks.hosts.empty())
    log_line(fmt::format("ferry: host 0 of {} (from 0) leads; it starts the others by ssh",
                         ranks.n_hosts));
  else if (!ranks.is_launched)
    log_line(fmt::format("ferry: host 0 of {} (from 0) leads; it waits for the others at {}:{}",
                         ranks.n_hosts, ranks.place->master_address, ranks.place->master_port));
  return std::make_shared<RankTeam>(ranks, config);
}

/** Does work that reads a run's files before the run is locked. Where another process trains in the
 * run, files come and go: an error then names that process, Error(usage). */
template <class Work>
auto read_unlocked(const std::optional<runs::ResumePoint>& resumed,
                   OpenRun& run,
                   const Work& work) {
  try {
    return work();
  } catch (const Error&) {
    std::string advice = std::exchange(run.advice, {});
    if (resumed) const runs::RunDirectory alone(resumed->run);
    run.advice = std::move(advice);
    throw;
  }
}

int train_in(OpenRun& run, config::CommandLine command, const std::vector<std::string>& words) {
  const term::Terminal terminal = term::detect_terminal(1);
  run.team = meet_other_hosts(command.config);
  std::optional<runs::ResumePoint> resumed;
  const std::string from = command.config.text("resume_from_checkpoint");
  if (!from.empty()) {
    resumed = runs::find_resume_point(from);
    run.path = resumed->run;
  }
  const bool goes_on =
      resumed && is_finished(*resumed) && is_asked_for_more(command.config, *resumed);
  if (resumed && is_finished(*resumed) && !goes_on) return say_finished(*resumed);
  catch_interrupts();
  const auto checkpoint = resumed ? resumed->checkpoint : std::nullopt;
  for (const char* key : {"model_name_or_path", "config_name", "tokenizer_name"})
    if (const config::Origin& model = command.config.origin(key);
        checkpoint && !config::is_adapter(checkpoint->path) &&
        model.source == config::Source::command_line && !restart_of_this_process())
      log_line(fmt::format("{} is not read: the model of a resumed run is that of {}", model.where,
                           checkpoint->path.filename().string()));
  ResumedFrom states;
  Job job = read_unlocked(resumed, run, [&] {
    if (checkpoint)
      read_from(*checkpoint, run, [&] {
        runs::read_checksums(checkpoint->path);
        open_checkpoint_directory(checkpoint->path, command.config.text("model_name_or_path"));
      });
    if (resumed) states = find_states(*resumed, from, command.config);
    return prepare(std::move(command.config), {.checkpoint = checkpoint, .team = run.team});
  });
  run.team = job.team;
  if (checkpoint) check_same(*checkpoint, job);
  if (states.last) check_same(*states.last, job);
  if (goes_on && checkpoint->step >= job.steps.total)
    throw Error(Fault::usage, "train.resume",
                fmt::format("'{}' is finished after {} steps, and {} are asked for",
                            resumed->run.string(), checkpoint->step, job.steps.total),
                "ask for more: --max-steps N");
  const auto directory = resumed ? resumed->run : choose_output_directory(job.config);
  std::optional<TakenDirectory> taken;
  if (!resumed) taken.emplace(job, directory);
  start_torch(job.config, job.machine);
  const int64_t before_bytes = process_bytes();
  if (!resumed) {
    settle_plan(job);
    check_disk_of(job, directory);  // the plan may be another
  }
  LoadReport loaded;
  RunStore store(directory, checkpoint, states.last);
  auto session = open_session(job, store, &loaded);
  run.path = directory;
  open_run(run, taken ? taken->release() : make_output_directory(job, directory), command.notes,
           words);
  watch_for_hangs(run.path);
  if (resumed) {  // before the run was locked another process may have taken it further, or ended
                  // it
    resumed = runs::find_resume_point(from);
    if (is_finished(*resumed) && !goes_on) return say_finished(*resumed);
    if (job.model.has_checkpoint && !resumed->checkpoint)
      throw Error(Fault::data, "train.resume",
                  fmt::format("'{}' is gone", checkpoint->path.string()),
                  "give the same command again: the run begins at step 0");
    if (runs::check_settings_file(run.path) == runs::SettingsState::changed)
      log_line(fmt::format("'{}' is not as Ferry wrote it: edited, or damaged",
                           (run.path / "config.toml").string()));
    states = find_states(*resumed, from, job.config);
    if (!states.note.empty()) log_line(states.note);
    if (!states.has_any()) log_line("the run has no checkpoint: it begins at step 0");
  }
  if (!resumed) {
    write_settings(job.config, run.path);  // first: what has them can go on
    tell_supervisor(kToldRun, run.path.string());
  }
  nlohmann::ordered_json about = {
      {"model", name_of_model(job.config)},
      {"dataset", job.config.text("dataset")},
      {"n_steps", job.steps.total},
      {"identity", *job.identity.bits},
      {"plan", plan_json(job)},
      {"host_budget_bytes", host_budget_of(job.config, job.machine.plan)}};
  if (const auto commit = config::commit_of_snapshot(job.model.directory.base()))
    about["model_commit"] = *commit;
  if (!resumed)
    about["parent"] = job.model.directory.has_weights()
                          ? runs::parent_of(job.model.directory.path())
                          : nlohmann::ordered_json();
  tell_restart(run, about);
  run.directory->set_phase(runs::Phase::preparing, about);
  tell_event("start", {{"run", run.path.string()},
                       {"model", about["model"]},
                       {"dataset", about["dataset"]},
                       {"task", job.config.text("task")},
                       {"n_steps", job.steps.total},
                       {"n_samples", job.data.train.size()},
                       {"n_parameters", job.model.table.n_params()},
                       {"device", job.machine.device_name}});
  tell_event("plan", about["plan"]);
  store.keep(*session, *run.directory, job);
  runs::RunIndex().add(run.path);
  try {
    print_start(job, loaded, states.has_any(), terminal);
    Promise promise = rehearse_and_load(*session, job, states, run);
    store.keep_last_step(run.path, job, states.last.has_value());
    if (resumed) {
      write_settings(job.config, run.path);  // the checkpoint has agreed with them
      tell_supervisor(kToldRun, run.path.string());
    }
    promise.peak_bytes += before_bytes;
    print_expected(promise);
    run.directory->set("promised", promised_json(promise));
    tell_event("promise", promised_json(promise));
    save_on_interrupts();
    TrainingResult result = train(*session, job, *run.directory);
    if (!result.is_interrupted)
      return finish_training(std::move(result), *session, job, promise, *run.directory, terminal);
    return leave(result.is_saved ? "stopped after saving" : "stopped without saving", result,
                 session->n_steps(), *run.directory);
  } catch (...) {
    rethrow_failed(*run.directory);
  }
}

int fail_training(const OpenRun& run, const std::exception& error, int exit_code) {
  log_line(fmt::format("ferry: {}", error.what()));
  if (run.team) run.team->end(exit_code, error.what());
  auto end = nlohmann::ordered_json::parse(json_of_error(error.what(), exit_code));
  end["exit_code"] = exit_code;
  tell_event("end", end);
  if (!run.advice.empty()) log_line(run.advice);
  // A refusal before the run was touched says all that there is to say.
  const bool is_refused = exit_code == static_cast<int>(Fault::does_not_fit) && !run.directory;
  std::error_code code;
  if (exit_code >= runs::kFirstReportedExit && !is_refused &&
      std::filesystem::is_directory(run.path, code))
    log_line(runs::report_advice(run.path));
  return exit_code;
}

/** A rank that is gone may come back with the next start, unless a fault of settings or memory has
 * ended it. */
void tell_loss(const OpenRun& run, const RankLost& loss) {
  if (!run.team || !run.team->has_failed_by_itself()) tell_supervisor(kToldLoss, loss.what());
}

int run_train(config::CommandLine command, const std::vector<std::string>& words) {
  OpenRun run;
  try {
    const int exit_code = train_in(run, std::move(command), words);
    if (run.team) run.team->end(exit_code, exit_code == 0 ? "" : "it was stopped");
    return exit_code;
  } catch (const RankLost& loss) {
    const int exit_code = fail_training(run, loss, loss.exit_code());
    tell_loss(run, loss);
    return exit_code;
  } catch (const Error& error) {
    return fail_training(run, error, error.exit_code());
  } catch (const std::exception& error) {
    if (const auto no_memory = out_of_memory(error))
      return fail_training(run, *no_memory, no_memory->exit_code());
    return fail_training(run, error, static_cast<int>(Fault::machine));
  }
}

nlohmann::ordered_json to_json(const Evaluation& evaluation, const Data& data) {
  nlohmann::ordered_json out;
  out["samples"] = data.eval.size();
  out["eval_loss"] = evaluation.loss;
  for (const auto& [name, value] : evaluation.metrics)
    out[name] = value;
  return out;
}

/** The session of a model that is only asked. */
struct AskedModel {
  RunStore store{fmt::format("asked-{}", ::getpid())};
  std::unique_ptr<Session> session;

  /** Weights that are not read are said on standard error. */
  explicit AskedModel(const Job& job) {
    LoadReport loaded;
    session = open_session(job, store, &loaded);
    print_unused(loaded, term::detect_terminal(2));
  }
};

int run_eval(config::CommandLine command) {
  const config::Config settings = command.config;
  Job job = prepare(std::move(command.config), {.purpose = Purpose::evaluation});
  start_torch(job.config, job.machine);
  for (const std::string& note : job.notes)
    log_line(note);
  take_references_of(command.first_model, settings, job);
  const AskedModel asked(job);
  Evaluation evaluation = evaluate(*asked.session, job.model, job.data);
  if (command.wants_json)
    fmt::print("{}\n", to_json(evaluation, job.data).dump());
  else
    print_metrics(evaluation, *job.data.task, term::detect_terminal(1));
  return 0;
}

int run_predict(config::CommandLine command) {
  const Job job =
      prepare(std::move(command.config), {.purpose = Purpose::prediction, .words = command.words});
  start_torch(job.config, job.machine);
  const AskedModel asked(job);
  answer(*asked.session, job.model, job.data, [&](const Answer& answer) {
    const Example example = job.data.eval.example(answer.example);
    print(command.wants_json ? answer_line(example, answer.predicted) : answer.words + "\n");
  });
  return 0;
}

/** The text of a single prompt goes out as it comes; of several, each behind its prompt. */
int run_generate(config::CommandLine command) {
  const Job job = prepare_generation(std::move(command.config), command.words);
  start_torch(job.config, job.machine);
  const AskedModel asked(job);
  for (const std::string& note : job.notes)
    log_line(note);
  const bool streams = job.generation.n_prompts() == 1 && !command.wants_json;
  generate_unless(
      *asked.session, job, [] { return true; }, streams ? TakeText(print) : TakeText(),
      [&](const Prompt& prompt, const Generated& generated) {
        if (command.wants_json)
          print(to_json(prompt, generated).line());
        else
          print(streams ? "\n" : fmt::format("{}{}\n\n", prompt.text, generated.text));
        const std::string why = generated.ending == Ending::end_of_text
                                    ? explain_empty_answer(job.model.directory, job.model.tokenizer,
                                                           generated.ids, !generated.text.empty())
                                    : std::string();
        if (!why.empty()) log_line(why);
      });
  return 0;
}

/** Opens the model of a chat, and says what there is to say before the first turn. */
std::unique_ptr<AskedModel> open_chat(const Job& job) {
  start_torch(job.config, job.machine);
  auto asked = std::make_unique<AskedModel>(job);
  for (const std::string& note : job.notes)
    log_line(note);
  return asked;
}

int run_chat(config::CommandLine command) {
  const ChatJob chat = prepare_chat(std::move(command.config));
  return run_chat_loop(chat, *open_chat(chat.job)->session, command.wants_json);
}

int run_serve(config::CommandLine command) {
  const ChatJob chat = prepare_chat(std::move(command.config));
  return serve_model(chat, *open_chat(chat.job)->session, command.wants_json);
}

int run_export(const config::CommandLine& command) {
  const auto [is_gguf, to] = export_target(command.config);
  const auto from = config::find_model(command.config.text("model_name_or_path"));
  const auto dtype = dtype_named(command.config.text("dtype"));
  const auto directories = nvme_settings(command.config).directories;
  nlohmann::ordered_json said = {{"model", to.string()}};
  std::function<void(const std::filesystem::path& written)> check =
      [&](const std::filesystem::path& written) {
        if (const auto found = compare_models(from, written)) {
          log_line(found->text());
          said["compared"] = *found->json();
        }
      };
  // States on a drive are no files that a model is read from.
  if (!command.config.flag("compare_export") || runs::pin_record_of(from)) check = {};
  if (is_gguf)
    export_gguf(from, to, gguf_type_asked(command.config.text("gguf_type"), dtype), directories,
                check);
  else
    export_model(from, to, dtype, directories, check);
  ferry::print(command.wants_json ? said.dump() + "\n" : fmt::format("{}\n", to.string()));
  return 0;
}

/** Says what went wrong; as a line of JSON, too, where that was asked for. */
int fail(std::string_view message, int exit_code, const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--") break;
    if (argument != "--json") continue;
    const std::string line = json_of_error(message, exit_code);
    is_output_for_data() ? print_data(line) : print(line + "\n");
    break;
  }
  log_line(fmt::format("ferry: {}", message));
  return exit_code;
}

/** A rank that does not lead. It is named: several write to one terminal. */
int run_rank(const std::function<int()>& follow) {
  const auto name = [] {
    return rank_of_process() > 0 ? fmt::format("rank {}: ", rank_of_process()) : "";
  };
  try {
    return follow();
  } catch (const RankLost& loss) {
    log_line(fmt::format("ferry: {}{}", name(), loss.what()));
    tell_supervisor(kToldLoss, loss.what());
    return loss.exit_code();
  } catch (const Error& error) {
    log_line(fmt::format("ferry: {}{}", name(), error.what()));
    return error.exit_code();
  } catch (const std::exception& error) {
    log_line(fmt::format("ferry: {}{}", name(), error.what()));
    return static_cast<int>(Fault::machine);
  }
}

/** `ferry train` of a host that does not lead; without arguments as a launcher has started it. */
int run_follow(const std::vector<std::string>& arguments) {
  return run_rank([&] {
    return arguments.empty()
               ? follow_as_launched()
               : follow_as_host(config::parse_command_line("train", arguments).config);
  });
}

int run(const std::string& verb, const std::vector<std::string>& arguments) {
  simd::level();  // a FERRY_SIMD that this machine cannot do shows before any work
  if (verb == "bench") return measure::run_bench_verb(arguments);
  if (verb == "follow") return run_follow(arguments);
  if (verb == "rank") return run_rank([&] { return follow_as_child(arguments); });
  config::CommandLine command = config::parse_command_line(verb, arguments);
  config::check_required(command);
  if (verb == "train") {
    if (command.wants_json) keep_output_for_data();
    choose_task(command.config);  // the ferry binary has said it
    return run_train(std::move(command), arguments);
  }
  if (verb == "eval") return run_eval(std::move(command));
  if (verb == "predict") return run_predict(std::move(command));
  if (verb == "generate") return run_generate(std::move(command));
  if (verb == "chat") return run_chat(std::move(command));
  if (verb == "serve") return run_serve(std::move(command));
  if (verb == "export") return run_export(command);
  throw Error(Fault::usage, "trainer", fmt::format("'{}' is not a verb of the trainer", verb),
              "see `ferry --help`");
}

}  // namespace
}  // namespace ferry

int main(int argc, char** argv) {
  // A limit on file sizes is then an error with a message, and what was half-written goes.
  std::signal(SIGXFSZ, SIG_IGN);
  ferry::take_supervision();
  ferry::end_on_lost_pages();
  ferry::end_on_lost_memory();
  ferry::keep_memory_reserve();
  ferry::keep_others_out();
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
    return ferry::fail(e.what(), e.exit_code(), {argv + 1, argv + argc});
  } catch (const std::exception& e) {
    const auto no_memory = ferry::out_of_memory(e);
    return ferry::fail(no_memory ? no_memory->what() : e.what(),
                       static_cast<int>(no_memory ? no_memory->fault() : ferry::Fault::machine),
                       {argv + 1, argv + argc});
  }
}
