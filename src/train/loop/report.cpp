#include "src/train/loop/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>

#include "src/base/bytes.h"
#include "src/base/print.h"
#include "src/plan/drive_life.h"
#include "src/request/nvme.h"
#include "src/runs/logs/train_log.h"
#include "src/term/confusion.h"
#include "src/term/curve.h"
#include "src/term/table.h"
#include "src/train/loop/loss_rise.h"

namespace ferry {
namespace {

/** To standard output as the terminal shows it, and to train.log in plain letters. Texts and labels
 * of the data go to neither through here: a log is sent along. */
template <typename TextFor>
void tell(const term::Terminal& terminal, TextFor text_for) {
  print_drawn(text_for(terminal));
  log_only(text_for(term::Terminal{.has_utf8 = true}));
}
void tell(const std::string& text) {
  print(text);
  log_only(text);
}

void print_plan(const Plan& plan, bool has_gpu, const term::Terminal& terminal) {
  term::Table table({{"what"}, {"where"}, {"bytes", term::Align::right}});
  for (const PlanRow& row : rows_of(plan, has_gpu))
    if (row.n_bytes >= kMiB)
      table.add_row(
          {std::string(row.name), std::string(name_of(row.place)), format_bytes(row.n_bytes)});
  tell(terminal, [&](const term::Terminal& to) { return table.text(to); });
}

NvmeNeed drive_need_of(const Job& job) {
  if (job.plan.layout.n_bytes[Place::nvme] == 0) return {};
  return nvme_need_of(job.plan.shape, nvme_copies(job.config, job.plan.shape.trains));
}

void print_wear(const Job& job) {
  const std::optional<Simulation>& predicted = job.plan.predicted;
  const NvmeNeed need = drive_need_of(job);
  if (need.n_pieces == 0 && !nvme_settings(job.config).directories.empty())
    return tell(std::string(kDriveUnused) + "\n");
  const auto life = drive_life_of(need, nvme_settings(job.config).endurance_bytes,
                                  predicted ? std::optional(predicted->step_s) : std::nullopt);
  if (need.n_pieces == 0) return;
  tell(fmt::format("{} of {} on the drive, with all copies. {}\n", format_bytes(need.store_bytes),
                   contents_text(need), wear_text(need, life)));
  if (const std::string warning = wear_warning(life); !warning.empty())
    log_line("warning: " + warning);
}

bool is_taken(const Rival& rival, const Job& job) {
  return &rival == fastest_of(job.tried);
}

std::string ms_text(double seconds) {
  return fmt::format("{:.4g} ms", 1e3 * seconds);
}

/** The plans that were timed before the run took one of them, now or when the machine learnt it. */
void print_tried(const Job& job) {
  for (const Rival& rival : job.tried)
    tell(fmt::format("{}: {}, promised {}{}\n", is_taken(rival, job) ? "taken" : "not taken",
                     rival.plan.why, ms_text(rival.promised_s),
                     rival.step_s ? fmt::format(", a step took {}", ms_text(*rival.step_s))
                                  : std::string(", did not fit")));
  if (job.tried.empty() && !job.plan.timed.empty())
    tell(fmt::format("a step of such a plan took {} when it was timed here, on {}\n",
                     ms_text(job.plan.predicted->step_s), job.plan.timed));
}

/** "30 steps of 32 samples in 2 micro-batches of 16, 10 an epoch" */
std::string steps_text(const Job& job) {
  const int64_t batch = job.data.split.train_batch_size, micro = job.data.split.micro_batch_size,
                n_micro = (batch + micro - 1) / micro;
  const std::string parts =
      n_micro > 1 ? fmt::format(" in {} micro-batches of {}", n_micro, micro) : "";
  return fmt::format("{} step{} of {} sample{}{}, {} an epoch", job.steps.total,
                     job.steps.total == 1 ? "" : "s", batch, batch == 1 ? "" : "s", parts,
                     job.steps.per_epoch);
}

std::string evaluation_text(const Data& data) {
  if (data.eval.size() > 0) return fmt::format("{} for evaluation", data.eval.size());
  return "no evaluation (--eval-fraction 0.2 or --eval-dataset FILE makes one)";
}

std::string shortened(const std::string& text, size_t length) {
  std::string line;
  for (char c : text.substr(0, length))
    line.push_back(c == '\n' || c == '\t' ? ' ' : c);
  while (!line.empty() && (static_cast<unsigned char>(line.back()) & 0xC0) == 0x80)
    line.pop_back();  // a cut UTF-8 sequence
  return text.size() > length ? line + "..." : line;
}

/** Prints up to three samples of the evaluation data beside the model's answers. */
void print_examples(const Evaluation& evaluation,
                    const Data& data,
                    const term::Terminal& terminal) {
  if (evaluation.shown.empty()) return;
  print("\npredictions on held-out texts:\n");
  for (const Answer& answer : evaluation.shown) {
    const Example example = data.eval.example(answer.example);
    print(fmt::format("  {:<28} true: {:<14} {}\n", answer.words, answer.truth,
                      term::printable(shortened(example.text, 60), terminal)));
  }
}

}  // namespace

void print_unused(const LoadReport& loaded, const term::Terminal& terminal) {
  constexpr size_t kShown = 4, kName_bytes = 80;
  const std::vector<std::string>& unused = loaded.unused;
  if (unused.empty()) return;
  std::vector<std::string> names;
  for (const std::string& name : std::span(unused).first(std::min(kShown, unused.size())))
    names.push_back(term::printable(shortened(name, kName_bytes), terminal));
  log_line(fmt::format("not used: {} tensor{} of the checkpoint ({}{})", unused.size(),
                       unused.size() == 1 ? "" : "s", fmt::join(names, ", "),
                       unused.size() > kShown ? ", ..." : ""));
}

void print_start(const Job& job,
                 const LoadReport& loaded,
                 bool is_resumed,
                 const term::Terminal& terminal) {
  for (const std::string& note : job.notes)
    print_unlogged(note);  // they quote labels: with the wrong column whole texts
  for (const std::string& note : job.rank_notes)
    log_line(note);
  if (!job.model.directory.has_weights())
    log_line(fmt::format("all weights are drawn, by seed = {}", job.data.seed));
  if (!loaded.initialised.empty() && !is_resumed)
    log_line(
        fmt::format("newly initialised, from the seed: {}", fmt::join(loaded.initialised, ", ")));
  if (!loaded.redrawn.empty() && !is_resumed)
    log_line(fmt::format("newly initialised for these labels: the checkpoint has {}",
                         fmt::join(loaded.redrawn, ", ")));
  print_unused(loaded, terminal);
  const int64_t n_trained = job.model.table.n_trainable_params();
  tell(fmt::format(
      "{} parameters{} on {}, {}: {}\n", job.model.table.n_params(),
      n_trained < job.model.table.n_params() ? fmt::format(", {} of them trained,", n_trained) : "",
      job.machine.device_name, name_of(job.model.table.compute), job.plan.why));
  print_tried(job);
  print_plan(job.plan, job.machine.plan.has_gpu, terminal);
  print_wear(job);
  tell(fmt::format("{} training samples, {}; {}\n", job.data.train.size(),
                   evaluation_text(job.data), steps_text(job)));
}

void print_expected(const Promise& promise) {
  const std::string samples =
      promise.sample_seconds > 0
          ? fmt::format(", at most {} of samples", term::format_duration(promise.sample_seconds))
          : "";
  tell(fmt::format("expected: {} of training{}, {} of host memory\n",
                   term::format_duration(promise.seconds), samples,
                   format_bytes(promise.peak_bytes)));
}

void print_metrics(const Evaluation& evaluation, const Task& task, const term::Terminal& terminal) {
  if (!evaluation.confusion.empty())
    print_drawn(
        term::draw_confusion_matrix(task.scheme().labels.names(), evaluation.confusion, terminal));
  tell(fmt::format("eval_loss: {:.4f}\n", evaluation.loss));
  for (const auto& [name, value] : evaluation.metrics)
    tell(fmt::format("{}: {:.4f}\n", name, value));
}

nlohmann::ordered_json plan_json(const Job& job) {
  const Plan& plan = job.plan;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const PlanRow& row : rows_of(plan, job.machine.plan.has_gpu))
    rows.push_back({{"tag", row.name}, {"place", name_of(row.place)}, {"bytes", row.n_bytes}});
  nlohmann::ordered_json json = {
      {"why", plan.why}, {"micro_batch_size", plan.micro_batch_size}, {"rows", rows}};
  if (const std::vector<int>& shares = plan.shape.ranks.shares; !shares.empty())
    json["gpu_shares"] = shares;
  for (const double seconds : job.rank_seconds)
    json["gpu_pass_ms"].push_back(1e3 * seconds);
  for (const Rival& rival : job.tried)
    json["tried"].push_back(
        {{"why", rival.plan.why},
         {"micro_batch_size", rival.plan.micro_batch_size},
         {"promised_seconds", rival.promised_s},
         {"step_seconds", rival.step_s ? nlohmann::ordered_json(*rival.step_s) : nullptr},
         {"is_taken", is_taken(rival, job)}});
  if (!job.plan.timed.empty()) json["timed"] = job.plan.timed;
  if (const NvmeNeed need = drive_need_of(job); need.n_pieces > 0)
    json["nvme"] = {{"store_bytes", need.store_bytes},
                    {"step_read_bytes", need.read_bytes},
                    {"step_written_bytes", need.written_bytes}};
  return json;
}

nlohmann::ordered_json promised_json(const Promise& promise) {
  nlohmann::ordered_json promised = {{"training_seconds", promise.seconds},
                                     {"host_bytes_peak", promise.peak_bytes}};
  if (promise.sample_seconds > 0) promised["sample_seconds"] = promise.sample_seconds;
  if (promise.gpu_bytes > 0) promised["gpu_bytes_peak"] = promise.gpu_bytes;
  return promised;
}

nlohmann::ordered_json actual_json(const TrainingResult* result) {
  nlohmann::ordered_json actual;
  if (result) actual["training_seconds"] = result->seconds;
  if (result && result->sample_seconds > 0) actual["sample_seconds"] = result->sample_seconds;
  actual["host_bytes_peak"] = peak_process_bytes();
  if (result && result->gpu_bytes > 0) actual["gpu_bytes_peak"] = result->gpu_bytes;
  return actual;
}

std::vector<std::string> warnings_of(const TrainingResult& result, const Job& job) {
  std::vector<std::string> warnings;
  const Task& task = *job.data.task;
  if (const auto rise = rise_of_loss(result.losses, task.worrying_rise(), task.guessing_loss())) {
    const double clip = job.config.number("max_grad_norm");
    warnings.push_back(fmt::format(
        "the loss rose from {:.4g} to {:.4g}: the training diverged, and the model is worse than "
        "the one it began with; lower learning_rate (it was {:g}), {}",
        rise->first, rise->last, job.config.number("learning_rate"),
        clip > 0 ? fmt::format("or max_grad_norm (it was {:g})", clip)
                 : "or set max_grad_norm = 1"));
  }
  if (result.best && result.best->step != result.best->best_step)
    warnings.push_back(fmt::format(
        "the best evaluation was after step {}, which has no complete checkpoint: final/ has the "
        "model of step {}, the best one that was kept",
        result.best->best_step, result.best->step));
  return warnings;
}

void print_end(const TrainingResult& result,
               const Job& job,
               const Promise& promise,
               const std::filesystem::path& final,
               const term::Terminal& terminal) {
  constexpr size_t kFewest_values = 10;  // fewer are a line of their own, not a curve
  if (result.losses.size() >= kFewest_values)
    print_drawn(
        fmt::format("\n{}", term::draw_curve(result.losses, {.title = "training loss"}, terminal)));
  if (job.data.eval.size() > 0) {
    print_metrics(result.evaluation, *job.data.task, terminal);
    print_examples(result.evaluation, job.data, terminal);
  }
  term::Table table({{""}, {"expected", term::Align::right}, {"actual", term::Align::right}});
  table.add_row({"training time", term::format_duration(promise.seconds),
                 term::format_duration(result.seconds)});
  if (promise.sample_seconds > 0)
    table.add_row({"samples", term::format_duration(promise.sample_seconds),
                   term::format_duration(result.sample_seconds)});
  table.add_row(
      {"peak host memory", format_bytes(promise.peak_bytes), format_bytes(peak_process_bytes())});
  if (promise.gpu_bytes > 0)
    table.add_row(
        {"peak GPU memory", format_bytes(promise.gpu_bytes), format_bytes(result.gpu_bytes)});
  tell(terminal, [&](const term::Terminal& to) { return "\n" + table.text(to); });
  tell(fmt::format(
      "{:.0f} tokens/s{}\n", static_cast<double>(result.n_tokens) / std::max(result.seconds, 1e-9),
      result.n_skipped == 0 ? "" : fmt::format(", {} steps skipped", result.n_skipped)));
  for (const std::string& warning : warnings_of(result, job))
    log_line("warning: " + warning);
  if (result.best && result.best->step == result.best->best_step)
    tell(fmt::format("the best evaluation was after step {}: the model is of that step\n",
                     result.best->step));
  tell(fmt::format("model: {}\n{}", final.string(),
                   job.data.task->next_commands(runs::shell_line(std::array{final.string()}))));
}

}  // namespace ferry
