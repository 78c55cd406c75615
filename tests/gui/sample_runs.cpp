#include "tests/gui/sample_runs.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/gui/run_files.h"

namespace ferry::gui::test {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

constexpr double kBegin_s = 1'795'600'000;

/** A number in [-1, 1) that depends on the step alone. */
double wobble(int64_t step) {
  const auto bits = static_cast<uint64_t>(step) * 0x9E3779B97F4A7C15u;
  return static_cast<double>((bits >> 40) & 0xFFFF) / 32768.0 - 1;
}

void write_metrics(const fs::path& run, const SampleRun& sample) {
  std::ofstream file(run / "metrics.jsonl");
  for (int64_t step = 1; step <= sample.n_taken; ++step) {
    const double t = static_cast<double>(step) / static_cast<double>(sample.n_steps);
    const double loss =
        sample.first_loss * (0.18 + 0.82 * std::exp(-5 * t)) * (1 + 0.09 * wobble(step));
    const double warm = std::min(1.0, t / 0.03);
    ordered_json line = {{"step", step},
                         {"epoch", 3 * t},
                         {"loss", loss},
                         {"grad_norm", 0.8 + 2.2 * std::exp(-4 * t) + 0.3 * wobble(step + 7)},
                         {"learning_rate", sample.learning_rate * warm * (1 - t)},
                         {"num_input_tokens_seen", step * 2048},
                         {"train_tokens_per_second", 5200 + 240 * wobble(step + 3)},
                         {"step_ms", 394.0 + 18 * wobble(step + 3)},
                         {"host_bytes", 845'185'024 + (step > 40 ? 30'000'000 : 0)},
                         {"time", kBegin_s + 0.4 * static_cast<double>(step)}};
    if (step % 20 == 0) line["loss_mean"] = loss;
    file << line.dump() << '\n';
    if (step % sample.eval_every == 0)
      file << ordered_json{{"step", step},
                           {"epoch", 3 * t},
                           {"eval_loss", sample.first_loss * (0.24 + 0.7 * std::exp(-5 * t))},
                           {"eval_accuracy", 0.94 - 0.6 * std::exp(-6 * t)},
                           {"time", kBegin_s + 0.4 * static_cast<double>(step)}}
                  .dump()
           << '\n';
  }
}

void write_samples(const fs::path& run, const SampleRun& sample) {
  fs::create_directories(run / "samples");
  const char* words[] = {"the the king and the",
                         "the king, and I will not be the father of the house",
                         "my lord, the night is long, and I must go before the dawn"};
  for (int64_t i = 0; i < 3; ++i) {
    const int64_t step = i * sample.n_steps / 2;
    std::ofstream file(run / "samples" / fmt::format("step-{:06}.jsonl", step));
    for (const char* prompt : {"It was", "Good morrow,"})
      file << ordered_json{{"step", step},
                           {"prompt", prompt},
                           {"text", fmt::format(" {}.", words[i])},
                           {"ids", std::vector<int>(18, 7)},
                           {"n_prompt_tokens", 2},
                           {"ended", "length"},
                           {"settings",
                            {{"max_new_tokens", 18},
                             {"temperature", 0.8},
                             {"top_k", 0},
                             {"top_p", 0.95},
                             {"stop", ordered_json::array()},
                             {"seed", 42}}}}
                  .dump()
           << '\n';
  }
}

}  // namespace

fs::path write_run(const fs::path& runs, const SampleRun& sample) {
  const fs::path run = runs / sample.name;
  // "2026-11-20_1015_..." is when it begins.
  const std::string begun = fmt::format("{}T{}:{}:00Z", sample.name.substr(0, 10),
                                        sample.name.substr(11, 2), sample.name.substr(13, 2));
  RunFiles files(run);
  ordered_json record = {
      {"ferry_version", "0.1.0"},
      {"id", sample.name},
      {"phase", sample.phase},
      {"pid", 1},
      {"host", "desk"},
      {"created", begun},
      {"started", begun},
      {"changed", "2026-11-20T10:19:00Z"},
      {"model", sample.model},
      {"dataset", sample.dataset},
      {"n_steps", sample.n_steps},
      {"identity", {{"task", sample.task}, {"device", "cpu AVX512"}, {"dtype", "fp32"}}},
      {"plan",
       {{"why", "1 micro-batch of 16; weights and states in memory"},
        {"micro_batch_size", 16},
        {"rows",
         {{{"tag", "saved"}, {"place", "host"}, {"bytes", 286'721'024}},
          {{"tag", "master"}, {"place", "host"}, {"bytes", 90'885'120}}}}}},
      {"parent", nullptr},
      {"promised", {{"training_seconds", 240.0}, {"host_bytes_peak", 909'966'848}}}};
  if (!sample.exit_reason.empty()) {
    record["exit_reason"] = sample.exit_reason;
    record["actual"] = {{"training_seconds", 246.0}, {"host_bytes_peak", 877'486'080}};
  }
  files.record(record);
  std::ofstream(run / "config.toml") << fmt::format(
      "model_name_or_path = \"{}\"\ntask = \"{}\"\ndataset = \"{}\"\nmax_steps = {}\n"
      "learning_rate = {}\n",
      sample.model, sample.task, sample.dataset, sample.n_steps, sample.learning_rate);
  std::ofstream(run / "train.log") << fmt::format(
      "2026-11-20T10:15:00Z ferry train --model={} --dataset={} --max-steps={}\n"
      "2026-11-20T10:15:01Z model {}, 22.7 M parameters\n2026-11-20T10:15:02Z training on the "
      "CPU\n",
      sample.model, sample.dataset, sample.n_steps, sample.model);
  if (sample.has_checkpoint) {
    const fs::path checkpoint = run / fmt::format("checkpoint-{}", sample.n_taken);
    fs::create_directories(checkpoint / "state");
    std::ofstream(checkpoint / "config.json")
        << ordered_json{{"model_type", "bert"},
                        {"architectures", {"BertForSequenceClassification"}},
                        {"id2label", {{"0", "complaint"}, {"1", "praise"}, {"2", "question"}}}};
    std::ofstream(checkpoint / "COMPLETE") << "";
  }
  write_metrics(run, sample);
  if (sample.has_samples) write_samples(run, sample);
  return run;
}

}  // namespace ferry::gui::test
