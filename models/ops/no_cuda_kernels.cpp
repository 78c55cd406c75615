// Stands in for the CUDA kernels in a build without CUDA, where no tensor lies on a GPU.

#include "models/ops/activation/activation.h"
#include "models/ops/attention/capped_softmax.h"
#include "models/ops/attention/join_gradients.h"
#include "models/ops/cross_entropy/cross_entropy.h"
#include "models/ops/dora/dora.h"
#include "models/ops/dropout/dropout_residual.h"
#include "models/ops/embedding/embedding.h"
#include "models/ops/gate/gate.h"
#include "models/ops/head_norm/head_norm.h"
#include "models/ops/linear/stored.h"
#include "models/ops/norm/norm.h"
#include "models/ops/preference/preference_loss.h"
#include "models/ops/rms_norm/rms_norm.h"
#include "models/ops/rotary/rotary.h"
#include "models/ops/rows/rows.h"
#include "models/ops/span_loss/span_loss.h"

namespace ferry::ops {

const ActivationKernels kCudaActivation{};
const CappedSoftmaxKernels kCudaCappedSoftmax{};
const AttentionKernels kCudaAttention{};
const CrossEntropyKernels kCudaCrossEntropy{};
const DoraKernels kCudaDora{};
const DropoutKernels kCudaDropout{};
const EmbeddingKernels kCudaEmbedding{};
const GateKernels kCudaGate{};
const HeadNormKernels kCudaHeadNorm{};
const StoredKernels kCudaStored{};
const NormKernels kCudaNorm{};
const PreferenceKernels kCudaPreference{};
const RmsNormKernels kCudaRmsNorm{};
const RotaryKernels kCudaRotary{};
const RowsKernels kCudaRows{};
const SpanLossKernels kCudaSpanLoss{};

}  // namespace ferry::ops
