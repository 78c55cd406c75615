#include "models/adapters/prompt_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "models/adapters/added_param.h"
#include "models/core/compile.h"
#include "models/core/operation.h"
#include "models/ops/label_loss/label_loss_op.h"
#include "models/ops/label_words/label_words_op.h"
#include "models/ops/logits/logits_op.h"
#include "models/ops/rows/rows_op.h"
#include "models/ops/vocabulary_loss/vocabulary_op.h"
#include "src/base/error.h"

namespace ferry {
namespace {

/** A parameter of a block's program, as the model's blocks count. */
BorrowedParam place_of(const ModelTable& model, int block, ParamId param) {
  const BlockTable& table = model.blocks[block];
  const auto n_own = static_cast<ParamId>(table.params.size());
  return param < n_own ? BorrowedParam{block, param} : table.borrowed[param - n_own];
}

/** The tokens of each label's words. */
std::vector<std::vector<int32_t>> tokens_of(const LabelWords& labels) {
  std::vector<std::vector<int32_t>> tokens;
  for (const auto& words : labels.words) {
    std::vector<int32_t>& of_label = tokens.emplace_back();
    for (const auto& word : words)
      of_label.insert(of_label.end(), word.begin(), word.end());
  }
  return tokens;
}

/** Takes one token of each sequence at the head's beginning. */
void ask_one_token(BlockProgram& program) {
  const auto rows = std::ranges::find(program.ops, &ops::kLabelledRows, &Op::def);
  if (rows != program.ops.end()) {
    rows->def = &ops::kAskedRows;
  } else {
    const ValueId x = program.ops.front().in.front();
    FERRY_CHECK(program.is_read_from_port(x), "the head begins with {}",
                program.ops.front().def->name);
    const ValueId y = static_cast<ValueId>(program.values.size());
    const Value its = program.value(x);
    program.values.push_back(
        {.name = "asked", .rows = its.rows, .columns = its.columns, .type = its.type});
    for (Op& op : program.ops)
      std::ranges::replace(op.in, x, y);
    program.ops.insert(program.ops.begin(),
                       make_op(ops::kAskedRows, ops::RowsValues<ValueId>{.x = x, .y = y}));
  }
  for (Value& value : program.values)
    if (value.port == kNone) value.rows = {.kind = RowKind::sequences};
}

/** Parameters of the head that no operation reads have no gradients. Those of the block are
 * frozen, and a borrowed one is given back. */
void leave_unread(BlockTable& table, const BlockProgram& program) {
  const auto is_read = [&](ParamId param) {
    return std::ranges::any_of(program.ops, [&](const Op& op) {
      return std::ranges::find(op.params, param) != op.params.end();
    });
  };
  const auto n_own = static_cast<ParamId>(table.params.size());
  for (ParamId param = 0; param < n_own; ++param)
    if (!is_read(param)) table.params[param].trainable = false;
  // The words are the last that a head borrows.
  while (!table.borrowed.empty() &&
         !is_read(n_own + static_cast<ParamId>(table.borrowed.size()) - 1))
    table.borrowed.pop_back();
}

}  // namespace

void set_prompt_head(ModelTable& model, const PromptHead& head) {
  const int b = static_cast<int>(model.blocks.size()) - 1;
  BlockTable& table = model.blocks[b];
  BlockProgram program = table.compiled->program;
  FERRY_CHECK(is_language_model(model.head) && !program.ops.empty() &&
                  program.ops.back().def == &ops::kVocabularyLoss,
              "'{}' ends in no vocabulary", table.name);
  ask_one_token(program);
  const Op last = program.ops.back();
  program.ops.pop_back();
  const ValueId t = values_of<ops::VocabularyValues>(last).t;
  const auto params = params_of<ops::VocabularyParams>(last);
  const int64_t n_labels = std::ssize(head.labels.words), columns = program.value(t).columns;
  program.values.push_back({.name = "logits",
                            .rows = {.kind = RowKind::sequences},
                            .columns = n_labels,
                            .type = DType::f32});
  const ValueId logits = static_cast<ValueId>(program.values.size()) - 1;
  if (head.is_soft) {
    const BorrowedParam words = place_of(model, b, params.word);
    const ParamId added = add_param(
        model, b, program,
        {.name = "label.weight",
         .shape = {n_labels, columns},
         .hf_name = std::string(kLabelRows),
         .start = {.block = words.block, .param = words.param, .rows = tokens_of(head.labels)}});
    program.ops.push_back(make_op(
        ops::kLogits, ops::LogitsValues<ValueId>{.x = t, .logits = logits},
        ops::LogitsParams<ParamId>{.weight = added, .bias = kNone}, ops::LogitsAttributes{}));
  } else {
    program.ops.push_back(
        make_op(ops::kLabelWords, ops::LabelWordsValues<ValueId>{.t = t, .logits = logits},
                ops::LabelWordsParams<ParamId>{.word = params.word, .bias = params.bias},
                ops::LabelWordsAttributes{.labels = head.labels,
                                          .rule = last.with<ops::VocabularyAttributes>().rule}));
  }
  program.ops.push_back(make_op(ops::kLabelLoss, ops::LabelLossValues<ValueId>{.logits = logits}));
  model.head = HeadKind::prompt;
  model.n_labels = n_labels;
  leave_unread(table, program);
  ProgramTarget target = table.compiled->target;
  target.frozen.clear();
  compile(std::move(program), target, table);
  plan_frozen(model);
}

}  // namespace ferry
