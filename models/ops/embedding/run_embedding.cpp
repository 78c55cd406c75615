#include "models/ops/embedding/embedding.h"
#include "models/ops/embedding/embedding_op.h"
#include "models/ops/run.h"

namespace ferry::ops {

namespace {

float rounded(float x, DType type) {
  if (type == DType::bf16) return static_cast<float>(at::BFloat16(x));
  return type == DType::f16 ? static_cast<float>(at::Half(x)) : x;
}

/** The rows of a table, which may be undefined, from one on. */
at::Tensor rows_from(const at::Tensor& table, int64_t first) {
  if (!table.defined() || first == 0) return table;
  return table.narrow(0, first, table.size(0) - first);
}

}  // namespace

void run_embedding(const OpCall& c) {
  const auto& with = c.op.with<EmbeddingAttributes>();
  const int64_t first = with.rows.position_offset;
  const float said = with.rows.word_scale;
  const float scale = with.rows.rounds ? rounded(said, c.target.compute) : said;
  if (c.part != Part::backward) {
    const auto o = c.operands<EmbeddingValues>();
    const auto tables = c.params<EmbeddingParams>();
    const at::Tensor position = rows_from(tables.position, first);
    if (o.words->defined()) return add_embeddings(c.batch, o.words, position, tables.type, o.y);
    embedding_forward(c.batch, tables.word, position, tables.type, o.y, scale, with.first_word);
    // Either call passes over the tokens of the other.
    if (tables.soft->defined())
      embedding_forward(c.batch, tables.soft, position, tables.type, o.y, scale,
                        tables.word->size(0));
    return;
  }
  const auto o = c.operands<EmbeddingGrads>();
  const auto grads = c.grads<EmbeddingParams>();
  if (o.d_words->defined()) o.d_words->copy_(o.dy);
  embedding_backward(c.batch.input_ids, o.dy, grads.word, c.scratch, scale, with.first_word);
  embedding_backward(c.batch.input_ids, o.dy, grads.soft, c.scratch, scale, c.target.vocab_size);
  if (grads.position->defined() && first > 0) grads.position->narrow(0, 0, first).zero_();
  at::Tensor d_position = rows_from(grads.position, first);
  embedding_backward(c.batch.position_ids, o.dy, d_position, c.scratch);
  embedding_backward(c.batch.type_ids, o.dy, grads.type, c.scratch);
}

}  // namespace ferry::ops
