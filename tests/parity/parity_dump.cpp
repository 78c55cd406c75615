// Runs one model and one micro-batch that tests/parity/compare.py wrote to a directory, and writes
// loss, logits and every gradient beside them, for comparison with transformers.
//
//   parity_dump DIR     reads  config.json, model.safetensors, case.json, batch.safetensors
//                       writes result.safetensors: "loss", "logits", "grad.<Hugging Face name>"

#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>

#include "models/family.h"
#include "src/base/error.h"
#include "src/files/hf/hf_config.h"
#include "tests/models/model_runner.h"
#include "tests/parity/dump.h"

namespace ferry {
namespace {

using nlohmann::json;
using test::read_json, test::tensor_of;

void load_weights(const SafetensorsFile& file, test::ModelRunner& runner) {
  runner.randomise(1, 0.02f);
  for (const HfEntry& entry : runner.table().hf_names) {
    std::vector<std::string> names = {entry.hf_name};
    names.insert(names.end(), entry.also_named.begin(), entry.also_named.end());
    at::Tensor value;
    for (const std::string& name : names) {
      if (!value.defined()) value = tensor_of(file, name);
    }
    FERRY_CHECK(value.defined() || entry.optional, "no tensor {}", entry.hf_name);
    if (value.defined()) runner.set(entry, value);
  }
}

LossKind loss_named(const std::string& name) {
  static const std::map<std::string, LossKind> kLosses = {
      {"cross_entropy", LossKind::cross_entropy},
      {"multi_label", LossKind::multi_label},
      {"regression", LossKind::regression},
      {"masked_lm", LossKind::masked_lm},
      {"token_classification", LossKind::token_classification},
      {"question_answering", LossKind::question_answering},
      {"causal_lm", LossKind::causal_lm}};
  return kLosses.at(name);
}

void run(const std::filesystem::path& directory) {
  const json its = read_json(directory / "case.json");
  const HfConfig config = HfConfig::load(directory / "config.json");
  const LossKind loss = loss_named(its.at("loss"));
  const bool is_lm = loss == LossKind::masked_lm || loss == LossKind::causal_lm;
  TableOptions options;
  options.head = head_of(loss);
  options.n_labels = its.at("n_labels");
  options.hidden_dropout = options.attention_dropout = options.classifier_dropout = 0.0f;

  const SafetensorsFile given = SafetensorsFile::open(directory / "batch.safetensors");
  test::TestBatch batch(its.at("lengths").get<std::vector<int64_t>>(), its.at("n_dummy"), 1000, 1);
  batch.tensors.input_ids.copy_(tensor_of(given, "input_ids"));
  batch.tensors.type_ids.copy_(tensor_of(given, "type_ids"));
  batch.tensors.labels = tensor_of(given, "labels");
  batch.tensors.label_rows = tensor_of(given, "label_rows");
  batch.tensors.loss_weight = its.at("loss_weight");
  batch.tensors.end_loss_weight = its.at("end_loss_weight");
  batch.tensors.label_smoothing = its.at("label_smoothing");

  test::ModelRunner runner(make_table(config.fields(), options), loss, batch.tensors.shape);
  load_weights(SafetensorsFile::open(directory / "model.safetensors"), runner);
  const RandomKey key;
  const ModelTable& table = runner.table();
  if (table.long_from > 0 && batch.tensors.shape.max_length > table.long_from)
    batch.tensors.position_ids.add_(kLongPosition);
  const int64_t n_rows = batch.tensors.label_rows.defined()      ? batch.tensors.label_rows.size(0)
                         : is_lm || has_token_logits(table.head) ? batch.tensors.shape.tokens
                                                                 : batch.tensors.n_seqs;
  at::Tensor logits = at::zeros({n_rows, is_lm ? table.vocab_size : table.n_labels});
  test::Tensors result;
  result["loss"] = at::zeros({1}).fill_(runner.forward(key, batch.tensors, logits));
  result["logits"] = logits;
  runner.backward(key, batch.tensors);
  for (const auto& [name, grad] : runner.hf_grads())
    result["grad." + name] = grad;
  test::write(directory / "result.safetensors", result);
}

}  // namespace
}  // namespace ferry

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: parity_dump DIR\n";
    return 2;
  }
  try {
    ferry::run(argv[1]);
  } catch (const ferry::Error& error) {
    std::cerr << error.what() << "\n";
    return error.exit_code();
  }
  return 0;
}
