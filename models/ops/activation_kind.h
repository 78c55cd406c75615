#pragma once
// The activation functions, by the names that Hugging Face's configurations give them.

#include <cstdint>

namespace ferry {

enum class Activation : uint8_t {
  gelu,        ///< "gelu": x cdf(x) of the normal distribution, by erf (Hendrycks and Gimpel 2016)
  gelu_tanh,   ///< "gelu_new", "gelu_pytorch_tanh": the same by tanh, up to 5e-4 beside it
  relu,        ///< "relu"
  silu,        ///< "silu", "swish": x / (1 + exp(-x))
  quick_gelu,  ///< "quick_gelu": x / (1 + exp(-1.702 x))
};
inline constexpr int kActivations = 5;

}  // namespace ferry
