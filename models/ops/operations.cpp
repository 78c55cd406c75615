#include "models/ops/operations.h"

#include <algorithm>

#include "models/ops/activation/activation_op.h"
#include "models/ops/add/add_op.h"
#include "models/ops/all_reduce/all_reduce_op.h"
#include "models/ops/all_to_all/all_to_all_op.h"
#include "models/ops/attention/attention_op.h"
#include "models/ops/cross_attention/cross_attention_op.h"
#include "models/ops/dora/dora_op.h"
#include "models/ops/dropout/dropout_op.h"
#include "models/ops/embedding/embedding_op.h"
#include "models/ops/features/features_op.h"
#include "models/ops/gate/gate_op.h"
#include "models/ops/head_norm/head_norm_op.h"
#include "models/ops/label_loss/label_loss_op.h"
#include "models/ops/label_words/label_words_op.h"
#include "models/ops/linear/linear_op.h"
#include "models/ops/logits/logits_op.h"
#include "models/ops/low_rank/low_rank_op.h"
#include "models/ops/norm/norm_op.h"
#include "models/ops/phm/phm_op.h"
#include "models/ops/ring_attention/ring_attention_op.h"
#include "models/ops/rms_norm/rms_norm_op.h"
#include "models/ops/rotary/rotary_op.h"
#include "models/ops/route/route_op.h"
#include "models/ops/routed/routed_op.h"
#include "models/ops/rows/rows_op.h"
#include "models/ops/span_loss/span_loss_op.h"
#include "models/ops/table/table_op.h"
#include "models/ops/tanh/tanh_op.h"
#include "models/ops/vocabulary_loss/vocabulary_op.h"

namespace ferry {

namespace ops {
void run_activation(const OpCall& c);
void run_add(const OpCall& c);
void run_add_routed(const OpCall& c);
void run_all_reduce(const OpCall& c);
void run_all_reduce_grad(const OpCall& c);
void run_all_to_all(const OpCall& c);
void run_asked_rows(const OpCall& c);
void run_attention(const OpCall& c);
void run_cross_attention(const OpCall& c);
void run_dora(const OpCall& c);
void run_dora_scale(const OpCall& c);
void run_dropout(const OpCall& c);
void run_dropout_residual(const OpCall& c);
void run_embedding(const OpCall& c);
void run_features(const OpCall& c);
void run_first_rows(const OpCall& c);
void run_gate(const OpCall& c);
void run_head_norm(const OpCall& c);
void run_label_loss(const OpCall& c);
void run_label_words(const OpCall& c);
void run_labelled_rows(const OpCall& c);
void run_last_rows(const OpCall& c);
void run_linear(const OpCall& c);
void run_logits(const OpCall& c);
void run_low_rank(const OpCall& c);
void run_norm(const OpCall& c);
void run_phm(const OpCall& c);
void run_residual_norm(const OpCall& c);
void run_ring_attention(const OpCall& c);
void run_rms_norm(const OpCall& c);
void run_rotary(const OpCall& c);
void run_route(const OpCall& c);
void run_span_loss(const OpCall& c);
void run_table(const OpCall& c);
void run_take_routed(const OpCall& c);
void run_tanh(const OpCall& c);
void run_vocabulary_loss(const OpCall& c);
void run_vocabulary_piece(const OpCall& c);
}  // namespace ops

namespace {

constexpr std::pair<const OpDef*, RunOp> kOperations[] = {
    {&ops::kActivation, ops::run_activation},
    {&ops::kAdd, ops::run_add},
    {&ops::kAddRouted, ops::run_add_routed},
    {&ops::kAllReduce, ops::run_all_reduce},
    {&ops::kAllReduceGrad, ops::run_all_reduce_grad},
    {&ops::kAllToAll, ops::run_all_to_all},
    {&ops::kAskedRows, ops::run_asked_rows},
    {&ops::kAttention, ops::run_attention},
    {&ops::kCrossAttention, ops::run_cross_attention},
    {&ops::kDora, ops::run_dora},
    {&ops::kDoraScale, ops::run_dora_scale},
    {&ops::kDropout, ops::run_dropout},
    {&ops::kDropoutResidual, ops::run_dropout_residual},
    {&ops::kEmbedding, ops::run_embedding},
    {&ops::kFeatures, ops::run_features},
    {&ops::kGate, ops::run_gate},
    {&ops::kHeadNorm, ops::run_head_norm},
    {&ops::kLabelLoss, ops::run_label_loss},
    {&ops::kLabelWords, ops::run_label_words},
    {&ops::kLinear, ops::run_linear},
    {&ops::kLogits, ops::run_logits},
    {&ops::kLowRank, ops::run_low_rank},
    {&ops::kNorm, ops::run_norm},
    {&ops::kPhm, ops::run_phm},
    {&ops::kResidualNorm, ops::run_residual_norm},
    {&ops::kRingAttention, ops::run_ring_attention},
    {&ops::kRmsNorm, ops::run_rms_norm},
    {&ops::kRotary, ops::run_rotary},
    {&ops::kRoute, ops::run_route},
    {&ops::kFirstRows, ops::run_first_rows},
    {&ops::kLabelledRows, ops::run_labelled_rows},
    {&ops::kLastRows, ops::run_last_rows},
    {&ops::kSpanLoss, ops::run_span_loss},
    {&ops::kTable, ops::run_table},
    {&ops::kTakeRouted, ops::run_take_routed},
    {&ops::kTanh, ops::run_tanh},
    {&ops::kVocabularyLoss, ops::run_vocabulary_loss},
    {&ops::kVocabularyPiece, ops::run_vocabulary_piece},
};

}  // namespace

RunOp run_of(const OpDef& def) {
  const auto* const found =
      std::ranges::find(kOperations, &def, &std::pair<const OpDef*, RunOp>::first);
  FERRY_CHECK(found != std::end(kOperations), "nothing runs {}", def.name);
  return found->second;
}

}  // namespace ferry
