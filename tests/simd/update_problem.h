#pragma once
// The arrays of one update of any optimizer and master, each at its own offset between guards:
// shared by the tests on the CPU and on a GPU.

#include <cmath>
#include <string>

#include "tests/simd/support.h"

namespace ferry::simd {

struct UpdateKind {
  DType grad;
  DType weights;
  bool has_weights;
  Optim optim;
  bool split;

  StateType states() const { return spec_of(optim).type; }
};

inline std::string text_of(const UpdateKind& kind, int64_t n) {
  return std::string(spec_of(kind.optim).name) + ", " + std::string(name_of(kind.grad)) + " -> " +
         (kind.split         ? "split"
          : kind.has_weights ? std::string(name_of(kind.weights))
                             : "none") +
         ", n " + std::to_string(n);
}

inline DType element_type(StateType states) {
  return states == StateType::fp32   ? DType::f32
         : states == StateType::bf16 ? DType::bf16
                                     : DType::u8;
}

struct UpdateProblem {
  UpdateProblem(const UpdateKind& kind, int64_t n, uint64_t seed, bool aligned = false)
      : kind(kind),
        random(seed),
        master(kind.split ? DType::bf16 : DType::f32, n, offset(aligned)),
        m(element_type(kind.states()), state_elements(0, n), offset(aligned)),
        v(element_type(kind.states()), state_elements(1, n), offset(aligned)),
        grad(kind.grad, n, offset(aligned)),
        weights(kind.weights, kind.has_weights ? n : 0, offset(aligned)),
        m_exponents(DType::u8, n_exponents(n), offset(aligned)),
        v_exponents(DType::u8, n_exponents(n), offset(aligned)) {}

  int64_t offset(bool aligned) { return aligned ? 0 : static_cast<int64_t>(random() % 33); }
  int64_t state_elements(int state, int64_t n) const {
    return state < spec_of(kind.optim).n_states() ? n : 0;
  }
  int64_t n_exponents(int64_t n) const {
    return kind.states() == StateType::block8 ? state_blocks(n) : 0;
  }

  std::vector<Buffer*> buffers() {
    return {&master, &m, &v, &grad, &weights, &m_exponents, &v_exponents};
  }

  /** Plain: what a step from zero states leaves, and new gradients. Hostile: any bits at all. */
  void fill(Values values, uint64_t seed) {
    if (values == Values::plain) {
      master.fill(values, seed);
      if (kind.split) weights.fill(values, seed + 1);
      clear_states();
      set_gradient(seed + 2);
      run(make_step(kind.optim, {.momentum = 0.9}, 1, 1.0f));
      set_gradient(seed + 3);
      return;
    }
    std::mt19937_64 bits(seed);
    for (Buffer* buffer : buffers()) {
      buffer->fill(values, bits());
      if (buffer->type() == DType::u8)
        for (int64_t i = 0; i < buffer->n(); ++i)
          buffer->u8()[i] = static_cast<uint8_t>(bits());
    }
  }
  /** A step's random key, and where in a tensor of up to 2^36 elements the arrays begin. */
  void draw_place() {
    noise_key = static_cast<uint32_t>(random());
    first_element = static_cast<int64_t>(random() % (uint64_t{1} << (random() % 37)));
    if (kind.states() == StateType::block8)
      first_element = first_element / kStateBlock * kStateBlock;
  }
  void set_gradient(uint64_t seed) { grad.fill(Values::plain, seed, 0.1f); }
  void clear_states() {
    for (Buffer* buffer : {&m, &v, &m_exponents, &v_exponents})
      std::fill_n(static_cast<char*>(buffer->data()), buffer->n_bytes(), 0);
  }

  void copy_from(const UpdateProblem& other) {
    const std::vector<Buffer*> from = const_cast<UpdateProblem&>(other).buffers();
    for (size_t i = 0; i < from.size(); ++i)
      buffers()[i]->copy_from(*from[i]);
    noise_key = other.noise_key;
    first_element = other.first_element;
  }

  /** Nesterov's momentum in odd steps. */
  UpdateStep usual_step(int64_t t) const {
    return make_step(kind.optim,
                     {.lr = 1e-3, .weight_decay = 0.01, .momentum = 0.9, .nesterov = t % 2 == 1}, t,
                     1.0f);
  }
  UpdateArgs args(const UpdateStep& step) {
    return {.master = master.data(),
            .states = {{m.data(), m_exponents.u8()}, {v.data(), v_exponents.u8()}},
            .grad = grad.data(),
            .grad_type = kind.grad,
            .weights = kind.has_weights ? weights.data() : nullptr,
            .weights_type = kind.weights,
            .n = master.n(),
            .step = step,
            .optim = kind.optim,
            .split_master = kind.split,
            .noise_key = noise_key,
            .first_element = first_element};
  }
  void run(const UpdateStep& step, int64_t begin, int64_t end) {
    update(part_of(args(step), begin, end - begin));
  }
  void run(const UpdateStep& step) { update(args(step)); }

  void expect_same(const UpdateProblem& other, const std::string& what) {
    constexpr const char* kNames[] = {"master",  "m",           "v",          "grad",
                                      "weights", "m_exponents", "v_exponents"};
    const std::vector<Buffer*> theirs = const_cast<UpdateProblem&>(other).buffers();
    for (size_t i = 0; i < theirs.size(); ++i) {
      EXPECT_TRUE(same_bits(*buffers()[i], *theirs[i])) << what << ", " << kNames[i];
      buffers()[i]->expect_guards(what + ", " + kNames[i]);
    }
  }

  /** The value of what is stored; of v with block8 states its root. */
  double stored_m(int64_t i) const {
    if (kind.states() != StateType::block8) return stored(m, i);
    const uint32_t code = at<uint8_t>(m, i), size = code & 0x7fu;
    const double value = block8_value(size << 20, m_exponents, i);
    return size == 0 ? 0 : size == code ? value : -value;
  }
  double stored_v(int64_t i) const {
    if (kind.states() != StateType::block8) return stored(v, i);
    return block8_value(static_cast<uint32_t>(at<uint8_t>(v, i)) << 19, v_exponents, i);
  }

  UpdateKind kind;
  std::mt19937_64 random;
  Buffer master, m, v, grad, weights, m_exponents, v_exponents;
  uint32_t noise_key = 0x12345678;
  int64_t first_element = 0;

 private:
  template <class T>
  static T at(const Buffer& buffer, int64_t i) {
    return static_cast<const T*>(buffer.data())[i];
  }
  double stored(const Buffer& values, int64_t i) const {
    return static_cast<double>(
        kind.states() == StateType::fp32
            ? at<float>(values, i)
            : as_float(static_cast<uint32_t>(at<uint16_t>(values, i)) << 16));
  }
  static double block8_value(uint32_t offset, const Buffer& exponents, int64_t i) {
    const uint32_t exponent = at<uint8_t>(exponents, i / kStateBlock);
    return static_cast<double>(as_float(offset + ((exponent < 15 ? 0 : exponent - 15) << 23)));
  }
};

}  // namespace ferry::simd
