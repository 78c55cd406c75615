// Runs a block's program: the torch half of models/core, and the only Block of built-in families.

#include <fmt/format.h>

#include <map>

#include "models/core/block.h"
#include "models/core/compile.h"
#include "models/ops/attention/attention.h"
#include "models/ops/attention/attention_op.h"
#include "models/ops/run.h"
#include "src/base/error.h"

namespace ferry {
namespace {

class ProgramBlock final : public Block {
 public:
  ProgramBlock(std::shared_ptr<const CompiledBlock> block, LossKind loss)
      : block_(std::move(block)), loss_(loss) {
    for (const Value& value : program().values)
      has_labelled_rows_ |= value.rows == Rows::labelled;
    for (const Op& op : program().ops)
      has_attention_ |= op.def == &ops::kAttention;
  }

  std::optional<GraphShape> graph_shape(const BatchTensors& batch) const override {
    if (!has_attention_ || !may_be_graph(*block_)) return std::nullopt;
    return ops::attention_graph_shape(block_->target.attention, batch);
  }

  void forward(const RandomKey& key,
               const BatchTensors& batch,
               BlockMemory& memory,
               Ports ports,
               at::Tensor& loss,
               at::Tensor& logits) override {
    if (has_labelled_rows_ && n_labelled(batch) == 0) {
      if (loss.defined()) loss.zero_();
      return;
    }
    run({block_->plan.forward, forward_}, key, batch, memory, ports, loss, logits);
  }

  void backward(const RandomKey& key,
                const BatchTensors& batch,
                BlockMemory& memory,
                Ports ports) override {
    if (has_labelled_rows_ && n_labelled(batch) == 0) {
      for (at::Tensor& grad : memory.grads)
        if (grad.defined()) grad.zero_();
      for (size_t p = 0; p < ports.size(); ++p)
        if (program().ports[p].backward == PortUse::writes) ports[p].zero_();
      return;
    }
    at::Tensor none;
    run({block_->plan.backward, backward_}, key, batch, memory, ports, none, none);
  }

  void recompute(const BatchTensors& batch, BlockMemory& memory, Ports ports) override {
    at::Tensor none;
    run({block_->plan.recompute, recompute_}, {}, batch, memory, ports, none, none);
  }

 private:
  using Layouts = std::map<std::array<int64_t, 3>, PassScratch>;  // by the room
  struct Pass {
    const PassPlan& plan;
    Layouts& layouts;
  };
  const BlockProgram& program() const { return block_->program; }

  static int64_t n_labelled(const BatchTensors& batch) {
    return batch.label_rows.defined() ? batch.label_rows.size(0) : batch.shape.tokens;
  }
  static int64_t n_rows(Rows rows, const BatchTensors& batch) {
    return rows == Rows::tokens      ? batch.shape.tokens
           : rows == Rows::sequences ? batch.n_seqs
                                     : n_labelled(batch);
  }

  /** The rows of a saved tensor that the batch uses; it has room for more. */
  at::Tensor saved_part(const SavedTensor& saved,
                        const at::Tensor& whole,
                        const BatchTensors& batch) const {
    Rows rows = Rows::tokens;
    if (saved.value != kNone) {
      rows = program().value(saved.value).rows;
    } else {
      const Op& op = program().op(saved.op);
      rows = program().value(op.out.empty() ? op.in[0] : op.out.back()).rows;
    }
    return rows == Rows::tokens ? whole : whole.narrow(0, 0, n_rows(rows, batch));
  }

  void run(const Pass& pass,
           const RandomKey& key,
           const BatchTensors& batch,
           BlockMemory& memory,
           Ports ports,
           at::Tensor& loss,
           at::Tensor& logits) const {
    const PassScratch& scratch = layout_of(pass, memory.room);
    std::vector<at::Tensor> tensors;
    tensors.reserve(pass.plan.places.size());
    for (size_t p = 0; p < pass.plan.places.size(); ++p)
      tensors.push_back(tensor_of(pass.plan.places[p], scratch.offsets[p], batch, memory, ports));
    for (size_t p = 0; p < tensors.size(); ++p)
      if (const PassPlace& place = pass.plan.places[p]; place.kind == PlaceKind::columns) {
        const at::Tensor& whole = tensors[static_cast<size_t>(place.whole)];
        if (whole.defined()) tensors[p] = whole.narrow(1, place.first_column, place.columns);
      }
    std::vector<at::Tensor> places, states;
    for (size_t c = 0; c < pass.plan.calls.size(); ++c) {
      const Call& call = pass.plan.calls[c];
      const auto take = [&](const std::vector<int>& from, std::vector<at::Tensor>& into) {
        into.clear();
        for (int p : from)
          into.push_back(p == kNone ? at::Tensor() : tensors[static_cast<size_t>(p)]);
      };
      take(call.places, places);
      take(call.states, states);
      const Op& op = block_->plan.op_of(program(), call);
      memory.scratch->rewind(scratch.call_offsets[c]);
      run_of (*op.def)({op, block_->target, call.part, call.names, places, states, memory, key,
                        batch, loss_, loss, logits, *memory.scratch});
    }
  }

  /** Smaller micro-batches leave a part of each place unused. */
  const PassScratch& layout_of(const Pass& pass, const BatchShape& shape) const {
    const auto [found, is_new] =
        pass.layouts.try_emplace({shape.tokens, shape.n_seqs_max, shape.max_length});
    if (is_new) found->second = lay_out(pass.plan, block_->plan, program(), block_->target, shape);
    return found->second;
  }

  at::Tensor tensor_of(const PassPlace& place,
                       int64_t offset,
                       const BatchTensors& batch,
                       BlockMemory& memory,
                       Ports ports) const {
    if (place.kind == PlaceKind::port) {
      const at::Tensor& whole = ports[static_cast<size_t>(place.port)];
      const Rows rows = program().value(place.value).rows;
      if (rows == Rows::tokens || !whole.defined()) return whole;
      return whole.narrow(0, 0, n_rows(rows, batch));
    }
    if (place.kind == PlaceKind::saved) {
      const auto index = static_cast<size_t>(place.saved);
      return saved_part(block_->plan.saved[index], memory.saved[index], batch);
    }
    if (place.first_call == kNone || place.kind == PlaceKind::columns) return {};
    const int64_t rows = n_rows(place.rows, batch);
    const at::ScalarType type = scalar_type_of(place.type);
    if (place.by_column) return memory.scratch->at(offset, {place.columns, rows}, type);
    return memory.scratch->at(offset, {rows, place.columns}, type);
  }

  std::shared_ptr<const CompiledBlock> block_;
  LossKind loss_;
  bool has_labelled_rows_ = false, has_attention_ = false;
  mutable Layouts forward_, backward_, recompute_;
};

}  // namespace

std::unique_ptr<Block> make_block(const ModelTable& model, int block, LossKind loss) {
  const BlockTable& table = model.blocks[static_cast<size_t>(block)];
  FERRY_CHECK(table.kind != BlockKind::head || head_of(loss) == model.head,
              "loss {} with a head of kind {}", static_cast<int>(loss),
              static_cast<int>(model.head));
  return std::make_unique<ProgramBlock>(table.compiled, loss);
}

}  // namespace ferry
