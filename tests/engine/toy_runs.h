#pragma once
// Short training runs for comparing bits: a model, batches drawn from a seed, one placement of the
// bytes, 20 steps and an evaluation; what is left is every byte of weights, master and states, and
// the evaluation's logits. Used by same_bits_test
// on the simulated device and on a GPU.

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/decoder/decoder_table.h"
#include "src/engine/session.h"
#include "tests/models/made_models.h"

namespace ferry {
struct RandomKey;
}

namespace ferry::test {

/** The model and its training: fixes the bits. */
struct ToyModel {
  std::string name;
  ModelTable table;
  LossKind loss = LossKind::cross_entropy;
  std::string checkpoint;  ///< directory; empty: initialised from the seed
  int n_micro = 3;
  int64_t micro_batch_size = 4;
  int64_t max_length = 32;
  double max_grad_norm = 1.0;
  double learning_rate = 1e-3;
  bool loss_scaling = false;
  simd::Optim optim = simd::Optim::adamw;
  bool split_master = false;
  /** Frozen matrices have the values that these storages make of theirs: by block and parameter. */
  std::map<std::pair<int, int>, Storage> rounded = {};
};

/** How its bytes are placed and moved: must not change the bits. */
struct ToyPlacement {
  std::string name = "resident";
  Place place = Place::device;
  std::optional<std::vector<BlockPlacement>> places;  ///< per block, in place of `place`
  Activations activations = Activations::keep;
  bool keeps_last_more = false;  ///< the first third of the layers recompute, the second selective
  Place layer_inputs = Place::device;
  AccumulationOrder order = AccumulationOrder::horizontal;
  int n_weight_slots = 2;
  DeviceKind device = DeviceKind::cpu;
  SimulatedMode mode = SimulatedMode::serial;
  uint64_t queue_seed = 0;
  HostWaits host_waits = HostWaits::probed;
  int64_t pinned_bytes_max = INT64_MAX;
  bool overlap = true;
  bool graphs = true;
  std::vector<std::string> drive_files;  ///< of the store, where `places` has states on a drive
  bool enters = false;                   ///< passes run in the thread that steps
  bool pauses = false;  ///< gives the GPU's memory away between steps, and takes it back
  int n_workers = 2;
  int world = 1;                 ///< ranks, which are threads
  std::vector<int> shares = {};  ///< of the ranks; empty: all have as many micro-batches
  int n_stages = 1;              ///< Ranks::n_stages
  bool leads = false;            ///< the first of these leads, and has what the run has
  int first_step = 0;
  /** Of the rank that leads, before it takes the steps and after it. */
  std::function<void(Session&, const ModelTable&)> at_start, at_end;
  std::function<void(StepList&)> fault;
  std::function<void(RandomKey&, const Action&)> key_fault;
  std::function<void(int)> before_step;  ///< of each step's index, and of n_steps at the end
};

struct ToyResult {
  std::vector<std::vector<std::byte>> segments;  ///< block by block: weights, master, m, v
  std::vector<double> losses;                    ///< of each step, and of an evaluation after them
  std::vector<float> logits;                     ///< of the evaluation
  std::vector<double> grad_norms;
  int64_t library_peak_bytes = 0;
  int n_clipped = 0;
  int n_skipped = 0;
  int64_t n_graph_replays = 0;
  std::vector<int64_t> n_host_waits;  ///< of each step
};

ToyResult run_toy(const ToyModel& model, const ToyPlacement& placement, int n_steps);

/** "layer.2 adam_v differs at byte 17" or nothing. */
std::string first_difference(const ToyModel& model, const ToyResult& a, const ToyResult& b);

/** A small BERT; heads as `loss` wants. */
ToyModel small_bert(DType compute,
                    LossKind loss,
                    AttentionBackend attention = AttentionBackend::cpu_math);
/** A small decoder: Llama's layers with two queries a key head, or GPT-2's, tied. */
ToyModel small_decoder(DecoderFamily family,
                       DType compute,
                       AttentionBackend attention = AttentionBackend::cpu_math);
/** The small Llama with a loss of pairs of answers. */
ToyModel small_pairs(DType compute, AttentionBackend attention = AttentionBackend::cpu_math);
/** A small decoder with a vocabulary of three pieces, which its table is cut into or not: Llama's,
 * whose head is its own, or GPT-2's, tied. */
ToyModel many_words(DecoderFamily family, DType compute, bool is_cut);
/** A small model of a family, or "opt-350m": as a language model, or a classifier of texts where it
 * has no such head. */
ToyModel small_of_family(std::string_view model_type,
                         DType compute,
                         AttentionBackend attention = AttentionBackend::cpu_math);
/** A model of made_models.h. */
ToyModel made(Made which, DType compute, AttentionBackend attention = AttentionBackend::cpu_math);
/** A small Llama whose layer between the others is frozen but for its norms; its matrices lie as
 * nf4 and int8, or in the type of compute with the values of these. */
ToyModel small_stored(DType compute,
                      bool is_stored = true,
                      AttentionBackend attention = AttentionBackend::cpu_math);
/** Six layers of BERT-Large's width, a small vocabulary. */
ToyModel six_layers(DType compute, AttentionBackend attention);
/** all-MiniLM-L6-v2 out of the virtual environment, or nothing where it is absent. */
std::optional<ToyModel> minilm(DType compute = DType::f32,
                               AttentionBackend attention = AttentionBackend::cpu_math);

}  // namespace ferry::test
