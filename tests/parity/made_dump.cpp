// Runs a made model (tests/models/made_models.h) on what tests/parity/made.py wrote.
//
//   made_dump DIR gradients|steps [cuda]
//       reads   made.json, model.safetensors
//       writes  gradients.safetensors: of the first micro-batch "loss", "logits", "grad.<name>"
//           or  trained/model.safetensors after optimizer steps with the engine, and losses.json

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <deque>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/engine/session.h"
#include "src/engine/state/weights.h"
#include "src/engine/torch_setup.h"
#include "src/plan/plan.h"
#include "tests/models/made_models.h"
#include "tests/models/model_runner.h"
#include "tests/parity/dump.h"
#include "tests/parity/dump_steps.h"

namespace ferry {
namespace {

using nlohmann::json;

/** A micro-batch: rows of each stream end to end, with a dummy tail behind them. */
struct MadeBatch {
  struct Stream {
    std::vector<int32_t> ids, types, positions, cu = {0};
    std::vector<float> features;

    void append(size_t length) {
      for (size_t i = 0; i < length; ++i)
        positions.push_back(static_cast<int32_t>(i));
      types.resize(positions.size());
      ids.resize(positions.size());
      cu.push_back(static_cast<int32_t>(positions.size()));
    }
  };
  std::deque<Stream> streams;
  std::vector<int32_t> labels;
  HostBatch view;

  MadeBatch(const json& micro, const ModelTable& model, size_t n_tail) {
    labels = micro["labels"].get<std::vector<int32_t>>();
    view.n_label_items = std::ranges::count_if(labels, [](int32_t label) { return label >= 0; });
    for (const StreamSpec& spec : model.streams) {
      Stream& its = streams.emplace_back();
      for (const json& row : micro[spec.name]) {
        its.append(row.size() / static_cast<size_t>(std::max<int64_t>(spec.feature_columns, 1)));
        if (spec.feature_columns > 0)
          for (const float x : row)
            its.features.push_back(x);
        else
          std::ranges::copy(row.get<std::vector<int32_t>>(), its.ids.begin() + its.cu.end()[-2]);
      }
      view.n_seqs_real = static_cast<int64_t>(its.cu.size()) - 1;
      if (n_tail > 0) its.append(n_tail + streams.size());
      its.features.resize(its.ids.size() * static_cast<size_t>(spec.feature_columns));
    }
    labels.resize(streams[0].ids.size(), -100);
    for (size_t s = 0; s < streams.size(); ++s) {
      const Stream& its = streams[s];
      int64_t longest = 0;
      for (size_t i = 0; i + 1 < its.cu.size(); ++i)
        longest = std::max<int64_t>(longest, its.cu[i + 1] - its.cu[i]);
      const StreamShape shape = {static_cast<int64_t>(its.ids.size()),
                                 static_cast<int64_t>(its.cu.size()) - 1, longest};
      if (streams.size() > 1) view.shape.streams.push_back(shape);
      const HostStream stream = {shape.n_seqs_max, its.ids, its.types,
                                 its.positions,    its.cu,  its.features};
      if (s > 0) {
        view.others.push_back(stream);
        continue;
      }
      std::tie(view.shape.tokens, view.shape.n_seqs_max, view.shape.max_length) =
          std::tuple(shape.tokens, shape.n_seqs_max, shape.max_length);
      view.n_seqs = stream.n_seqs;
      view.input_ids = stream.input_ids;
      view.type_ids = stream.type_ids;
      view.position_ids = stream.position_ids;
      view.cu_seqlens = stream.cu_seqlens;
      view.features = stream.features;
    }
    view.labels = std::as_bytes(std::span(labels));
  }
};

at::Tensor tensor_of(std::span<const int32_t> items, at::Device device) {
  return at::from_blob(const_cast<int32_t*>(items.data()), {static_cast<int64_t>(items.size())},
                       at::TensorOptions().dtype(at::kInt))
      .to(device, /*non_blocking=*/false, /*copy=*/true);
}

BatchTensors tensors_of(const HostBatch& batch, const ModelTable& model, at::Device device) {
  BatchTensors out;
  out.shape = batch.shape;
  out.n_seqs_real = batch.n_seqs_real;
  out.loss_weight = 1.0f / static_cast<float>(batch.n_label_items);
  for (size_t s = 0; s < model.streams.size(); ++s) {
    const HostStream from = batch.stream(s);
    StreamTensors to = {.n_seqs = from.n_seqs,
                        .input_ids = tensor_of(from.input_ids, device),
                        .type_ids = tensor_of(from.type_ids, device),
                        .position_ids = tensor_of(from.position_ids, device),
                        .cu_seqlens = tensor_of(from.cu_seqlens, device),
                        .cu_seqlens_host = from.cu_seqlens};
    if (const int64_t columns = model.streams[s].feature_columns; columns > 0)
      to.features = at::from_blob(const_cast<float*>(from.features.data()),
                                  {static_cast<int64_t>(from.input_ids.size()), columns})
                        .to(device, false, /*copy=*/true);
    if (s == 0) static_cast<StreamTensors&>(out) = to;
    if (model.streams.size() > 1) out.streams.push_back(to);
  }
  out.labels = tensor_of({reinterpret_cast<const int32_t*>(batch.labels.data()),
                          batch.labels.size() / sizeof(int32_t)},
                         device);
  return out;
}

void write_gradients(const std::filesystem::path& directory,
                     const ModelTable& model,
                     const MadeBatch& batch,
                     at::Device device) {
  const BatchTensors tensors = tensors_of(batch.view, model, device);
  test::ModelRunner runner(model, LossKind::causal_lm, tensors.shape, device);
  runner.poison();
  const SafetensorsFile file = SafetensorsFile::open(directory / "model.safetensors");
  for (const HfEntry& entry : model.hf_names)
    runner.set(entry, test::tensor_of(file, entry.hf_name));
  at::Tensor logits =
      at::zeros({tensors.shape.tokens, model.vocab_size}, at::device(device).dtype(at::kFloat));
  test::Tensors result;
  result["loss"] = at::zeros({1}).fill_(runner.forward({}, tensors, logits));
  result["logits"] = logits.cpu();
  runner.backward({}, tensors);
  for (const auto& [name, grad] : runner.hf_grads())
    result["grad." + name] = grad.cpu();
  test::write(directory / "gradients.safetensors", result);
}

void take_steps(const std::filesystem::path& directory,
                const json& its,
                const ModelTable& model,
                bool on_gpu) {
  BatchShape largest;
  int64_t n_micro = 1;
  for (const json& step : its["steps"]) {
    n_micro = std::max(n_micro, static_cast<int64_t>(step.size()));
    for (const json& micro : step) {
      const BatchShape shape = MadeBatch(micro, model, 7).view.shape;
      largest.tokens = std::max(largest.tokens, shape.tokens);
      largest.n_seqs_max = std::max(largest.n_seqs_max, shape.n_seqs_max);
      largest.max_length = std::max(largest.max_length, shape.max_length);
      largest.streams.resize(shape.streams.size());
      for (size_t s = 0; s < shape.streams.size(); ++s) {
        StreamShape& most = largest.streams[s];
        const StreamShape& one = shape.streams[s];
        most = {std::max(most.tokens, one.tokens), std::max(most.n_seqs_max, one.n_seqs_max),
                std::max(most.max_length, one.max_length)};
      }
    }
  }
  StepShape shape = make_step_shape(model, largest, {.has_gpu = on_gpu}, n_micro);
  choose(shape, model, {.place = Place::host, .activations = Activations::recompute});
  const Layout layout = make_layout(shape);
  const SessionOptions options = test::options_of(its, LossKind::causal_lm, on_gpu);
  Session session(model, shape, layout, largest, options);
  load_weights(model, CheckpointReader::open(directory), 1, session.segments());
  const auto evaluate = [&](const json& micro) {
    return session.evaluate(MadeBatch(micro, model, 7).view, nullptr);
  };
  json losses = {{"evaluation", evaluate(its["steps"][0][0])}};
  for (const json& step : its["steps"]) {
    std::deque<MadeBatch> batches;
    std::vector<HostBatch> views;
    for (const json& micro : step)
      views.push_back(batches.emplace_back(micro, model, 0).view);
    const StepReport report = session.step(views);
    losses["steps"].push_back({{"loss", report.loss}, {"grad_norm", report.grad_norm}});
  }
  const std::filesystem::path trained = directory / "trained";
  std::filesystem::create_directories(trained);
  save_weights(model, session.segments(), trained, DType::f32, INT64_MAX);
  std::ofstream(directory / "losses.json") << losses.dump();
}

void run(const std::filesystem::path& directory, const std::string& part, bool on_gpu) {
  const json its = test::read_json(directory / "made.json");
  const auto which = static_cast<test::Made>(
      std::ranges::find(test::kMadeNames, its["model"].get<std::string>()) - test::kMadeNames);
  const ModelTable model = test::made_model(
      which, DType::f32, on_gpu ? AttentionBackend::memory_efficient : AttentionBackend::cpu_math);
  // On a GPU a session has LibTorch's memory for itself, so each part is a process.
  if (part == "gradients")
    write_gradients(directory, model, MadeBatch(its["steps"][0][0], model, 7),
                    on_gpu ? at::kCUDA : at::kCPU);
  else
    take_steps(directory, its, model, on_gpu);
}

}  // namespace
}  // namespace ferry

int main(int argc, char** argv) {
  const bool on_gpu = argc == 4 && argv[3] == std::string_view("cuda");
  if (argc != 3 + on_gpu) {
    std::cerr << "usage: made_dump DIR gradients|steps [cuda]\n";
    return 2;
  }
  try {
    ferry::set_up_torch({.deterministic = true});
    ferry::run(argv[1], argv[2], on_gpu);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "made_dump: {}\n", error.what());
    return 1;
  }
}
