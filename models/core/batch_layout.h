#pragma once
// The places of a micro-batch's parts inside its fixed region (one on the host, one on the GPU,
// same offsets). The region is sized by the largest shape of the run, so that every smaller
// micro-batch finds its parts at the same addresses.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "models/core/preference.h"
#include "models/core/tensor_table.h"
#include "src/base/bytes.h"

namespace ferry {

/** Offsets in bytes. */
struct StreamLayout {
  int64_t input_ids = 0;     ///< (tokens) int32
  int64_t type_ids = 0;      ///< (tokens) int32
  int64_t position_ids = 0;  ///< (tokens) int32
  int64_t cu_seqlens = 0;    ///< (n_seqs + 1) int32
  int64_t features = 0;  ///< (tokens, StreamSpec::feature_columns) fp32; none of a stream of ids
};

struct BatchLayout {
  std::vector<StreamLayout> streams;  ///< by ModelTable::streams
  /** (n_seqs) int32 | (n_seqs, n_labels) fp32 | (n_seqs) fp32 | (tokens) int32 | (n_seqs, 2) int32
   */
  int64_t labels = 0;
  int64_t label_rows = 0;  ///< (label tokens | n_seqs) int32; of a masked model or a prompt
  /** (n_seqs | tokens, n_labels) fp32, written by an evaluation; of pairs of answers (n_seqs,
   * kPreferenceSums), written by each forward pass. */
  int64_t logits = 0;
  int64_t preferences = 0;    ///< (n_seqs, kPreferenceInputs) fp32
  int64_t token_weights = 0;  ///< (tokens) fp32, written by the forward pass
  int64_t n_bytes = 0;
};

/** A language-model head keeps no logits here: those of a generation's last tokens have a region of
 * their own. */
inline BatchLayout make_batch_layout(const BatchShape& largest, const ModelTable& model) {
  BatchLayout layout;
  auto next = [&layout](int64_t n_items) {
    int64_t at = layout.n_bytes;
    layout.n_bytes += round_up(n_items * 4, kTensorAlignment_bytes);
    return at;
  };
  for (size_t s = 0; s < model.streams.size(); ++s) {
    const StreamShape its = largest.stream(static_cast<int>(s));
    StreamLayout& stream = layout.streams.emplace_back();
    stream.input_ids = next(its.tokens);
    stream.type_ids = next(its.tokens);
    stream.position_ids = next(its.tokens);
    stream.cu_seqlens = next(its.n_seqs_max + 1);
    stream.features = next(its.tokens * model.streams[s].feature_columns);
  }
  const int64_t n_labels = std::max<int64_t>(model.n_labels, 1);
  const bool is_lm = is_language_model(model.head);
  const bool has_token_labels = is_lm || model.head == HeadKind::token_classification;
  const int64_t per_seq = largest.n_seqs_max * n_labels;
  layout.labels = next(has_token_labels ? std::max(largest.tokens, per_seq) : per_seq);
  layout.label_rows = next(model.head == HeadKind::masked_lm ? largest.tokens
                           : model.head == HeadKind::prompt  ? largest.n_seqs_max
                                                             : 0);
  layout.logits = next(has_token_logits(model.head) ? largest.tokens * n_labels
                       : model.has_preferences      ? largest.n_seqs_max * kPreferenceSums
                                                    : per_seq);
  if (model.has_preferences) {
    layout.preferences = next(largest.n_seqs_max * kPreferenceInputs);
    layout.token_weights = next(largest.tokens);
  }
  return layout;
}

}  // namespace ferry
