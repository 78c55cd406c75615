// The part of BlockBuilder that writes a large table of words as blocks of its own.

#include <fmt/format.h>

#include <algorithm>

#include "models/blocks/block_builder.h"
#include "models/ops/scratch_sizes.h"
#include "models/ops/vocabulary_loss/vocabulary_op.h"
#include "src/base/error.h"

namespace ferry {

int64_t VocabularyCut::rows_of_piece(int64_t columns) const {
  const int64_t chunk = columns * ops::kVocabChunk;
  return std::max<int64_t>(1, piece_elements_max / chunk) * ops::kVocabChunk;
}

bool VocabularyCut::cuts(int64_t rows, int64_t columns) const {
  return rows * columns > std::max(piece_elements_max, largest_layer) &&
         rows_of_piece(columns) < rows;
}

std::optional<VocabularyCut> cut_for(const ModelTable& whole, int64_t piece_elements_max) {
  VocabularyCut cut = {.piece_elements_max = piece_elements_max, .largest_layer = 0};
  for (const BlockTable& block : whole.blocks)
    if (block.kind == BlockKind::layer)
      cut.largest_layer = std::max(cut.largest_layer, block.n_params());
  for (const BlockTable& block : whole.blocks)
    for (const ParamSpec& param : block.params)
      if (block.kind != BlockKind::layer && param.shape.size() == 2 &&
          cut.cuts(param.shape[0], param.shape[1]))
        return cut;
  return std::nullopt;
}

// --- parameters ---

ParamId BlockBuilder::words(
    const std::string& name, int64_t rows, int64_t columns, HfName hf, const NormalInit& normal) {
  if (!model_.cut_.cuts(rows, columns)) {
    const ParamId word = matrix(name, rows, columns, std::move(hf), normal);
    if (table_.kind == BlockKind::embeddings) own_words_ = word;
    return word;
  }
  words_ = {name, {rows, columns}, std::move(hf), Init::normal, normal};
  return kInPieces;
}

ParamId BlockBuilder::borrow_words(const std::string& hf) {
  const std::vector<WordRows>& rows = model_.word_rows_;
  FERRY_CHECK(!rows.empty(), "'{}' borrows words that no block has", table_.name);
  if (rows.size() == 1) return borrow(rows[0].block, rows[0].param, hf);
  for (const WordRows& its : rows)
    model_.name_tied(its.block, its.param, hf);
  borrows_pieces_ = true;
  return kInPieces;
}

ParamId BlockBuilder::word_bias(const std::string& name, int64_t n, HfName hf) {
  if (!words_ && !borrows_pieces_) return bias(name, n, std::move(hf));
  word_bias_ = {name, {n}, std::move(hf), Init::zeros, {}};
  return kInPieces;
}

HfEntry BlockBuilder::add_rows(const TableOfRows& of, const WordRows& rows, ParamId& param) {
  std::vector<int64_t> shape = of.shape;
  shape[0] = rows.n;
  param = table_.add(of.name, shape, of.shape.size() > 1, of.init);
  NormalInit& normal = table_.params[param].normal;
  normal = of.normal;
  const int64_t zero_row = normal.zero_row - rows.first;
  normal.zero_row = zero_row >= 0 && zero_row < rows.n ? zero_row : -1;
  HfEntry entry = entry_of(of.hf, param, of.shape);
  entry.rows = rows.n;
  entry.file_row = rows.first;
  return entry;
}

// --- blocks ---

std::vector<BlockBuilder::WordRows> BlockBuilder::rows_of_pieces() const {
  if (borrows_pieces_) return model_.word_rows_;
  const int64_t n = words_->shape[0], most = model_.cut_.rows_of_piece(words_->shape[1]);
  std::vector<WordRows> pieces;
  for (int64_t first = 0; first < n; first += most)
    pieces.push_back({.first = first, .n = std::min(most, n - first)});
  return pieces;
}

BlockBuilder BlockBuilder::piece(VocabularyPiece piece) const {
  BlockBuilder its(model_, fmt::format("{}.{}", table_.name, piece.index), table_.kind,
                   table_.random_block, stream_);
  its.table_.piece = piece;
  return its;
}

/** The pieces look their rows up into one tensor, each those that it has. */
ValueId BlockBuilder::look_up_pieces(const std::string& name, const ops::EmbeddingRule& rule) {
  const std::vector<WordRows> pieces = rows_of_pieces();
  const auto n = static_cast<int>(pieces.size());
  model_.word_rows_.clear();
  for (int i = 0; i < n; ++i) {
    WordRows rows = pieces[static_cast<size_t>(i)];
    BlockBuilder b = piece({i, n});
    HfEntry entry = b.add_rows(*words_, rows, rows.param);
    const ValueId y = b.value(name, {.stream = stream_}, words_->shape[1]);
    b.op(ops::kEmbedding, ops::EmbeddingValues<ValueId>{.words = kNone, .y = y},
         ops::EmbeddingParams<ParamId>{
             .word = rows.param, .position = kNone, .type = kNone, .soft = kNone})
        .attributes =
        ops::EmbeddingAttributes{.rows = rule, .n_table_rows = rows.n, .first_word = rows.first};
    if (i == 0)
      b.write_output(y, "words");
    else
      b.leave_output(y, PortUse::changes);
    b.hf_.push_back(std::move(entry));
    rows.block = b.close();
    model_.word_rows_.push_back(rows);
  }
  return input();
}

void BlockBuilder::end_in_pieces(ValueId t, ParamId bias, const ops::LogitsRule& rule) {
  // The pieces' gradient has a place of its own.
  if (program_.ops.empty()) t = copy("copy", t);
  program_.values[t].recomputed = false;
  write_output(t, table_.name);
  close();

  const ModelTable& model = model_.model_;
  const int hidden = model_.hidden_, gradient = model_.value(hidden).gradient;
  const int state = model_.add(
      {.name = "state of the logits", .columns = 4, .type = DType::f32, .by_column = true});
  const int lse = model_.add({.name = "sums of exponentials", .columns = 1, .type = DType::f32});
  int sum = gradient;  // of 16 bits it is the sum in fp32, rounded once
  if (model.compute != DType::f32)
    sum = model_.add({.name = "sum of " + model_.value(gradient).name,
                      .columns = model_.value(hidden).columns,
                      .type = DType::f32});
  const std::vector<WordRows> pieces = rows_of_pieces();
  const auto n = static_cast<int>(pieces.size());
  std::vector<HfEntry> words, biases;  // the parts of a tensor follow each other
  for (int i = 0; i < n; ++i) {
    const WordRows& rows = pieces[static_cast<size_t>(i)];
    const VocabularyPiece which = {i, n};
    BlockBuilder b = piece(which);
    ops::VocabularyParams<ParamId> params = {.word = kNone, .bias = kNone};
    if (bias != kNone) biases.push_back(b.add_rows(*word_bias_, rows, params.bias));
    if (words_)
      words.push_back(b.add_rows(*words_, rows, params.word));
    else
      params.word = b.borrow(rows.block, rows.param);

    const ValueId x = b.read(hidden);
    using enum PortUse;
    ops::VocabularyPieceValues<ValueId> values = {.t = x, .before = kNone};
    const bool is_rounded = which.is_last() && sum != gradient;
    const int sum_port = b.add_port({sum, none,
                                     is_rounded         ? reads
                                     : which.is_first() ? writes
                                                        : changes});
    values.lse = b.value_at(b.add_port({lse, which.is_last() ? writes : none, reads}));
    const int state_port = b.add_port({state, which.is_first() ? writes : changes, none});
    values.state = b.value_at(state_port);
    if (!which.is_first()) values.before = b.value_at(state_port);
    Value& of_x = b.program_.values[x];
    if (!which.is_first()) of_x.grad_before = sum_port;
    of_x.grad_port = is_rounded ? b.add_port({gradient, none, writes}) : sum_port;
    b.op(ops::kVocabularyPiece, values, params).attributes = ops::VocabularyAttributes{
        .rule = rule, .n_table_rows = rows.n, .first_word = rows.first, .piece = which};
    b.table_.has_loss = which.is_last();
    const int block = b.close();
    for (std::vector<HfEntry>* entries : {&words, &biases})
      if (!entries->empty()) entries->back().block = block;
  }
  for (std::vector<HfEntry>* entries : {&words, &biases})
    std::ranges::move(*entries, std::back_inserter(model_.model_.hf_names));
}

}  // namespace ferry
