#include "models/cut_vocabulary.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/core/compile.h"
#include "models/ops/dropout/dropout_op.h"
#include "models/ops/embedding/embedding_op.h"
#include "models/ops/scratch_sizes.h"
#include "models/ops/vocabulary_loss/vocabulary_op.h"
#include "src/base/bytes.h"
#include "src/base/error.h"

namespace ferry {
namespace {

int64_t largest_layer(const ModelTable& model) {
  int64_t most = 0;
  for (const BlockTable& block : model.blocks)
    if (block.kind == BlockKind::layer) most = std::max(most, block.n_params());
  return most;
}

/** The operation of a block that has the words' table; null: none has. */
const Op* words_op(const BlockTable& block) {
  const auto has_words = [](const Op& op) {
    return (op.def == &ops::kEmbedding || op.def == &ops::kVocabularyLoss) && op.params[0] != kNone;
  };
  const auto& ops = block.compiled->program.ops;
  const auto found = std::ranges::find_if(ops, has_words);
  return found == ops.end() ? nullptr : &*found;
}

/** Makes the model again, block by block. */
class Cutter {
 public:
  Cutter(const ModelTable& whole, int64_t piece_elements_max)
      : whole_(whole), most_(piece_elements_max) {
    model_ = whole;
    model_.blocks.clear();
    model_.hf_names.clear();
  }

  bool is_cut(int64_t rows, int64_t columns) const {
    return rows * columns > std::max(most_, largest_layer(whole_)) && rows_of_piece(columns) < rows;
  }
  bool cuts_any() const {
    return std::ranges::any_of(whole_.blocks,
                               [&](const BlockTable& block) { return is_cut(block); });
  }

  ModelTable cut() {
    for (const BlockTable& block : whole_.blocks) {
      placed_.emplace_back(block.params.size());
      if (!is_cut(block))
        copy(block);
      else if (block.kind == BlockKind::embeddings)
        cut_embeddings(block);
      else
        cut_head(block);
    }
    place_names();
    return std::move(model_);
  }

 private:
  /** A part of a parameter: rows from one on. */
  struct Part {
    int block = 0, param = 0;
    int64_t first_row = 0;
  };

  int64_t rows_of_piece(int64_t columns) const {
    const int64_t chunk = columns * ops::kVocabChunk;
    return std::max<int64_t>(1, most_ / chunk) * ops::kVocabChunk;
  }
  bool is_cut(const BlockTable& block) const {
    const Op* words = words_op(block);
    if (!words) return false;
    const std::vector<int64_t>& shape = param_of(block, words->params[0]).shape;
    return is_cut(shape[0], shape[1]);
  }
  const ParamSpec& param_of(const BlockTable& block, ParamId id) const {
    const auto n_own = static_cast<ParamId>(block.params.size());
    if (id < n_own) return block.params[static_cast<size_t>(id)];
    const BorrowedParam& b = block.borrowed[static_cast<size_t>(id - n_own)];
    return whole_.blocks[static_cast<size_t>(b.block)].params[static_cast<size_t>(b.param)];
  }

  BlockTable& add_block(const BlockTable& from, std::string name) {
    BlockTable block;
    block.name = std::move(name);
    block.kind = from.kind;
    block.random_block = from.random_block;
    model_.blocks.push_back(std::move(block));
    return model_.blocks.back();
  }
  int last_block() const { return static_cast<int>(model_.blocks.size()) - 1; }
  std::vector<Part>& parts_of(int param) { return placed_.back()[static_cast<size_t>(param)]; }

  /** Adds rows of one of the block's parameters to the last block. */
  ParamId add_param(const BlockTable& from, int param, int64_t first_row, int64_t rows) {
    ParamSpec spec = from.params[static_cast<size_t>(param)];
    spec.n_elements = spec.n_elements / spec.shape[0] * rows;
    spec.shape[0] = rows;
    const int64_t zero_row = spec.normal.zero_row - first_row;
    spec.normal.zero_row = zero_row >= 0 && zero_row < rows ? zero_row : -1;
    BlockTable& block = model_.blocks.back();
    block.params.push_back(std::move(spec));
    block.arrange();
    const auto id = static_cast<int>(block.params.size()) - 1;
    parts_of(param).push_back({last_block(), id, first_row});
    return id;
  }
  ParamId add_param(const BlockTable& from, int param) {
    return add_param(from, param, 0, from.params[static_cast<size_t>(param)].shape[0]);
  }
  /** Adds the parameters that operations use, in the order of the table, and gives operations their
   * new numbers. */
  void add_params_of(const BlockTable& from, std::vector<Op>& ops) {
    const auto n_own = static_cast<ParamId>(from.params.size());
    std::vector<ParamId> ids(from.params.size() + from.borrowed.size(), kNone);
    const auto is_used = [&](ParamId id) {
      return std::ranges::any_of(
          ops, [&](const Op& op) { return std::ranges::find(op.params, id) != op.params.end(); });
    };
    for (ParamId id = 0; id < n_own; ++id)
      if (is_used(id)) ids[static_cast<size_t>(id)] = add_param(from, id);
    for (ParamId id = n_own; id < static_cast<ParamId>(ids.size()); ++id)
      FERRY_CHECK(!is_used(id), "'{}' borrows more than words", from.name);
    for (Op& op : ops)
      for (ParamId& param : op.params)
        if (param != kNone) param = ids[static_cast<size_t>(param)];
  }
  void compile_last(const BlockTable& from, BlockProgram program) {
    compile(std::move(program), from.compiled->target, model_.blocks.back());
  }

  void copy(const BlockTable& block) {
    model_.blocks.push_back(block);
    for (int p = 0; p < static_cast<int>(block.params.size()); ++p)
      parts_of(p).push_back({last_block(), p, 0});
    for (BorrowedParam& b : model_.blocks.back().borrowed) {
      const auto& parts = placed_[static_cast<size_t>(b.block)][static_cast<size_t>(b.param)];
      FERRY_CHECK(parts.size() == 1, "'{}' borrows a tensor that is cut", block.name);
      b = {parts[0].block, parts[0].param};
    }
  }

  /** Calls piece(first row, rows, which of them). */
  template <class Each>
  void for_pieces(const std::vector<int64_t>& shape, const Each& piece) const {
    const int64_t rows = rows_of_piece(shape[1]);
    const auto n = static_cast<int>((shape[0] + rows - 1) / rows);
    for (int i = 0; i < n; ++i)
      piece(i * rows, std::min(rows, shape[0] - i * rows), VocabularyPiece{i, n});
  }

  void cut_embeddings(const BlockTable& block) {
    const BlockProgram& program = block.compiled->program;
    const Op& words = *words_op(block);
    const bool adds = words.params[1] != kNone || words.params[2] != kNone;
    FERRY_CHECK(&words == program.ops.data() &&
                    (!adds || words.with<ops::EmbeddingAttributes>().rows.word_scale == 1),
                "'{}' does not begin with its words, or rounds more than once", block.name);
    const Value& value = program.value(words.out[0]);
    for_pieces(param_of(block, words.params[0]).shape,
               [&](int64_t first, int64_t rows, VocabularyPiece piece) {
                 add_block(block, fmt::format("{}.{}", block.name, piece.index)).piece = piece;
                 BlockProgram its;
                 its.has_input = false;
                 its.values = {value};
                 its.values[0].recomputed = false;
                 its.output = 0;
                 Op op = words;
                 op.out = {0};
                 op.params = {add_param(block, words.params[0], first, rows), kNone, kNone};
                 auto& with = op.with<ops::EmbeddingAttributes>();
                 with.n_table_rows = rows;
                 with.first_word = first;
                 its.ops = {std::move(op)};
                 compile_last(block, std::move(its));
               });
    add_rest_of_embeddings(block, program, adds);
  }

  /** All that comes behind the lookups: the words are the input of a block of its own. */
  void add_rest_of_embeddings(const BlockTable& block, BlockProgram program, bool adds) {
    const ValueId words = program.ops[0].out[0];
    const ValueId input = 0;
    Value value = program.value(words);
    value.name = "input";
    value.recomputed = false;
    const auto renumber = [&](ValueId& id) {
      if (id == kNone) return;
      id = !adds && id == words ? input : id + 1;
    };
    program.values.insert(program.values.begin(), value);
    for (Op& op : program.ops) {
      std::ranges::for_each(op.in, renumber);
      std::ranges::for_each(op.out, renumber);
    }
    renumber(program.output);
    Op& lookup = program.ops[0];
    if (adds) {
      lookup.in = {input};
      lookup.with<ops::EmbeddingAttributes>().n_table_rows -=
          param_of(block, lookup.params[0]).shape[0];
      lookup.params[0] = kNone;
    } else {
      program.ops.erase(program.ops.begin());
    }
    if (program.ops.empty()) return;  // the layers read the words
    program.has_input = true;
    add_block(block, block.name);
    add_params_of(block, program.ops);
    compile_last(block, std::move(program));
  }

  void cut_head(const BlockTable& block) {
    const BlockProgram& program = block.compiled->program;
    FERRY_CHECK(words_op(block) == &program.ops.back(), "'{}' does not end in its words",
                block.name);
    const Op words = program.ops.back();
    const Value input = program.value(words.in[0]);
    add_what_comes_before_words(block, program);
    const ParamSpec& table = param_of(block, words.params[0]);
    const bool is_tied = words.params[0] >= static_cast<ParamId>(block.params.size());
    for_pieces(table.shape, [&](int64_t first, int64_t rows, VocabularyPiece piece) {
      add_block(block, fmt::format("{}.{}", block.name, piece.index)).piece = piece;
      BlockProgram its;
      its.values = {input};
      its.values[0].name = "input";
      its.values[0].recomputed = false;
      Op op = words;
      op.def = &ops::kVocabularyPiece;
      op.in = {0};
      auto& with = op.with<ops::VocabularyAttributes>();
      with.first_word = first;
      with.n_table_rows = rows;
      with.piece = piece;
      const ParamId bias =
          words.params[1] == kNone ? kNone : add_param(block, words.params[1], first, rows);
      if (is_tied) {
        const BorrowedParam& b = block.borrowed[static_cast<size_t>(
            words.params[0] - static_cast<ParamId>(block.params.size()))];
        const Part& part = placed_[static_cast<size_t>(b.block)][static_cast<size_t>(b.param)]
                                  [static_cast<size_t>(piece.index)];
        model_.blocks.back().borrowed.push_back({part.block, part.param});
        op.params = {static_cast<ParamId>(model_.blocks.back().params.size()), bias};
      } else {
        op.params = {add_param(block, words.params[0], first, rows), bias};
      }
      its.ops = {std::move(op)};
      compile_last(block, std::move(its));
    });
  }

  void add_what_comes_before_words(const BlockTable& block, BlockProgram program) {
    program.output = program.ops.back().in[0];
    program.ops.pop_back();
    program.values[static_cast<size_t>(program.output)].recomputed = false;
    if (program.ops.empty()) {  // a copy, since the pieces' gradient has a place of its own
      const Value copied = program.value(0);
      program.values.push_back(copied);
      program.values.back().name = "copy";
      program.output = 1;
      program.ops = {{.def = &ops::kDropout,
                      .in = {0},
                      .out = {1},
                      .params = {},
                      .attributes = ops::DropoutAttributes{}}};
    }
    add_block(block, block.name);
    add_params_of(block, program.ops);
    compile_last(block, std::move(program));
  }

  /** The names of files, in their order, with the parameters' new places. */
  void place_names() {
    for (const HfEntry& entry : whole_.hf_names) {
      const auto& parts =
          placed_[static_cast<size_t>(entry.block)][static_cast<size_t>(entry.param)];
      FERRY_CHECK(parts.size() == 1 || (entry.is_whole() && entry.row_begin == 0 &&
                                        !entry.transposed && entry.groups == HfRowGroups()),
                  "'{}' is not cut by rows", entry.hf_name);
      for (const Part& part : parts) {
        HfEntry placed = entry;
        placed.block = part.block;
        placed.param = part.param;
        if (parts.size() > 1) {
          placed.file_row = part.first_row;
          placed.rows = model_.param_of(placed).shape[0];
        }
        model_.hf_names.push_back(std::move(placed));
      }
    }
  }

  const ModelTable& whole_;
  int64_t most_;
  ModelTable model_;
  std::vector<std::vector<std::vector<Part>>> placed_;  ///< by block and parameter of the whole
};

bool is_piece(const BlockTable& block, BlockKind kind) {
  return block.piece && block.kind == kind;
}

}  // namespace

void cut_vocabulary(ModelTable& model, int64_t piece_elements_max) {
  Cutter cutter(model, piece_elements_max);
  if (cutter.cuts_any()) model = cutter.cut();
}

int64_t PassedValue::n_bytes(const BatchShape& shape) const {
  return round_up(shape.tokens * columns * static_cast<int64_t>(size_of(type)),
                  kTensorAlignment_bytes);
}

BlockLinks links_of(const ModelTable& model) {
  BlockLinks links;
  links.ends.resize(model.blocks.size());
  const auto add = [&](std::string name, int64_t columns, DType type) {
    links.values.push_back({std::move(name), columns, type});
    return static_cast<int>(links.values.size()) - 1;
  };
  int x = -1, dx = -1;                          // of what comes next
  int state = -1, lse = -1, sum = -1, dt = -1;  // of a head's pieces
  for (size_t b = 0; b < model.blocks.size(); ++b) {
    const BlockTable& block = model.blocks[b];
    const BlockProgram& program = block.compiled->program;
    BlockEnds& ends = links.ends[b];
    if (is_piece(block, BlockKind::head)) {
      if (block.piece->is_first()) {
        constexpr int64_t kStates = 4;
        state = add("state of the logits", kStates, DType::f32);
        lse = add("sums of exponentials", 1, DType::f32);
        dt = dx;
        sum = model.compute == DType::f32
                  ? dt
                  : add("sum of " + links.values[static_cast<size_t>(dt)].name,
                        program.value(0).columns, DType::f32);
      }
      ends = {.x = x,
              .dy = block.piece->is_first() ? -1 : sum,
              .dx = block.piece->is_last() ? dt : sum,
              .logits_state = state,
              .lse = lse,
              .writes_lse = block.piece->is_last(),
              .changes = !block.piece->is_first()};
      continue;
    }
    if (is_piece(block, BlockKind::embeddings) && !block.piece->is_first()) {
      ends = {.y = x, .dy = dx, .changes = true};
      continue;
    }
    if (program.has_input) ends.x = x, ends.dx = dx;
    if (program.output == kNone) continue;
    const int64_t columns = program.value(program.output).columns;
    const std::string name =
        is_piece(block, BlockKind::embeddings) ? std::string("words") : block.name;
    ends.y = x = add("output of " + name, columns, model.compute);
    ends.dy = dx = add("gradient of " + name, columns, model.compute);
  }
  for (int b = static_cast<int>(model.blocks.size()); b-- > 0;)
    if (!is_piece(model.blocks[static_cast<size_t>(b)], BlockKind::head))
      links.backwards.push_back(b);
  std::vector<int> pieces;
  for (int b = 0; b < static_cast<int>(model.blocks.size()); ++b)
    if (is_piece(model.blocks[static_cast<size_t>(b)], BlockKind::head)) pieces.push_back(b);
  links.backwards.insert(links.backwards.begin(), pieces.begin(), pieces.end());
  return links;
}

}  // namespace ferry
