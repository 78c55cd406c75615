#include "models/adapters/soft_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "models/adapters/added_param.h"
#include "models/core/compile.h"
#include "models/core/operation.h"
#include "models/ops/embedding/embedding_op.h"
#include "src/base/error.h"

namespace ferry {

namespace {

/** The parameter's name in its block. */
constexpr std::string_view kSoftParam = "soft.weight";

}  // namespace

const HfEntry* find_soft_tokens(const ModelTable& model) {
  const auto found = std::ranges::find_if(model.hf_names, [&](const HfEntry& entry) {
    return model.param_of(entry).name == kSoftParam;
  });
  return found == model.hf_names.end() ? nullptr : &*found;
}

void start_soft_tokens(ModelTable& model, std::vector<SoftToken> tokens) {
  const HfEntry* entry = find_soft_tokens(model);
  FERRY_CHECK(entry && entry->rows == std::ssize(tokens), "{} soft tokens", tokens.size());
  ParamSpec& param = model.blocks[entry->block].params[entry->param];
  RowsInit start = *param.start_rows;
  start.rows = std::move(tokens);
  param.start_rows = std::make_shared<const RowsInit>(std::move(start));
}

void add_soft_tokens(ModelTable& model,
                     std::span<const SoftToken> tokens,
                     const std::string& hf_name,
                     bool is_delta) {
  constexpr int kFirst = 0;
  BlockTable& table = model.blocks[kFirst];
  BlockProgram program = table.compiled->program;
  for (size_t i = 0; i < program.ops.size(); ++i) {
    if (program.ops[i].def != &ops::kEmbedding) continue;
    auto params = params_of<ops::EmbeddingParams>(program.ops[i]);
    if (params.word == kNone) continue;
    FERRY_CHECK(!table.piece && params.soft == kNone, "soft tokens beside words in pieces");
    const int64_t columns = program.value(program.ops[i].out.front()).columns;
    params.soft = add_param(
        model, kFirst, program,
        {.name = std::string(kSoftParam),
         .shape = {static_cast<int64_t>(tokens.size()), columns},
         .hf_name = hf_name,
         .start = {.block = kFirst, .param = params.word, .rows = {tokens.begin(), tokens.end()}},
         .is_delta = is_delta});
    program.ops[i].params = listed<ops::EmbeddingParams>(params);
    program.ops[i].with<ops::EmbeddingAttributes>().n_table_rows +=
        static_cast<int64_t>(tokens.size());
    model.n_soft_tokens = static_cast<int64_t>(tokens.size());
    ProgramTarget target = table.compiled->target;
    target.frozen.clear();
    compile(std::move(program), target, table);
    return plan_frozen(model);
  }
  FERRY_CHECK(false, "'{}' looks no words up", table.name);
}

}  // namespace ferry
