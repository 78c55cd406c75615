#include "models/core/tensor_table.h"

#include <numeric>

#include "models/core/compile.h"
#include "src/base/bytes.h"
#include "src/base/error.h"

namespace ferry {
namespace {

constexpr int64_t kParamAlignment_elements = 256;

int64_t product(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

}  // namespace

int64_t ParamSpec::n_values() const {
  return product(shape);
}

int64_t SavedSpec::n_elements() const {
  return product(shape);
}

void BlockWork::add_linear(bool backward, int64_t rows, int64_t inner, int64_t columns) {
  if (!backward) return products.push_back({rows, inner, columns});
  products.push_back({rows, columns, inner});
  products.push_back({columns, rows, inner});
}

int BlockTable::add(std::string param_name, std::vector<int64_t> shape, bool decay, Init init) {
  ParamSpec spec;
  spec.name = std::move(param_name);
  spec.n_elements = product(shape);
  spec.shape = std::move(shape);
  spec.decay = decay;
  spec.group = decay ? 0 : 1;
  spec.init = init;
  params.push_back(std::move(spec));
  arrange();
  return static_cast<int>(params.size()) - 1;
}

void BlockTable::arrange() {
  n_segment_elements = 0;
  for (const bool trained : {true, false}) {
    for (ParamSpec& param : params) {
      if (param.trainable != trained) continue;
      param.offset = n_segment_elements;
      n_segment_elements += round_up(param.n_elements, kParamAlignment_elements);
    }
    if (trained) n_trained_elements = n_segment_elements;
  }
}

int64_t BlockTable::n_params() const {
  int64_t n = 0;
  for (const ParamSpec& p : params)
    n += p.n_values();
  return n;
}

std::vector<std::string> names_of(const HfEntry& entry) {
  std::vector<std::string> names = {entry.hf_name};
  names.insert(names.end(), entry.also_named.begin(), entry.also_named.end());
  names.insert(names.end(), entry.tied_names.begin(), entry.tied_names.end());
  return names;
}

int64_t ModelTable::n_params() const {
  int64_t n = 0;
  for (const BlockTable& b : blocks)
    n += b.n_params();
  return n;
}

int64_t ModelTable::n_trainable_params() const {
  int64_t n = 0;
  for (const BlockTable& b : blocks)
    for (const ParamSpec& p : b.params)
      if (p.trainable) n += p.n_values();
  return n;
}

int64_t rows_of(const Rows& rows, const BatchShape& shape) {
  switch (const StreamShape its = shape.stream(rows.stream); rows.kind) {
    case RowKind::tokens:
      return its.tokens * rows.factor;
    case RowKind::sequences:
      return its.n_seqs_max * rows.factor;
    case RowKind::labelled:
    case RowKind::routed:
      return its.tokens;
    case RowKind::constant:
      return rows.factor;
  }
  return 0;
}

BatchShape part_of_tokens(const BatchShape& whole, int n) {
  FERRY_CHECK(whole.streams.empty() && whole.tokens % n == 0, "{} tokens for {} ranks",
              whole.tokens, n);
  const int64_t tokens = whole.tokens / n, length = std::min(whole.max_length, tokens);
  return {tokens,
          whole.n_seqs_max,
          length,
          {{tokens, whole.n_seqs_max, length}, {whole.tokens, whole.n_seqs_max, whole.max_length}}};
}

BatchShape whole_batch(const ModelTable& model, const BatchShape& part) {
  if (model.sharing.sp_size == 1) return part;
  const StreamShape whole = part.stream(1);
  return {whole.tokens, whole.n_seqs_max, whole.max_length};
}

int64_t ModelValue::n_bytes(const BatchShape& shape) const {
  return round_up(rows_of(rows, shape) * columns * static_cast<int64_t>(size_of(type)),
                  kTensorAlignment_bytes);
}

int64_t unwanted_grad_bytes(const ModelTable& model) {
  int64_t most = 0;
  for (const BlockTable& block : model.blocks) {
    int64_t bytes = 0;
    const auto add = [&](const ParamSpec& param) {
      if (!param.trainable && param.has_grad())
        bytes += round_up(param.n_elements * static_cast<int64_t>(size_of(model.compute)),
                          kTensorAlignment_bytes);
    };
    std::ranges::for_each(block.params, add);
    for (const BorrowedParam& b : block.borrowed)
      add(model.blocks[b.block].params[b.param]);
    most = std::max(most, bytes);
  }
  return most;
}

int64_t laid_out_bytes(const std::vector<SavedSpec>& specs) {
  int64_t bytes = 0;
  for (const SavedSpec& s : specs)
    bytes += round_up(s.n_bytes(), kTensorAlignment_bytes);
  return bytes;
}

int64_t recomputed_bytes(const std::vector<SavedSpec>& specs) {
  int64_t bytes = 0;
  for (const SavedSpec& s : specs)
    if (s.recomputed) bytes += round_up(s.n_bytes(), kTensorAlignment_bytes);
  return bytes;
}

bool runs_as_graph(const ModelTable& model, int block, const BatchShape& batch, bool backward) {
  const BlockTable& table = model.blocks[block];
  if (table.kind != BlockKind::layer || model.attention != AttentionBackend::flash) return false;
  if (table.compiled && !may_be_graph(*table.compiled)) return false;
  // The operations that the fastest GPU there is (0.8 PFLOP/s) does in the 25 us that LibTorch
  // takes for a kernel.
  constexpr double kFlops_per_kernel = 2e10;
  const BlockWork work = table.work(batch, backward);
  return work.flops(backward) < work.n_kernels * kFlops_per_kernel;
}

}  // namespace ferry
