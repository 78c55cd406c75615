#include "src/engine/model_runner.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "models/ops/rows/rows.h"
#include "src/base/error.h"
#include "src/engine/cuda/compute_stream.h"

namespace ferry {
namespace {

at::Tensor view(void* data, at::IntArrayRef shape, at::ScalarType type, at::Device device) {
  return at::from_blob(data, shape, at::TensorOptions().dtype(type).device(device));
}

constexpr size_t kStreams_max = 4;
using StreamTokens = std::array<int64_t, kStreams_max>;

/** The shape has all streams where a model has several. */
bool lists(const BatchShape& shape, size_t n_streams) {
  return shape.streams.size() == (n_streams > 1 ? n_streams : 0);
}

StreamTokens tokens_of(const BatchShape& shape) {
  StreamTokens tokens = {shape.tokens};
  for (size_t s = 0; s < shape.streams.size(); ++s)
    tokens[s] = shape.streams[s].tokens;
  return tokens;
}

/** Exchanges on the compute stream. */
class LinkedSharingRanks final : public SharingRanks {
 public:
  LinkedSharingRanks(const Ranks& ranks, RankLink& link, void* stream)
      : rank_(ranks.rank % ranks.sharing.n_ranks()),
        world_(ranks.sharing.n_ranks()),
        link_(link),
        stream_(stream) {}
  int rank() const override { return rank_; }
  int world() const override { return world_; }
  void exchange(std::span<const std::span<const std::byte>> sends,
                std::span<const std::span<std::byte>> receives) override {
    link_.exchange(sends, receives, stream_);
  }

 private:
  int rank_, world_;
  RankLink& link_;
  void* stream_;
};

}  // namespace

/** Views by the addresses they stand on and the token counts of the micro-batch's streams.
 * Addresses are fixed for the run (a borrowed tensor's follows from the block and its weights') and
 * token counts are few, so this stops growing once each count has gone through each slot. */
struct ModelRunner::Views {
  // block, is backward, weights, grads, saved, tokens of each stream
  using Key = std::tuple<int, bool, const void*, const void*, const void*, StreamTokens>;
  std::map<Key, BlockMemory> blocks;
  std::map<std::tuple<int, const void*, int64_t>, at::Tensor> passed;  ///< by value and rows
};

ModelRunner::ModelRunner(const ModelTable& model,
                         const StepShape& shape,
                         RunMemory& memory,
                         Device& device,
                         const RunnerOptions& options)
    : model_(model),
      shape_(shape),
      memory_(memory),
      device_(device),
      options_(options),
      layout_(make_batch_layout(options.largest, model)),
      generation_(make_generation_layout(model, options.generation)),
      logits_sent_(device.make_event(QueueId::d2h)),
      unwanted_grad_bytes_(shape.trains ? unwanted_grad_bytes(model) : 0),
      scratch_(memory.at(memory.layout().scratch) + unwanted_grad_bytes_,
               shape.scratch_bytes - unwanted_grad_bytes_,
               options.device),
      batches_(static_cast<size_t>(shape.n_micro_max)),
      n_real_tokens_(batches_.size()),
      graphs_(options.graphs && device.is_cuda() ? std::make_unique<BlockGraphs>() : nullptr),
      views_(std::make_unique<Views>()) {
  FERRY_CHECK(layout_.n_bytes == shape.batch_bytes, "batch of {} bytes, planned {}",
              layout_.n_bytes, shape.batch_bytes);
  const size_t n_streams = model.streams.size();
  FERRY_CHECK(n_streams <= kStreams_max && lists(options.largest, n_streams),
              "{} streams, planned {}", n_streams, options.largest.streams.size());
  for (int b = 0; b < shape.n_blocks(); ++b)
    blocks_.push_back(make_block(model, b, options.loss));
  if (!options.class_weights.empty())
    class_weights_ = at::tensor(options.class_weights, at::kFloat).to(options.device);
  cut_cache();
  const Sharing& sharing = shape.ranks.sharing;
  FERRY_CHECK(
      (sharing.n_ranks() > 1) == (options.sharing_link != nullptr) && sharing == model.sharing,
      "{} ranks share the work of a model for {}", sharing.n_ranks(), model.sharing.n_ranks());
  if (options.sharing_link)
    sharing_ranks_ = std::make_unique<LinkedSharingRanks>(shape.ranks, *options.sharing_link,
                                                          device.compute_stream());
}

ModelRunner::~ModelRunner() = default;

void ModelRunner::cut_cache() {
  const GenerationShape& generation = options_.generation;
  caches_.resize(model_.blocks.size());
  if (generation.cache_tokens == 0) return;
  std::byte* start = memory_.at(memory_.layout().generation);
  for (size_t b = 0; b < caches_.size(); ++b) {
    const ops::AttentionHeads* heads = attention_heads_of(model_.blocks[b]);
    if (!heads) continue;
    const int64_t shape[] = {generation.n_sequences, heads->n_kv_heads, generation.cache_tokens,
                             heads->head_width};
    const at::ScalarType type = scalar_type_of(shape_.compute);
    caches_[b] = {.keys = view(start + generation_.keys[b], shape, type, options_.device),
                  .values = view(start + generation_.values[b], shape, type, options_.device)};
  }
}

void ModelRunner::load(int micro, const HostBatch& batch) {
  std::byte* at = memory_.at(memory_.layout().batches_on_host[static_cast<size_t>(micro)]);
  auto put = [at](int64_t offset, auto items) {
    if (!items.empty()) std::memcpy(at + offset, items.data(), items.size_bytes());
  };
  const BatchShape& largest = options_.largest;
  FERRY_CHECK(lists(batch.shape, layout_.streams.size()) &&
                  batch.others.size() + 1 == layout_.streams.size(),
              "{} streams in a batch of a model with {}", batch.others.size() + 1,
              layout_.streams.size());
  const auto m = static_cast<size_t>(micro);
  std::byte* gpu = memory_.at(memory_.layout().batches[m]);
  auto on_device = [&](int64_t offset, at::IntArrayRef shape, at::ScalarType type) {
    return view(gpu + offset, shape, type, options_.device);
  };
  BatchTensors& b = batches_[m];
  b.streams.resize(layout_.streams.size() > 1 ? layout_.streams.size() : 0);
  for (size_t s = 0; s < layout_.streams.size(); ++s) {
    const StreamLayout& to = layout_.streams[s];
    const HostStream from = batch.stream(s);
    const StreamShape its = batch.shape.stream(static_cast<int>(s)),
                      most = largest.stream(static_cast<int>(s));
    FERRY_CHECK(its.tokens <= most.tokens && from.n_seqs <= most.n_seqs_max &&
                    its.max_length <= most.max_length,
                "{} tokens in {} sequences of at most {}, planned {} in {} of {}", its.tokens,
                from.n_seqs, its.max_length, most.tokens, most.n_seqs_max, most.max_length);
    const int64_t n_features = its.tokens * model_.streams[s].feature_columns;
    FERRY_CHECK(from.n_seqs >= batch.n_seqs_real &&
                    std::ssize(from.cu_seqlens) == from.n_seqs + 1 &&
                    std::ssize(from.features) == n_features,
                "a stream of {} sequences with {} numbers, not {}", from.n_seqs,
                from.features.size(), n_features);
    put(to.input_ids, from.input_ids);
    put(to.type_ids, from.type_ids);
    put(to.position_ids, from.position_ids);
    put(to.cu_seqlens, from.cu_seqlens);
    put(to.features, from.features);
    StreamTensors stream = {
        .n_seqs = from.n_seqs,
        .input_ids = on_device(to.input_ids, {its.tokens}, at::kInt),
        .type_ids = on_device(to.type_ids, {its.tokens}, at::kInt),
        .position_ids = on_device(to.position_ids, {its.tokens}, at::kInt),
        .cu_seqlens = on_device(to.cu_seqlens, {from.n_seqs + 1}, at::kInt),
        .cu_seqlens_host = {reinterpret_cast<const int32_t*>(at + to.cu_seqlens),
                            from.cu_seqlens.size()}};
    if (const int64_t columns = model_.streams[s].feature_columns; columns > 0)
      stream.features = on_device(to.features, {its.tokens, columns}, at::kFloat);
    if (!b.streams.empty()) b.streams[s] = stream;
    if (s == 0) static_cast<StreamTensors&>(b) = std::move(stream);
  }
  put(layout_.labels, batch.labels);
  if (batch.label_rows) {
    const bool is_prompt = options_.loss == LossKind::prompt;
    FERRY_CHECK((is_prompt || options_.loss == LossKind::masked_lm) &&
                    std::ssize(*batch.label_rows) <=
                        (is_prompt ? batch.shape.n_seqs_max : batch.shape.tokens),
                "{} label rows of {} tokens", batch.label_rows->size(), batch.shape.tokens);
    put(layout_.label_rows, *batch.label_rows);
  }

  FERRY_CHECK(!batch.generates || layout_.streams.size() == 1, "a generation of several streams");
  FERRY_CHECK(!batch.generates || batch.n_seqs_real <= options_.generation.n_sequences,
              "{} sequences to go on with, planned {}", batch.n_seqs_real,
              options_.generation.n_sequences);
  generates_ = batch.generates;

  b.shape = batch.shape;
  n_real_tokens_[m] = batch.n_real_tokens();
  b.n_seqs_real = batch.n_seqs_real;
  cache_places_.assign(batch.cache_places.begin(), batch.cache_places.end());
  cache_lengths_.assign(batch.cache_lengths.begin(), batch.cache_lengths.end());
  b.cache_places = cache_places_;
  b.cache_lengths = cache_lengths_;
  const bool has_pairs = options_.loss == LossKind::preference;
  b.label_smoothing = has_pairs ? 0 : options_.label_smoothing;  // the rule's is of pairs
  switch (options_.loss) {
    case LossKind::cross_entropy:
    case LossKind::prompt:
      b.labels = on_device(layout_.labels, {batch.n_seqs_real}, at::kInt);
      break;
    case LossKind::multi_label:
      b.labels = on_device(layout_.labels, {batch.n_seqs_real, model_.n_labels}, at::kFloat);
      break;
    case LossKind::regression:
    case LossKind::reward:
      b.labels = on_device(layout_.labels, {batch.n_seqs_real}, at::kFloat);
      break;
    case LossKind::masked_lm:
    case LossKind::causal_lm:
    case LossKind::preference:
    case LossKind::token_classification:
      b.labels = on_device(layout_.labels, {batch.shape.tokens}, at::kInt);
      break;
    case LossKind::question_answering:
      b.labels = on_device(layout_.labels, {batch.n_seqs_real, 2}, at::kInt);
      break;
  }
  b.preferences = {};
  if (has_pairs && !batch.generates) {
    FERRY_CHECK(std::ssize(batch.preferences) == batch.n_seqs_real * kPreferenceInputs,
                "{} numbers of {} answers", batch.preferences.size(), batch.n_seqs_real);
    put(layout_.preferences, batch.preferences);
    b.preferences = {
        .rule = &options_.preference,
        .inputs =
            on_device(layout_.preferences, {batch.n_seqs_real, kPreferenceInputs}, at::kFloat),
        .sums = on_device(layout_.logits, {batch.n_seqs_real, kPreferenceSums}, at::kFloat),
        .token_weights = on_device(layout_.token_weights, {batch.shape.tokens}, at::kFloat)};
  }
  b.label_rows = batch.label_rows
                     ? on_device(layout_.label_rows,
                                 {static_cast<int64_t>(batch.label_rows->size())}, at::kInt)
                     : at::Tensor();
}

void ModelRunner::begin_step(int64_t step, float grad_scale, const StepItems& items) {
  step_ = step;
  training_ = true;
  grad_scale_ = grad_scale;
  items_ = {items};
}

void ModelRunner::begin_evaluation(std::vector<StepItems> items) {
  training_ = false;
  grad_scale_ = 1;
  items_ = std::move(items);
}

RandomKey ModelRunner::key(const Action& action) const {
  const Sharing& sharing = shape_.ranks.sharing;
  const int part = micro_of_step(shape_.ranks, action.micro);
  RandomKey key{.training = training_,
                .seed = options_.seed,
                .step = step_,
                .micro_batch = part / sharing.n_ranks(),
                .first_token = part % sharing.sp_size *
                               batches_[static_cast<size_t>(action.micro)].shape.tokens,
                .block = model_.blocks[action.block].random_block};
  if (key_fault_) key_fault_(key, action);
  return key;
}

BatchTensors& ModelRunner::batch(const Action& action, const PassMemory&) {
  const auto weight_of = [](double n_items) {
    return n_items > 0 ? static_cast<float>(1.0 / n_items) : 0.0f;
  };
  BatchTensors& b = batches_[static_cast<size_t>(action.micro)];
  const StepItems& items = training_ ? items_.front() : items_[static_cast<size_t>(action.micro)];
  b.loss_weight = weight_of(items.labels);
  b.end_loss_weight = weight_of(items.ends);
  b.grad_scale = grad_scale_;
  b.sharing_ranks = sharing_ranks_.get();
  b.token_share = static_cast<double>(n_real_tokens_[static_cast<size_t>(action.micro)]) /
                  std::max(items.tokens, 1.0);
  b.class_weights = training_ ? class_weights_ : at::Tensor();
  return b;
}

const at::Tensor& ModelRunner::passed(int value, const std::byte* at, const BatchShape& shape) {
  const ModelValue& its = model_.values[value];
  const int64_t n = rows_of(its.rows, shape);
  at::Tensor& t = views_->passed[{value, at, n}];
  if (t.defined()) return t;
  const std::array<int64_t, 2> rows = {n, its.columns}, columns = {its.columns, n};
  return t = view(const_cast<std::byte*>(at), its.by_column ? columns : rows,
                  scalar_type_of(its.type), options_.device);
}

void ModelRunner::set_ports(const Action& action,
                            const PassMemory& memory,
                            const BatchShape& shape) {
  const std::vector<Port>& ports = model_.blocks[action.block].ports;
  ports_.resize(ports.size());
  for (size_t p = 0; p < ports.size(); ++p)
    ports_[p] = memory.ports[p] ? passed(ports[p].value, memory.ports[p], shape) : at::Tensor();
}

BlockMemory& ModelRunner::views(const Action& action,
                                const PassMemory& memory,
                                const BatchShape& shape) {
  const BlockTable& table = model_.blocks[action.block];
  const bool is_backward = action.verb == Verb::backward;
  // A piece of a tied head may have no weights of its own.
  const std::byte* weights =
      memory.weights || memory.borrowed.empty() ? memory.weights : memory.borrowed.front();
  auto [found, is_new] = views_->blocks.try_emplace(
      {action.block, is_backward, weights, memory.grads, memory.saved, tokens_of(shape)});
  BlockMemory& out = found->second;
  if (!is_new) return out;
  const at::ScalarType compute = scalar_type_of(shape_.compute);
  const auto compute_bytes = static_cast<int64_t>(size_of(shape_.compute));
  std::byte* unwanted = memory_.at(memory_.layout().scratch);
  const auto add_grad = [&](const ParamSpec& p, int64_t offset) {
    if (!is_backward) return;
    if (!p.has_grad()) {
      out.grads.emplace_back();
      return;
    }
    std::byte* at = p.trainable ? memory.grads + offset * compute_bytes : unwanted;
    out.grads.push_back(view(at, p.shape, compute, options_.device));
    if (!p.trainable) unwanted += round_up(p.n_elements * compute_bytes, kTensorAlignment_bytes);
  };
  for (const ParamSpec& p : table.params) {
    out.params.push_back(view(memory.weights + p.offset * compute_bytes,
                              p.stored_shape(shape_.compute),
                              scalar_type_of(p.type(shape_.compute)), options_.device));
    add_grad(p, p.offset);
  }
  for (size_t i = 0; i < table.borrowed.size(); ++i) {
    const ParamSpec& p = model_.blocks[table.borrowed[i].block].params[table.borrowed[i].param];
    out.params.push_back(view(memory.borrowed[i], p.shape, compute, options_.device));
    add_grad(p, shape_.borrowed_in_grads(action.block, static_cast<int>(i)));
  }
  // Saved tensors have room for the run's most and longest sequences; blocks use the rows they
  // need.
  BatchShape saved_shape = options_.largest;
  saved_shape.tokens = shape.tokens;
  for (size_t s = 0; s < shape.streams.size(); ++s)
    saved_shape.streams[s].tokens = shape.streams[s].tokens;
  int64_t kept = 0, recomputed = 0;
  for (const SavedSpec& s : table.saved(saved_shape)) {
    const bool apart = s.recomputed && memory.saved_recomputed;
    int64_t& offset = apart ? recomputed : kept;
    out.saved.push_back(view((apart ? memory.saved_recomputed : memory.saved) + offset, s.shape,
                             scalar_type_of(s.dtype), options_.device));
    offset += round_up(s.n_bytes(), kTensorAlignment_bytes);
  }
  const BlockShape& block = shape_.blocks[action.block];
  const int64_t kept_most = memory.saved_recomputed
                                ? block.saved_bytes - block.saved_recomputed_bytes
                                : block.saved_bytes;
  FERRY_CHECK(kept <= kept_most && recomputed <= block.saved_recomputed_bytes,
              "{} saves {} bytes and {} that are made again, planned {} and {}", table.name, kept,
              recomputed, kept_most, block.saved_recomputed_bytes);
  out.scratch = &scratch_;
  out.cache = caches_[static_cast<size_t>(action.block)];
  out.room = options_.largest;
  return out;
}

void ModelRunner::forward(const Action& action, const PassMemory& memory) {
  c10::InferenceMode no_autograd;
  const ComputeStream stream(device_.compute_stream(), device_.index());
  if (generates_ && model_.blocks[action.block].kind == BlockKind::head)
    return generate(action, memory);
  BatchTensors& b = batch(action, memory);
  BlockMemory& views_of_block = views(action, memory, b.shape);
  scratch_.reset();
  set_ports(action, memory, b.shape);
  if (action.verb == Verb::recompute && memory.saved_recomputed)
    return blocks_[action.block]->recompute_selected(b, views_of_block, ports_);
  at::Tensor loss, logits;
  if (memory.loss) {
    loss = view(memory.loss, {}, at::kFloat, options_.device);
    const int64_t rows = has_token_logits(model_.head) ? b.shape.tokens : b.n_seqs;
    const bool is_last = action.block == shape_.n_blocks() - 1;
    if (model_.n_labels > 0 && is_last)
      logits =
          view(memory.batch + layout_.logits, {rows, model_.n_labels}, at::kFloat, options_.device);
  }
  run_block(action, b, memory, {.memory = &views_of_block}, [&](const RandomKey& random) {
    blocks_[action.block]->forward(random, b, views_of_block, ports_, loss, logits);
  });
}

void ModelRunner::generate(const Action& action, const PassMemory& memory) {
  const BatchTensors& all = batch(action, memory);
  const int64_t n = all.n_seqs_real;
  BatchTensors last = all;
  last.shape.tokens = n;
  last.labels = all.labels.narrow(0, 0, n);
  BlockMemory& views_of_block = views(action, memory, last.shape);
  scratch_.reset();
  std::byte* start = memory_.at(memory_.layout().generation);
  set_ports(action, memory, last.shape);
  // The pieces of a vocabulary read what comes before them, which has made these rows alone.
  if (!model_.blocks[action.block].piece) {
    const std::vector<Port>& ports = model_.blocks[action.block].ports;
    at::Tensor x = view(start + generation_.last_rows, {n, model_.width},
                        scalar_type_of(shape_.compute), options_.device);
    at::Tensor which = scratch_.take({n}, at::kInt);
    at::sub_out(which, all.cu_seqlens.narrow(0, 1, n), 1);
    ops::gather_rows(passed(ports[0].value, memory.ports[0], all.shape), which, x);
    ports_[0] = x;  // a head reads one value, which is its first port
  }
  at::Tensor loss;
  if (memory.loss) loss = view(memory.loss, {}, at::kFloat, options_.device);
  at::Tensor logits =
      view(start + generation_.logits, {n, model_.vocab_size}, at::kFloat, options_.device);
  blocks_[action.block]->forward(key(action), last, views_of_block, ports_, loss, logits);
}

void ModelRunner::backward(const Action& action, const PassMemory& memory) {
  c10::InferenceMode no_autograd;
  const ComputeStream stream(device_.compute_stream(), device_.index());
  BatchTensors& b = batch(action, memory);
  BlockMemory& views_of_block = views(action, memory, b.shape);
  scratch_.reset();
  set_ports(action, memory, b.shape);
  run_block(action, b, memory, {.is_backward = true, .memory = &views_of_block},
            [&](const RandomKey& random) {
              blocks_[action.block]->backward(random, b, views_of_block, ports_);
            });
}

void ModelRunner::run_block(const Action& action,
                            const BatchTensors& batch,
                            const PassMemory& memory,
                            GraphKey graph,
                            const std::function<void(const RandomKey&)>& work) {
  const RandomKey random = key(action);
  // A graph would be of the sequences' lengths, which are others with each token.
  if (!graphs_ || generates_ || memory.ports.size() > GraphKey::kPorts_max ||
      !runs_as_graph(model_, action.block, batch.shape, graph.is_backward))
    return work(random);
  const auto shape = blocks_[action.block]->graph_shape(batch);
  if (!shape) return work(random);
  graph.training = random.training;
  graph.batch = batch.cu_seqlens.const_data_ptr();
  graph.shape = *shape;
  std::ranges::copy(memory.ports, graph.ports.begin());
  graphs_->run(graph, random, work);
}

std::vector<float> ModelRunner::logits(int micro) {
  const auto m = static_cast<size_t>(micro);
  const BatchTensors& b = batches_[m];
  const int64_t rows = has_token_logits(model_.head)
                           ? b.cu_seqlens_host[static_cast<size_t>(b.n_seqs_real)]
                           : b.n_seqs_real;
  const int64_t columns = generates_           ? model_.vocab_size
                          : b.preferences.rule ? kPreferenceSums
                                               : model_.n_labels;
  std::vector<float> out(static_cast<size_t>(rows * columns));
  const Layout& layout = memory_.layout();
  std::byte* from = generates_ ? memory_.at(layout.generation) + generation_.logits
                               : memory_.at(layout.batches[m]) + layout_.logits;
  device_.submit(QueueId::d2h, [&] {
    device_.copy(QueueId::d2h, out.data(), from, static_cast<int64_t>(out.size() * sizeof(float)));
  });
  // drain() is not used: a checkpoint on its way is none of an evaluation's business.
  device_.record(logits_sent_);
  device_.await_host(logits_sent_);
  return out;
}

}  // namespace ferry
