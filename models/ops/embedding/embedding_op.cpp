#include "models/ops/embedding/embedding_op.h"

#include <fmt/format.h>
#include <algorithm>

#include "models/ops/scratch_sizes.h"

namespace ferry::ops {

const OpDef kEmbedding = {
    .name = "embedding",
    .values = EmbeddingValues<int>::kNames,
    .n_inputs = 1,
    .params = EmbeddingParams<int>::kNames,
    .attributes =
        [](const Op& op) {
          const auto& with = op.with<EmbeddingAttributes>();
          const bool is_exact = with.rows.word_scale != 1 && !with.rows.rounds;
          return fmt::format("position_offset {} word_scale {}{} table_rows {} first_word {}",
                             with.rows.position_offset, with.rows.word_scale,
                             is_exact ? " not rounded" : "", with.n_table_rows, with.first_word);
        },
    .remake = [](PassPlanner& p, int op) { return p.remake(op); },
    .plan_backward =
        [](BackwardPlanner& p, const Op& op) {
          const auto v = values_of<EmbeddingValues>(op);
          EmbeddingGrads<int> places = {.dy = p.take_grad(v.y), .d_words = kNone};
          places.d_words = p.grad_place(v.words, /*adds=*/false).place;
          p.call(p.op(), Part::backward, places);
        },
    .scratch = [](const OpCase& c, Part part) -> ScratchNeed {
      if (part != Part::backward) return {};
      const auto v = values_of<EmbeddingValues>(c.op);
      return {.forward_bytes = stacked_bytes(embedding_backward_scratch_bytes(
                  c.rows(v.y), c.columns(v.y), c.target.is_cuda()))};
    },
    .add_work =
        [](BlockWork& work, const OpCase& c, const Call& call) {
          const auto v = values_of<EmbeddingValues>(c.op);
          const auto n_tables = static_cast<int>(
              std::ranges::count_if(c.op.params, [](ParamId param) { return param != kNone; }));
          const int n_given = v.words == kNone ? 0 : 1;
          if (call.part != Part::backward) {
            work.memory_bytes += c.traffic(v.y, n_given + n_tables + 1);
            ++work.n_kernels;
            return;
          }
          work.memory_bytes += c.traffic(v.y, 2 * n_given);
          work.n_kernels += n_given;
          // Sums into tables that are cleared first.
          work.memory_bytes +=
              c.traffic(v.y, 3 * n_tables) +
              c.compute_bytes(c.op.with<EmbeddingAttributes>().n_table_rows * c.columns(v.y));
          work.compared_pairs += n_tables * c.shape.tokens * c.shape.tokens;
          work.n_kernels += 4 * n_tables;
        },
};

}  // namespace ferry::ops
