// Runs a block's program: the torch half of models/core, and the only Block of built-in families.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "models/core/block.h"
#include "models/core/compile.h"
#include "models/ops/attention/attention.h"
#include "models/ops/attention/attention_op.h"
#include "models/ops/head_norm/head_norm_op.h"
#include "models/ops/linear/linear_op.h"
#include "models/ops/operations.h"
#include "models/ops/routed/routed.h"
#include "models/ops/routed/routed_op.h"
#include "models/ops/vocabulary_loss/vocabulary_op.h"
#include "src/base/error.h"

namespace ferry {
namespace {

class ProgramBlock final : public Block {
 public:
  ProgramBlock(std::shared_ptr<const CompiledBlock> block, LossKind loss)
      : block_(std::move(block)), loss_(loss) {
    for (const Value& value : program().values)
      has_labelled_rows_ |= value.rows.kind == RowKind::labelled;
    for (const Op& op : program().ops) {
      if (op.def == &ops::kTakeRouted) takes_routed_ = &op;
      if (op.def != &ops::kAttention) continue;
      const int stream = op.stream(program());
      has_one_length_ &= attention_stream_.value_or(stream) == stream;
      attention_stream_ = stream;
    }
  }

  std::optional<GraphShape> graph_shape(const BatchTensors& batch) const override {
    if (!attention_stream_ || !has_one_length_ || !may_be_graph(*block_)) return std::nullopt;
    const AttentionBackend backend = block_->target.attention;
    if (*attention_stream_ == 0) return ops::attention_graph_shape(backend, batch);
    return ops::attention_graph_shape(backend, batch.seen_from(*attention_stream_));
  }

  void forward(const RandomKey& key,
               const BatchTensors& batch,
               BlockMemory& memory,
               Ports ports,
               at::Tensor& loss,
               at::Tensor& logits) override {
    const RoutedRows routed = routed_rows(ports);
    if (has_no_rows(batch, routed)) {
      if (loss.defined()) loss.zero_();
      return;
    }
    run({block_->plan.forward, forward_}, key, batch, memory, ports, routed, loss, logits);
    // All ranks that share a layer have found it.
    const bool is_shared = block_->target.sharing.tp_size > 1;
    if (is_shared && loss.defined() && batch.sharing_ranks->rank() > 0) loss.zero_();
  }

  void backward(const RandomKey& key,
                const BatchTensors& batch,
                BlockMemory& memory,
                Ports ports) override {
    const RoutedRows routed = routed_rows(ports);
    if (has_no_rows(batch, routed)) {
      for (at::Tensor& grad : memory.grads)
        if (grad.defined()) grad.zero_();
      for (size_t p = 0; p < ports.size(); ++p)
        if (program().ports[p].backward == PortUse::writes) ports[p].zero_();
      return;
    }
    at::Tensor none;
    const bool is_shared = block_->target.sharing.tp_size > 1;
    if (is_shared) clear_grads(memory, ParamOfRanks::cut);
    run({block_->plan.backward, backward_}, key, batch, memory, ports, routed, none, none);
    if (is_shared && batch.sharing_ranks->rank() > 0) clear_grads(memory, ParamOfRanks::same);
  }

  void recompute_selected(const BatchTensors& batch, BlockMemory& memory, Ports ports) override {
    const RoutedRows routed = routed_rows(ports);
    at::Tensor none;
    if (!has_no_rows(batch, routed))
      run({block_->plan.recompute, recompute_}, {}, batch, memory, ports, routed, none, none);
  }

 private:
  /** A parameter's gradient on the ranks that share a layer. Each finds its part, or each finds the
   * whole, or each finds a part of a sum. */
  enum class ParamOfRanks : uint8_t { cut, same, summed };
  ParamOfRanks of_ranks(ParamId param) const {
    for (const Op& op : program().ops) {
      if (std::ranges::find(op.params, param) == op.params.end()) continue;
      if (op.def == &ops::kHeadNorm) return ParamOfRanks::summed;
      if (op.def == &ops::kVocabularyLoss || op.def == &ops::kVocabularyPiece)
        return ParamOfRanks::cut;
      if (op.def != &ops::kLinear) continue;
      const auto& with = op.with<ops::LinearAttributes>();
      const bool is_weight = params_of<ops::LinearParams>(op).weight == param;
      if (with.rows.n > 0 || (with.columns.n > 0 && is_weight)) return ParamOfRanks::cut;
    }
    return ParamOfRanks::same;
  }
  /** The parts of the ranks' gradients are added up: what another rank gives is zero here. */
  void clear_grads(BlockMemory& memory, ParamOfRanks which) const {
    for (size_t p = 0; p < memory.grads.size(); ++p)
      if (memory.grads[p].defined() && of_ranks(static_cast<ParamId>(p)) == which)
        memory.grads[p].zero_();
  }

  using Layouts = std::vector<std::pair<BatchShape, PassScratch>>;  // by the room, of which are few
  struct Pass {
    const PassPlan& plan;
    Layouts& layouts;
  };
  const BlockProgram& program() const { return block_->program; }

  static int64_t n_labelled(const BatchTensors& batch) {
    return batch.label_rows.defined() ? batch.label_rows.size(0) : batch.shape.tokens;
  }
  /** The rows of an expert's tokens. The router knows them on the device alone: the host waits. */
  RoutedRows routed_rows(Ports ports) const {
    if (!takes_routed_) return {};
    const auto v = values_of<ops::TakeRoutedValues>(*takes_routed_);
    return ops::routed_rows(ports[program().value(v.offsets).port],
                            takes_routed_->with<ops::RoutedAttributes>().expert);
  }
  bool has_no_rows(const BatchTensors& batch, const RoutedRows& routed) const {
    return (has_labelled_rows_ && n_labelled(batch) == 0) || (takes_routed_ && routed.n == 0);
  }
  static int64_t n_rows(const Rows& rows, const BatchTensors& batch, const RoutedRows& routed) {
    switch (rows.kind) {
      case RowKind::sequences:
        return batch.stream(rows.stream).n_seqs * rows.factor;
      case RowKind::labelled:
        return n_labelled(batch);
      case RowKind::routed:
        return routed.n;
      case RowKind::tokens:
      case RowKind::constant:
        break;
    }
    return rows_of(rows, batch.shape);
  }

  /** The rows of a saved tensor that the batch uses; it has room for more. */
  at::Tensor saved_part(const SavedTensor& saved,
                        const at::Tensor& whole,
                        const BatchTensors& batch,
                        const RoutedRows& routed) const {
    Rows rows;
    if (saved.value != kNone) {
      rows = program().value(saved.value).rows;
    } else {
      const Op& op = program().op(saved.op);
      rows = program().value(op.out.empty() ? op.in[0] : op.out.back()).rows;
    }
    return rows.kind == RowKind::tokens ? whole : whole.narrow(0, 0, n_rows(rows, batch, routed));
  }

  void run(const Pass& pass,
           const RandomKey& key,
           const BatchTensors& batch,
           BlockMemory& memory,
           Ports ports,
           const RoutedRows& routed,
           at::Tensor& loss,
           at::Tensor& logits) const {
    const PassScratch& scratch = layout_of(pass, memory.room);
    std::vector<at::Tensor> tensors;
    tensors.reserve(pass.plan.places.size());
    for (size_t p = 0; p < pass.plan.places.size(); ++p)
      tensors.push_back(
          tensor_of(pass.plan.places[p], scratch.offsets[p], batch, memory, ports, routed));
    for (size_t p = 0; p < tensors.size(); ++p)
      if (const PassPlace& place = pass.plan.places[p]; place.kind == PlaceKind::columns) {
        const at::Tensor& whole = tensors[place.whole];
        if (whole.defined()) tensors[p] = whole.narrow(1, place.first_column, place.columns);
      }
    std::vector<at::Tensor> places, states;
    std::map<int, BatchTensors> streams;  // as operations of other streams than the first see them
    for (size_t c = 0; c < pass.plan.calls.size(); ++c) {
      const Call& call = pass.plan.calls[c];
      const auto take = [&](const std::vector<int>& from, std::vector<at::Tensor>& into) {
        into.clear();
        for (int p : from)
          into.push_back(p == kNone ? at::Tensor() : tensors[p]);
      };
      take(call.places, places);
      take(call.states, states);
      const Op& op = block_->plan.op_of(program(), call);
      memory.scratch->rewind(scratch.call_offsets[c]);
      const int stream = batch.streams.empty() ? 0 : op.stream(program());
      if (stream > 0 && !streams.contains(stream)) streams[stream] = batch.seen_from(stream);
      run_of (*op.def)({op, block_->target, call.part, call.names, places, states, memory, key,
                        stream > 0 ? streams[stream] : batch, routed, loss_, loss, logits,
                        *memory.scratch});
    }
  }

  /** Smaller micro-batches leave a part of each place unused. */
  const PassScratch& layout_of(const Pass& pass, const BatchShape& shape) const {
    const auto found = std::ranges::find(pass.layouts, shape, &Layouts::value_type::first);
    if (found != pass.layouts.end()) return found->second;
    return pass.layouts
        .emplace_back(shape, lay_out(pass.plan, block_->plan, program(), block_->target, shape))
        .second;
  }

  at::Tensor tensor_of(const PassPlace& place,
                       int64_t offset,
                       const BatchTensors& batch,
                       BlockMemory& memory,
                       Ports ports,
                       const RoutedRows& routed) const {
    if (place.kind == PlaceKind::port) {
      const at::Tensor& whole = ports[place.port];
      const Rows& rows = program().value(place.value).rows;
      if (rows.kind == RowKind::tokens || !whole.defined()) return whole;
      return whole.narrow(0, 0, n_rows(rows, batch, routed));
    }
    if (place.kind == PlaceKind::saved) {
      const auto index = static_cast<size_t>(place.saved);
      return saved_part(block_->plan.saved[index], memory.saved[index], batch, routed);
    }
    if (place.first_call == kNone || place.kind == PlaceKind::columns) return {};
    const int64_t rows = n_rows(place.rows, batch, routed);
    const at::ScalarType type = scalar_type_of(place.type);
    if (place.by_column) return memory.scratch->at(offset, {place.columns, rows}, type);
    return memory.scratch->at(offset, {rows, place.columns}, type);
  }

  std::shared_ptr<const CompiledBlock> block_;
  LossKind loss_;
  bool has_labelled_rows_ = false;
  std::optional<int> attention_stream_;  ///< whose lengths a graph of the block is of
  bool has_one_length_ = true;           ///< all attention is of that stream
  const Op* takes_routed_ = nullptr;     ///< of an expert's program
  mutable Layouts forward_, backward_, recompute_;
};

}  // namespace

std::unique_ptr<Block> make_block(const ModelTable& model, int block, LossKind loss) {
  const BlockTable& table = model.blocks[block];
  FERRY_CHECK(table.kind != BlockKind::head || head_of(loss) == model.head,
              "loss {} with a head of kind {}", static_cast<int>(loss),
              static_cast<int>(model.head));
  return std::make_unique<ProgramBlock>(table.compiled, loss);
}

}  // namespace ferry
