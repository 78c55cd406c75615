// Takes optimizer steps with the engine on batches that tests/parity/compare_steps.py wrote, and
// writes the weights back, for comparison with transformers and torch.optim.AdamW.
//
//   train_dump DIR [cuda [fp16|bf16]]
//                          reads  model/ (Hugging Face directory), steps.json
//                          writes trained/ (config.json, model.safetensors), losses.json: of an
//                                 evaluation before the steps, on the first rows with a dummy tail
//                                 behind them, and of each step
//                          and of a prompt started/, the same as trained/ before the steps

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "models/family.h"
#include "src/base/error.h"
#include "src/engine/session.h"
#include "src/engine/state/weights.h"
#include "src/engine/torch_setup.h"
#include "src/files/hf/hf_directory.h"
#include "src/plan/plan.h"
#include "src/request/param_groups.h"
#include "src/request/prompt_table.h"
#include "tests/parity/dump.h"
#include "tests/parity/dump_steps.h"

namespace ferry {
namespace {

using nlohmann::json;
using test::read_json;

/** One micro-batch: rows of ids end to end. */
struct Rows {
  std::vector<int32_t> ids, types, positions, cu = {0}, labels, label_rows;
  std::vector<float> preferences, margins;
  HostBatch view;
};

Rows rows_of(const json& micro, int64_t max_length, LossKind loss, int32_t n_tail = 0) {
  Rows rows;
  int64_t items = 0, end_items = 0;
  for (const json& row : micro["rows"]) {
    int32_t position = 0;
    for (int32_t id : row) {
      rows.ids.push_back(id);
      rows.types.push_back(0);
      rows.positions.push_back(position++);
    }
    rows.cu.push_back(static_cast<int32_t>(rows.ids.size()));
  }
  const bool is_prompt = loss == LossKind::prompt;  // whose labels are the rows' own
  for (int32_t label : micro["labels"]) {
    if (label >= 0 && !is_prompt)
      rows.label_rows.push_back(static_cast<int32_t>(rows.labels.size()));
    rows.labels.push_back(label);
    items += label >= 0;
  }
  const auto n_real = static_cast<int64_t>(rows.cu.size()) - 1;
  if (loss == LossKind::question_answering) {  // a start and an end a row
    items = 0;
    for (size_t i = 0; i < rows.labels.size(); ++i) {
      const bool inside = rows.labels[i] < rows.cu[i / 2 + 1] - rows.cu[i / 2];
      (i % 2 == 0 ? items : end_items) += inside;
    }
  }
  const bool has_pairs = loss == LossKind::preference || loss == LossKind::reward;
  for (size_t s = 0; has_pairs && s < static_cast<size_t>(n_real); ++s) {
    rows.preferences.push_back(micro["references"][s]);
    rows.preferences.push_back(micro["first_answers"][s]);
    rows.preferences.push_back(micro["are_good"][s]);
    rows.margins.push_back(micro["values"][s]);
  }
  if (has_pairs) {
    items = n_real / 2;
    for (size_t s = 0; s < static_cast<size_t>(n_real); s += 2)
      for (auto i = static_cast<size_t>(rows.cu[s]); i < static_cast<size_t>(rows.cu[s + 1]); ++i)
        end_items += rows.labels[i] >= 0;
  }
  for (int32_t i = 0; i < n_tail; ++i) {
    rows.ids.push_back(0), rows.types.push_back(0), rows.positions.push_back(i);
    if (loss == LossKind::masked_lm || loss == LossKind::token_classification ||
        loss == LossKind::causal_lm || loss == LossKind::preference)
      rows.labels.push_back(-100);
  }
  if (n_tail > 0) rows.cu.push_back(static_cast<int32_t>(rows.ids.size()));
  for (size_t s = 0; is_prompt && s + 1 < rows.cu.size(); ++s)
    rows.label_rows.push_back(rows.cu[s] +
                              (std::cmp_less(s, n_real) ? micro["asked"][s].get<int32_t>() : 0));
  const auto n_seqs = static_cast<int64_t>(rows.cu.size()) - 1;
  rows.view = {.shape = {.tokens = static_cast<int64_t>(rows.ids.size()),
                         .n_seqs_max = n_seqs,
                         .max_length = max_length},
               .n_seqs = n_seqs,
               .n_seqs_real = n_real,
               .n_label_items = items,
               .n_end_items = end_items,
               .input_ids = rows.ids,
               .type_ids = rows.types,
               .position_ids = rows.positions,
               .cu_seqlens = rows.cu,
               .labels = std::as_bytes(std::span(rows.labels))};
  if (loss == LossKind::preference) rows.view.preferences = rows.preferences;
  if (loss == LossKind::reward) rows.view.labels = std::as_bytes(std::span(rows.margins));
  if (loss == LossKind::masked_lm || is_prompt) rows.view.label_rows = rows.label_rows;
  return rows;
}

LossKind loss_named(const std::string& name) {
  static const std::map<std::string, LossKind> kLosses = {
      {"cross_entropy", LossKind::cross_entropy},
      {"masked_lm", LossKind::masked_lm},
      {"token_classification", LossKind::token_classification},
      {"question_answering", LossKind::question_answering},
      {"causal_lm", LossKind::causal_lm},
      {"preference", LossKind::preference},
      {"prompt", LossKind::prompt},
      {"reward", LossKind::reward}};
  return kLosses.at(name);
}

PreferenceRule rule_of(const json& rule) {
  const std::string kind = rule["kind"];
  return {.kind = kind == "kto" ? PreferenceKind::kto : parse_preference_kind(kind).value(),
          .beta = rule["beta"],
          .margin = rule["margin"],
          .label_smoothing = rule["label_smoothing"],
          .likelihood_weight = rule["likelihood_weight"],
          .good_weight = 1.5f,
          .bad_weight = 0.75f};
}

/** The model as Hugging Face reads it. */
void save(const ModelTable& model,
          Session& session,
          const std::filesystem::path& directory,
          const char* name = "trained") {
  std::filesystem::create_directories(directory / name);
  save_weights(model, session.segments(), directory / name, DType::f32, INT64_MAX);
  HfConfig config = HfConfig::load(directory / "model/config.json");
  config.set_architecture(model.hf_architecture);
  write_config(directory / name, config);
}

/** Trains in fp32, or on a GPU in 16 bits with flash attention. */
void run(const std::filesystem::path& directory, bool on_gpu, DType compute) {
  constexpr int32_t kTail = 7;
  const json steps = read_json(directory / "steps.json");
  const LossKind loss = loss_named(steps["loss"]);
  const HfConfig hf = HfConfig::load(directory / "model/config.json");
  config::Config config;
  const json said = steps.value("options", json::object());
  for (const auto& [key, value] : said.items())
    config.set(key, value.get<std::string>(), {config::Source::command_line, key});
  TableOptions table_options;
  table_options.head = head_in_files(family_of(hf.fields()), head_of(loss));
  table_options.n_labels = steps["n_labels"];
  table_options.hidden_dropout = table_options.attention_dropout =
      table_options.classifier_dropout = 0.0f;
  if (on_gpu)
    table_options.attention =
        compute == DType::f32 ? AttentionBackend::memory_efficient : AttentionBackend::flash;
  table_options.compute = compute;
  table_options.piece_elements_max =
      steps.value("piece_elements_max", table_options.piece_elements_max);
  ModelTable model = make_table(hf.fields(), table_options);
  if (loss == LossKind::prompt) add_prompt(hf, steps["n_labels"], {}, model);
  model.has_preferences = loss == LossKind::preference;
  apply_param_options(config, model);

  BatchShape largest{.max_length = steps["max_length"]};
  int64_t n_micro = 1;
  for (const json& step : steps["steps"]) {
    n_micro = std::max(n_micro, static_cast<int64_t>(step.size()));
    for (const json& micro : step) {
      Rows rows = rows_of(micro, largest.max_length, loss, kTail);
      largest.tokens = std::max(largest.tokens, rows.view.shape.tokens);
      largest.n_seqs_max = std::max(largest.n_seqs_max, rows.view.n_seqs);
    }
  }
  StepShape shape = make_step_shape(model, largest, {.has_gpu = on_gpu}, n_micro);
  choose(shape, model, {.place = Place::host, .activations = Activations::recompute});
  const Layout layout = make_layout(shape);
  SessionOptions options = test::options_of(steps, loss, on_gpu);
  options.optimizer.loss_scaling = compute == DType::f16;
  if (model.has_preferences) options.preference = rule_of(steps["preference"]);
  Session session(model, shape, layout, largest, options);
  std::optional<CheckpointReader> adapter;
  if (model.has_deltas && std::filesystem::exists(directory / "adapter"))
    adapter = CheckpointReader::open(directory / "adapter", kAdapterStem);
  load_weights(model, CheckpointReader::open(directory / "model"), 1, session.segments(),
               adapter ? &*adapter : nullptr);
  if (loss == LossKind::prompt) save(model, session, directory, "started");
  const Rows first = rows_of(steps["steps"][0][0], largest.max_length, loss, kTail);
  std::vector<float> logits;
  json losses = json::array();
  const double first_loss = session.evaluate(first.view, &logits);
  for (const json& step : steps["steps"]) {
    std::vector<Rows> rows;
    std::vector<HostBatch> views;
    for (const json& micro : step)
      rows.push_back(rows_of(micro, largest.max_length, loss));
    for (Rows& r : rows)
      views.push_back(r.view);
    StepReport report = session.step(views);
    losses.push_back({{"loss", report.loss},
                      {"grad_norm", report.grad_norm},
                      {"clipped", report.clipped},
                      {"rate", report.learning_rate}});
  }
  save(model, session, directory);
  const json all = {{"evaluation", {{"loss", first_loss}, {"logits", logits}}}, {"steps", losses}};
  std::ofstream(directory / "losses.json") << all.dump();
}

}  // namespace
}  // namespace ferry

int main(int argc, char** argv) {
  const std::map<std::string_view, ferry::DType> compute_types = {
      {"fp32", ferry::DType::f32}, {"fp16", ferry::DType::f16}, {"bf16", ferry::DType::bf16}};
  try {
    const bool on_gpu = argc >= 3 && argv[2] == std::string_view("cuda");
    const std::string_view type = on_gpu && argc >= 4 ? argv[3] : "fp32";
    if (argc != 2 + on_gpu + (type != "fp32") || !compute_types.contains(type))
      throw ferry::Error(ferry::Fault::usage, "train_dump",
                         "no directory, or no such device or type",
                         "train_dump DIR [cuda [fp16|bf16]]");
    ferry::set_up_torch({.deterministic = true});
    ferry::run(argv[1], on_gpu, compute_types.at(type));
    return 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "train_dump: {}\n", e.what());
    return 1;
  }
}
