#include "src/train/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "src/base/bytes.h"
#include "src/term/confusion.h"
#include "src/term/curve.h"
#include "src/term/table.h"

namespace ferry {
namespace {

void print_plan(const Plan& plan, bool has_gpu, const term::Terminal& terminal) {
  term::Table table({{"tag"}, {"place"}, {"bytes", term::Align::right}});
  for (const PlanRow& row : rows_of(plan))
    if (row.n_bytes >= kMiB)
      table.add_row({std::string(name_of(row.tag)),
                     has_gpu ? std::string(name_of(row.place)) : "host",
                     format_bytes(row.n_bytes)});
  fmt::print("{}", table.text(terminal));
}

std::string shortened(const std::string& text, size_t length) {
  std::string line;
  for (char c : text.substr(0, length))
    line.push_back(c == '\n' || c == '\t' ? ' ' : c);
  while (!line.empty() && (static_cast<unsigned char>(line.back()) & 0xC0) == 0x80)
    line.pop_back();  // a cut UTF-8 sequence
  return text.size() > length ? line + "..." : line;
}

/** What the user's model has and the run does not read: a sign of another kind of model. */
void print_unused(const std::vector<std::string>& unused, const term::Terminal& terminal) {
  constexpr size_t kShown = 4, kName_bytes = 80;
  if (unused.empty()) return;
  std::vector<std::string> names;
  for (const std::string& name : std::span(unused).first(std::min(kShown, unused.size())))
    names.push_back(term::printable(shortened(name, kName_bytes), terminal));
  fmt::print(stderr, "not used: {} tensor{} of the checkpoint ({}{})\n", unused.size(),
             unused.size() == 1 ? "" : "s", fmt::join(names, ", "),
             unused.size() > kShown ? ", ..." : "");
}

}  // namespace

void print_start(const Job& job, const LoadReport& loaded, const term::Terminal& terminal) {
  for (const std::string& note : job.notes)
    fmt::print(stderr, "{}\n", note);
  if (!loaded.initialised.empty())
    fmt::print(stderr, "new, drawn from the seed: {}\n", fmt::join(loaded.initialised, ", "));
  if (!loaded.redrawn.empty())
    fmt::print(stderr, "drawn anew for these labels: the checkpoint has {}\n",
               fmt::join(loaded.redrawn, ", "));
  print_unused(loaded.unused, terminal);
  const int64_t n_trained = job.model.n_trainable_params();
  fmt::print(
      "{} parameters{} on {}, {}: {}\n", job.model.n_params(),
      n_trained < job.model.n_params() ? fmt::format(", {} of them trained,", n_trained) : "",
      job.machine.device_name, name_of(job.model.compute), job.plan.why);
  print_plan(job.plan, job.machine.plan.has_gpu, terminal);
  fmt::print("{} training samples, {} held out; {} steps of {}, {} an epoch\n", job.train.size(),
             job.eval.size(), job.n_steps, job.split.train_batch_size, job.steps_per_epoch);
}

void print_metrics(const Evaluation& evaluation, const Job& job, const term::Terminal& terminal) {
  if (!evaluation.confusion.empty())
    fmt::print("{}", term::draw_confusion_matrix(job.scheme.labels.names(), evaluation.confusion,
                                                 terminal));
  fmt::print("eval_loss: {:.4f}\n", evaluation.loss);
  for (const auto& [name, value] : evaluation.metrics)
    fmt::print("{}: {:.4f}\n", name, value);
}

void print_examples(const Evaluation& evaluation, const Job& job, const term::Terminal& terminal) {
  const size_t n = evaluation.predictions.size();
  if (n == 0) return;
  fmt::print("\npredictions on held-out texts:\n");
  for (size_t i : {size_t{0}, n / 2, n - 1}) {
    const Example& example = job.eval_examples.examples[i];
    std::string truth = example.label.class_id >= 0 ? job.scheme.labels.name(example.label.class_id)
                                                    : std::string("?");
    if (job.scheme.problem == ProblemType::multi_label) {
      truth.clear();
      for (int32_t c : example.label.classes)
        truth += (truth.empty() ? "" : ", ") + job.scheme.labels.name(c);
      if (truth.empty()) truth = "none";
    }
    if (job.scheme.problem == ProblemType::regression)
      truth = fmt::format("{:.4g}", example.label.value);
    fmt::print("  {:<28} true: {:<14} {}\n", describe(evaluation.predictions[i], job.scheme), truth,
               term::printable(shortened(example.text, 60), terminal));
    if (n < 3) break;
  }
}

void print_end(const TrainingResult& result,
               const Job& job,
               const Promise& promise,
               const std::filesystem::path& final,
               const term::Terminal& terminal) {
  fmt::print("\n{}", term::draw_curve(result.losses, {.title = "training loss"}, terminal));
  if (job.eval.size() > 0) {
    print_metrics(result.evaluation, job, terminal);
    print_examples(result.evaluation, job, terminal);
  }
  term::Table table({{""}, {"promised", term::Align::right}, {"actual", term::Align::right}});
  table.add_row({"training time", term::format_duration(promise.seconds),
                 term::format_duration(result.seconds)});
  table.add_row(
      {"peak host memory", format_bytes(promise.peak_bytes), format_bytes(peak_process_bytes())});
  fmt::print("\n{}", table.text(terminal));
  fmt::print("{:.0f} tokens/s, {} steps skipped\n",
             static_cast<double>(result.n_tokens) / std::max(result.seconds, 1e-9),
             result.n_skipped);
  fmt::print("model: {}\n", final.string());
}

}  // namespace ferry
