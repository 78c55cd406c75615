#pragma once
// Step shapes for the tests of offload/: small models with everything a real one has (several
// tensors a block, a head that borrows from the embeddings), and random ones from a seed.

#include <algorithm>
#include <random>

#include "offload/step/action.h"
#include "offload/step/step_shape.h"

namespace ferry::test {

/** weights_on_gpu: the host updates what the GPU keeps. states_on_gpu: the GPU updates what the
 * host keeps; states_and_grads_on_gpu: gradients do not leave it. drive: the host updates what lies
 * on a drive; all_on_drive: weights, too; grads_on_drive: gradients instead, everything_on_drive:
 * both, where they may; ..._of_cpu: the same where the device is the host. */
enum class Placing {
  gpu,
  host,
  mixed,
  weights_on_gpu,
  states_on_gpu,
  states_and_grads_on_gpu,
  drive,
  all_on_drive,
  grads_on_drive,
  everything_on_drive,
  drive_of_cpu,
  all_on_drive_of_cpu,
  everything_on_drive_of_cpu
};
inline constexpr BlockPlacement kAllOnDrive{Place::nvme, Place::nvme, Place::host};
inline constexpr BlockPlacement kAllOnDriveOfCpu{Place::nvme, Place::nvme, Place::device};
inline constexpr BlockPlacement kStatesOnDrive{Place::host, Place::nvme, Place::host};
inline constexpr BlockPlacement kStatesOnDriveOfCpu{Place::device, Place::nvme, Place::device};
inline constexpr BlockPlacement kWeightsOnDeviceStatesOnDrive{Place::device, Place::nvme,
                                                              Place::host};
inline constexpr BlockPlacement kGradsOnDrive{Place::host, Place::nvme, Place::nvme};
inline constexpr BlockPlacement kGradsOnDriveOfCpu{Place::device, Place::nvme, Place::nvme};
inline constexpr BlockPlacement kWeightsOnDeviceGradsOnDrive{Place::device, Place::nvme,
                                                             Place::nvme};
/** The frozen part: the embeddings and layer 0, layer 1 between trained ones, every block but the
 * embeddings, or each block's second tensor. */
enum class Frozen { nothing, first_blocks, middle_block, all_but_embeddings, second_tensors };

struct ShapeOptions {
  int n_layers = 3;
  DType compute = DType::f32;
  int n_micro_max = 3;
  AccumulationOrder order = AccumulationOrder::horizontal;
  int n_chunks = 1;
  Placing placing = Placing::host;
  Activations activations = Activations::keep;
  bool mixed_activations = false;  ///< block b: keep, recompute, host or selective by b mod 4
  bool layer_inputs_on_host = false;
  bool tied = true;
  int n_weight_slots = 2;
  int n_grad_slots = 2;
  int n_saved_slots = 2;
  int n_layer_input_slots = 2;
  int n_state_slots = 2;
  int n_weight_windows = 2;
  int n_grad_windows = 2;
  int64_t state_piece_elements = 1024;
  int64_t large_tensor_elements = 0;  ///< in layer 0
  int64_t embedding_elements = 700;   ///< of the first tensor there
  Ranks ranks;
  Reduction reduction = Reduction::ordered;
  int gathers_each_pass = 0;  ///< none, all blocks, or every second one
  bool trains = true;
  Frozen frozen = Frozen::nothing;
  simd::Optim optim = simd::Optim::adamw;
  bool split_master = false;
  bool some_update_late = false;  ///< every second block's update waits for the decision
};

inline constexpr int64_t kWidth = 64;  ///< elements of a layer input
inline int64_t layer_input_bytes(DType compute) {
  return kWidth * static_cast<int64_t>(size_of(compute));
}

/** Lays the tensors of each block out, trained ones first. */
inline void arrange(StepShape& shape) {
  for (BlockShape& b : shape.blocks) {
    b.n_elements = 0;
    for (const bool trained : {true, false}) {
      for (TensorExtent& t : b.tensors) {
        if (t.trainable != trained) continue;
        t.offset = b.n_elements;
        b.n_elements += (t.n_elements + 255) / 256 * 256;
      }
      if (trained) b.n_trained_elements = b.n_elements;
    }
  }
}

inline void freeze(StepShape& shape, Frozen frozen) {
  for (int b = 0; b < shape.n_blocks(); ++b) {
    auto& tensors = shape.blocks[b].tensors;
    if (frozen == Frozen::second_tensors) tensors[1].trainable = false;
    const bool is_whole = (frozen == Frozen::first_blocks && b < 2) ||
                          (frozen == Frozen::middle_block && b == 2) ||
                          (frozen == Frozen::all_but_embeddings && b > 0);
    for (TensorExtent& t : tensors)
      t.trainable &= !is_whole;
  }
  arrange(shape);
}

/** Gradients wait in memory where they may not on a drive, and where blocks share tensors. */
inline void keep_grads_in_memory(StepShape& shape) {
  const auto keep = [&](int b) {
    Place& place = shape.blocks[b].place.grads;
    if (place == Place::nvme) place = shape.drive_memory();
  };
  for (int b = 0; b < shape.n_blocks(); ++b) {
    if (!shape.may_write_grads(b) || !shape.is_trained(b)) keep(b);
    for (const BorrowedExtent& borrowed : shape.blocks[b].borrowed)
      for (int sharer : {b, borrowed.block})
        keep(sharer);
  }
}

/** True where the blocks can live as they are asked to. */
inline bool may_place(const ShapeOptions& o) {
  const bool writes_grads_to_drive = o.placing == Placing::grads_on_drive ||
                                     o.placing == Placing::everything_on_drive ||
                                     o.placing == Placing::everything_on_drive_of_cpu;
  return !writes_grads_to_drive || o.n_micro_max == 1 || o.order == AccumulationOrder::vertical;
}

/** The type that is computed in, and how states and master are kept. */
struct ToyKind {
  DType compute;
  simd::Optim optim = simd::Optim::adamw;
  bool split_master = false;
};
inline constexpr ToyKind kToyKinds[] = {{DType::f32},
                                        {DType::bf16},
                                        {DType::f16},
#ifndef __SANITIZE_THREAD__  // each takes minutes there, and the order of threads is the same
                                        {DType::f32, simd::Optim::adamw_bf16},
                                        {DType::f16, simd::Optim::adamw_8bit},
                                        {DType::bf16, simd::Optim::adamw, true},
                                        {DType::bf16, simd::Optim::lion},
                                        {DType::f32, simd::Optim::sgd},
                                        {DType::bf16, simd::Optim::sgd_momentum, true},
#endif
                                        {DType::bf16, simd::Optim::adamw_8bit, true}};
inline std::string text_of(const ToyKind& kind) {
  const std::string optim =
      kind.optim == simd::Optim::adamw ? "" : "_" + std::string(simd::spec_of(kind.optim).name);
  return std::string(name_of(kind.compute)) + optim + (kind.split_master ? "_split" : "");
}

/** Embeddings, layers, head; every tensor starts at a multiple of 256 elements. */
inline StepShape make_shape(const ShapeOptions& o) {
  StepShape shape;
  const int n_blocks = o.n_layers + 2;
  auto block = [&](std::string name, std::vector<int64_t> sizes) {
    BlockShape b;
    b.name = std::move(name);
    for (size_t t = 0; t < sizes.size(); ++t)
      b.tensors.push_back({.n_elements = sizes[t], .group = static_cast<int>(t % 2)});
    b.saved_bytes = 2 * kWidth * static_cast<int64_t>(sizeof(float));
    b.saved_recomputed_bytes = b.saved_bytes / 2;
    const int index = shape.n_blocks();
    const bool end = index == 0 || index == n_blocks - 1;
    b.place = o.placing == Placing::gpu || (o.placing == Placing::mixed && !end && index % 2 == 0)
                  ? Place::device
                  : Place::host;
    if (o.placing == Placing::mixed && !end && index % 8 == 4) b.place = kStatesOnDevice;
    const bool in_mixture = o.placing == Placing::mixed && !end && index % 4 == 3;
    if (o.placing == Placing::weights_on_gpu || in_mixture) b.place = kWeightsOnDevice;
    if (o.placing == Placing::states_on_gpu) b.place = kStatesOnDevice;
    if (o.placing == Placing::states_and_grads_on_gpu) b.place = kStatesAndGradsOnDevice;
    if (o.placing == Placing::drive) b.place = kStatesOnDrive;
    if (o.placing == Placing::grads_on_drive) b.place = kGradsOnDrive;
    if (o.placing == Placing::drive_of_cpu) b.place = kStatesOnDriveOfCpu;
    // Borrowed tensors stay in memory.
    const bool is_shared = o.tied && end;
    if (o.placing == Placing::all_on_drive) b.place = is_shared ? kStatesOnDrive : kAllOnDrive;
    if (o.placing == Placing::all_on_drive_of_cpu)
      b.place = is_shared ? kStatesOnDriveOfCpu : kAllOnDriveOfCpu;
    if (o.placing == Placing::everything_on_drive)
      b.place = is_shared ? BlockPlacement(kStatesOnDrive) : Place::nvme;
    // Weights that a CPU finds in memory are between those.
    if (o.placing == Placing::everything_on_drive_of_cpu)
      b.place = is_shared        ? BlockPlacement(kStatesOnDriveOfCpu)
                : index % 4 == 2 ? BlockPlacement(kGradsOnDriveOfCpu)
                                 : Place::nvme;
    if (o.placing == Placing::mixed && !end && index % 4 == 1)
      b.place = index % 8 == 5 ? kWeightsOnDeviceStatesOnDrive : kAllOnDrive;
    constexpr Activations kAll[] = {Activations::keep, Activations::recompute, Activations::host,
                                    Activations::selective};
    b.activations = o.mixed_activations ? kAll[index % 4] : o.activations;
    b.gathers_each_pass = o.gathers_each_pass > 0 && index % o.gathers_each_pass == 0;
    b.updates_late = o.some_update_late && index % 2 == 1;
    shape.blocks.push_back(std::move(b));
  };
  block("embeddings", {o.embedding_elements, 300});
  for (int l = 0; l < o.n_layers; ++l)
    block("layer." + std::to_string(l),
          {l == 0 && o.large_tensor_elements ? o.large_tensor_elements : 5000, 64, 130});
  block("head", {256, 33});
  if (o.tied) shape.blocks.back().borrowed = {{0, 0}, {0, 1}};
  shape.compute = o.compute;
  shape.optim = o.optim;
  shape.split_master = o.split_master;
  shape.ranks = o.ranks;
  shape.reduction = o.reduction;
  shape.n_micro_max = Rounds(o.ranks, o.n_micro_max).n();
  shape.order = o.order;
  shape.n_chunks = o.n_chunks;
  shape.n_weight_slots = o.n_weight_slots;
  shape.n_grad_slots = o.n_grad_slots;
  shape.n_saved_slots = o.n_saved_slots;
  shape.layer_inputs_on_host = o.layer_inputs_on_host;
  shape.n_layer_input_slots = o.n_layer_input_slots;
  shape.n_state_slots = o.n_state_slots;
  shape.n_weight_windows = o.n_weight_windows;
  shape.n_grad_windows = o.n_grad_windows;
  shape.computes_on_host = o.placing >= Placing::drive_of_cpu;
  shape.state_piece_elements = o.state_piece_elements;
  chain_blocks(shape, layer_input_bytes(o.compute));
  shape.scratch_bytes = 1024;
  shape.batch_bytes = 2 * kWidth * static_cast<int64_t>(sizeof(float));
  shape.trains = o.trains;
  freeze(shape, o.frozen);
  if (shape.deals_blocks()) deal_blocks(shape);
  keep_grads_in_memory(shape);
  return shape;
}

/** Any shape: 1 to 12 blocks, each with its own place and activations. */
inline StepShape random_shape(std::mt19937_64& random) {
  auto up_to = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
  ShapeOptions o;
  o.compute = up_to(2) ? DType::f32 : DType::bf16;
  o.n_micro_max = 1 + up_to(4);
  o.order = up_to(2) ? AccumulationOrder::horizontal : AccumulationOrder::vertical;
  o.n_weight_slots = 1 + up_to(5);
  o.n_grad_slots = 1 + up_to(3);
  o.n_saved_slots = 1 + up_to(3);
  o.layer_inputs_on_host = up_to(2) == 0;
  o.n_layer_input_slots = 2 + up_to(6);
  o.n_state_slots = 1 + up_to(4);
  o.n_weight_windows = 1 + up_to(3);
  o.n_grad_windows = 1 + up_to(3);
  o.state_piece_elements = 256 * (1 + up_to(30));
  o.tied = up_to(2) == 0;
  o.n_layers = up_to(11);
  o.optim = static_cast<simd::Optim>(up_to(static_cast<int>(simd::kOptims.size())));
  o.split_master = o.compute == DType::bf16 && up_to(2) == 0;
  StepShape shape = make_shape(o);
  if (up_to(12) == 0) {  // a model of one block
    shape.blocks.resize(1);
    chain_blocks(shape, layer_input_bytes(o.compute));
  }
  // The last ones: weights that no other block may borrow.
  constexpr BlockPlacement kAll[] = {Place::device,
                                     kStatesAndGradsOnDevice,
                                     Place::host,
                                     kWeightsOnDevice,
                                     kStatesOnDrive,
                                     kWeightsOnDeviceStatesOnDrive,
                                     kStatesOnDevice,
                                     kGradsOnDrive,
                                     kWeightsOnDeviceGradsOnDrive,
                                     kAllOnDrive,
                                     Place::nvme};
  constexpr int kOwnWeights = 2;
  constexpr int kPlacings = std::size(kAll);
  const int placing = up_to(kPlacings + 1), activations = up_to(5);
  for (BlockShape& b : shape.blocks) {
    b.place = kAll[placing == kPlacings ? up_to(kPlacings) : placing];
    b.activations = static_cast<Activations>(activations == 4 ? up_to(4) : activations);
    if (up_to(10) == 0) b.saved_bytes = b.saved_recomputed_bytes = 0;
    b.updates_late = up_to(3) == 0;
    b.has_loss |= up_to(8) == 0;
  }
  // What is shared stays in memory; its uses may be in two.
  const auto draw_in_memory = [&](BlockShape& b) {
    b.place = kAll[up_to(kPlacings - kOwnWeights)];
  };
  if (o.tied && shape.blocks[0].place.weights == Place::nvme)
    shape.blocks[0].place = kStatesOnDrive;
  for (BlockShape& b : shape.blocks)
    if (!b.borrowed.empty()) draw_in_memory(b);
  // A second borrower, in the middle: shared blocks.
  if (o.tied && shape.n_blocks() > 3 && up_to(3) == 0) {
    shape.blocks[2].borrowed = {{0, 1}};
    draw_in_memory(shape.blocks[2]);
  }
  const int frozen = up_to(8);  // mostly nothing
  if (frozen < 5) freeze(shape, static_cast<Frozen>(frozen));
  if (frozen == 5)
    for (BlockShape& b : shape.blocks)
      for (TensorExtent& t : b.tensors)
        t.trainable = up_to(3) == 0;
  arrange(shape);
  // Something is trained.
  if (shape.first_backward() == shape.n_blocks()) shape.blocks.back().tensors[0].trainable = true;
  arrange(shape);
  keep_grads_in_memory(shape);
  return shape;
}

/** Makes the first blocks pieces of one table of words, and the last ones pieces of a head: what
 * they look up and what is known of their logits is changed from piece to piece, and the head's
 * backwards go the way of its forwards. */
inline void link_pieces(StepShape& shape, int n_first, int n_last) {
  using enum PortUse;
  const int64_t n_bytes = layer_input_bytes(shape.compute);
  const int n = shape.n_blocks(), first_of_head = n - n_last;
  shape.values.clear();
  shape.backwards.clear();
  const auto add = [&](std::string name, int64_t bytes) {
    shape.values.push_back({.name = std::move(name), .n_bytes = bytes});
    return static_cast<int>(shape.values.size()) - 1;
  };
  int x = add("words", n_bytes), dx = add("gradient of words", n_bytes);
  for (int b = 0; b < first_of_head; ++b) {
    std::vector<Port>& ports = shape.blocks[b].ports;
    if (b < n_first) {
      ports = {{x, b == 0 ? writes : changes, none}, {dx, none, reads}};
      continue;
    }
    ports = {{x, reads, reads}, {dx, none, writes}};
    x = add("output", n_bytes);
    dx = add("gradient", n_bytes);
    ports.push_back({x, writes, none});
    ports.push_back({dx, none, reads});
  }
  for (int b = 0; b < n; ++b)  // a forward that changes a value cannot run again
    if (b < n_first || b >= first_of_head)
      shape.blocks[b].saved_bytes = shape.blocks[b].saved_recomputed_bytes = 0;
  const int state = add("state", 2 * n_bytes), lse = add("lse", n_bytes / 4);
  const int sum = add("sum", 2 * n_bytes);
  for (int b = first_of_head; b < n; ++b) {
    const bool is_first = b == first_of_head, is_last = b == n - 1;
    std::vector<Port>& ports = shape.blocks[b].ports;
    ports = {{x, reads, reads},
             {state, is_first ? writes : changes, none},
             {sum, none,
              is_first  ? writes
              : is_last ? reads
                        : changes},
             {lse, is_last ? writes : none, reads}};
    if (is_last) ports.push_back({dx, none, writes});
    shape.backwards.push_back(b);
  }
  for (int b = first_of_head; b-- > 0;)
    shape.backwards.push_back(b);
}

inline size_t count_of(const StepList& list, Verb verb) {
  return static_cast<size_t>(std::ranges::count(list, verb, &Action::verb));
}

}  // namespace ferry::test
