#include "models/ops/rotary/rotary.h"

#include <fmt/format.h>

#include "models/ops/dispatch.h"
#include "src/base/error.h"

namespace ferry::ops {
namespace {

void rotate(const Rotary& rotary, const at::Tensor& position_ids, bool back, at::Tensor& qkv) {
  const int64_t n_heads = rotary.n_heads + 2 * rotary.n_kv_heads, D = qkv.size(1) / n_heads;
  const auto n_pairs = static_cast<int64_t>(rotary.frequencies.size());
  FERRY_CHECK(2 * n_pairs <= D && D * n_heads == qkv.size(1), "{} heads in rows of {}, {} pairs",
              n_heads, qkv.size(1), n_pairs);
  const bool has_long = !rotary.long_frequencies.empty();
  FERRY_CHECK(!has_long || rotary.long_frequencies.size() == rotary.frequencies.size(),
              "{} long frequencies of {} pairs", rotary.long_frequencies.size(), n_pairs);
  const Rotate its = {.type = dtype_of(qkv),
                      .T = qkv.size(0),
                      .n_heads = n_heads,
                      .n_rotated = rotary.n_heads + rotary.n_kv_heads,
                      .head_width = D,
                      .n_pairs = n_pairs,
                      .interleaved = rotary.interleaved,
                      .factor = rotary.factor,
                      .back = back,
                      .position_ids = ints_of(position_ids),
                      .frequencies = rotary.frequencies.data(),
                      .long_frequencies = has_long ? rotary.long_frequencies.data() : nullptr,
                      .x = data_of(qkv)};
  kernels_for(qkv, kCpuRotary, kCudaRotary).rotate(its, launch_on(qkv));
}

}  // namespace

void rotary_forward(const Rotary& rotary, const at::Tensor& position_ids, at::Tensor& qkv) {
  rotate(rotary, position_ids, /*back=*/false, qkv);
}

void rotary_backward(const Rotary& rotary, const at::Tensor& position_ids, at::Tensor& d_qkv) {
  rotate(rotary, position_ids, /*back=*/true, d_qkv);
}

}  // namespace ferry::ops
