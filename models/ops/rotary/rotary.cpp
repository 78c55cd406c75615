#include "models/ops/rotary/rotary.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "models/ops/dispatch.h"
#include "src/base/error.h"

namespace ferry::ops {
namespace {

void rotate(const Rotary& rotary, const at::Tensor& position_ids, bool back, at::Tensor& qkv) {
  const int64_t n_heads = rotary.n_heads + 2 * rotary.n_kv_heads, D = qkv.size(1) / n_heads;
  FERRY_CHECK(D % 2 == 0 && D * n_heads == qkv.size(1), "{} heads in rows of {}", n_heads,
              qkv.size(1));
  std::vector<float> frequencies(static_cast<size_t>(D / 2));
  for (int64_t i = 0; i < D / 2; i++) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(D);
    frequencies[static_cast<size_t>(i)] = static_cast<float>(std::pow(rotary.theta, exponent));
  }
  const Rotate its = {.type = dtype_of(qkv),
                      .T = qkv.size(0),
                      .n_heads = n_heads,
                      .n_rotated = rotary.n_heads + rotary.n_kv_heads,
                      .head_width = D,
                      .back = back,
                      .position_ids = ints_of(position_ids),
                      .frequencies = frequencies.data(),
                      .x = data_of(qkv)};
  kernels_for(qkv).rotate(its, launch_on(qkv));
}

}  // namespace

void rotary_forward(const Rotary& rotary, const at::Tensor& position_ids, at::Tensor& qkv) {
  rotate(rotary, position_ids, /*back=*/false, qkv);
}

void rotary_backward(const Rotary& rotary, const at::Tensor& position_ids, at::Tensor& d_qkv) {
  rotate(rotary, position_ids, /*back=*/true, d_qkv);
}

}  // namespace ferry::ops
