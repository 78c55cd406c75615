// The CPU's row kernels: the same bits from both instruction sets at every length, and the accuracy
// of their exp and normal distribution.

#include "models/ops/cpu/row_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "simd/level.h"

namespace ferry::ops {
namespace {

constexpr auto kGelu = static_cast<size_t>(Activation::gelu),
               kSilu = static_cast<size_t>(Activation::silu);

struct Row {
  std::vector<float> a, b, c, d, sum;
  std::vector<uint8_t> keep;
  std::vector<float> out, out2, scalars;

  Row(int64_t n, uint64_t seed) : out(n), out2(n), scalars(4) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal(0, 2);
    for (std::vector<float>* x : {&a, &b, &c, &d, &sum}) {
      for (int64_t i = 0; i < n; i++)
        x->push_back(normal(random));
    }
    for (int64_t i = 0; i < n; i++)
      keep.push_back(random() % 4 != 0);
  }
  std::vector<float> everything() const {
    std::vector<float> all = out;
    for (const std::vector<float>* x : {&out2, &sum, &scalars})
      all.insert(all.end(), x->begin(), x->end());
    return all;
  }
};

using Call = std::function<void(const RowKernels&, Row&, int64_t)>;

const std::vector<std::pair<const char*, Call>> kCalls = {
    {"combine",
     [](const RowKernels& k, Row& r, int64_t n) {
       k.combine(r.out.data(), r.a.data(), r.b.data(), r.c.data(), r.keep.data(), 1.25f, n);
     }},
    {"moments",
     [](const RowKernels& k, Row& r, int64_t n) {
       k.moments(r.a.data(), n, 1e-5f, &r.scalars[0], &r.scalars[1]);
     }},
    {"normalise",
     [](const RowKernels& k, Row& r, int64_t n) {
       k.normalise(r.out.data(), r.a.data(), 0.3f, 0.7f, r.b.data(), r.c.data(), r.keep.data(),
                   1.25f, n);
     }},
    {"norm_backward",
     [](const RowKernels& k, Row& r, int64_t n) {
       k.norm_backward(r.out.data(), r.a.data(), r.b.data(), 0.3f, 0.7f, r.c.data(), nullptr,
                       r.keep.data(), 1.25f, r.sum.data(), r.d.data(), n);
       r.out2 = r.d;
     }},
    {"combine_backward",
     [](const RowKernels& k, Row& r, int64_t n) {
       k.combine_backward(r.out.data(), r.a.data(), r.keep.data(), 1.25f, r.sum.data(), n);
     }},
    {"add_bias",
     [](const RowKernels& k, Row& r, int64_t n) {
       k.add_bias(r.out.data(), r.a.data(), r.b.data(), n);
     }},
    {"add", [](const RowKernels& k, Row& r, int64_t n) { k.add(r.sum.data(), r.a.data(), n); }},
    {"softmax",
     [](const RowKernels& k, Row& r, int64_t n) {
       k.softmax(r.out.data(), r.out2.data(), r.a.data(), 0.5f, r.keep.data(), 1.25f, n);
     }},
    {"softmax_backward",
     [](const RowKernels& k, Row& r, int64_t n) {
       k.softmax(r.c.data(), r.out2.data(), r.a.data(), 0.5f, r.keep.data(), 1.25f, n);
       k.softmax_backward(r.out.data(), r.out2.data(), r.c.data(), r.b.data(), 0.5f, 1.25f, n);
     }},
    {"take_logits",
     [](const RowKernels& k, Row& r, int64_t n) {
       r.scalars[0] = -INFINITY;
       r.scalars[1] = r.scalars[2] = 0;
       for (const auto* x : {&r.a, &r.b})
         k.take_logits(x->data(), n, &r.scalars[0], &r.scalars[1], &r.scalars[2]);
     }},
    {"logits_backward",
     [](const RowKernels& k, Row& r, int64_t n) {
       k.logits_backward(r.out.data(), r.a.data(), 3.0f, 0.01f, 0.5f, n);
     }},
    {"soft_cap",
     [](const RowKernels& k, Row& r, int64_t n) {
       std::copy_n(r.a.begin(), n, r.out.begin());
       k.soft_cap(r.out.data(), 0.7f, 3.0f, n);
     }},
    {"soft_cap_backward",
     [](const RowKernels& k, Row& r, int64_t n) {
       std::copy_n(r.a.begin(), n, r.out.begin());
       k.soft_cap_backward(r.out.data(), r.b.data(), 0.7f, 3.0f, n);
     }},
    {"root_mean_square",
     [](const RowKernels& k, Row& r, int64_t n) {
       r.scalars[0] = k.root_mean_square(r.a.data(), n, 1e-5f);
     }},
    {"rms_normalise",
     [](const RowKernels& k, Row& r, int64_t n) {
       k.rms_normalise(r.out.data(), r.a.data(), 0.7f, r.b.data(), n);
     }},
    {"rms_backward",
     [](const RowKernels& k, Row& r, int64_t n) {
       k.rms_backward(r.out.data(), r.a.data(), r.b.data(), 0.7f, r.c.data(), r.d.data(),
                      r.sum.data(), n);
     }},
    {"angles",
     [](const RowKernels& k, Row& r, int64_t n) {
       k.angles(r.out.data(), r.sum.data(), r.a.data(), 1021, n);
     }},
    {"rotate_neighbours",
     [](const RowKernels& k, Row& r, int64_t n) {
       std::vector<float> pairs(r.b.begin(), r.b.begin() + n);
       pairs.insert(pairs.end(), r.c.begin(), r.c.begin() + n);
       k.rotate_neighbours(pairs.data(), r.a.data(), r.d.data(), n % 2 == 0, n);
       std::copy_n(pairs.begin(), n, r.out.begin());
       std::copy_n(pairs.begin() + n, n, r.sum.begin());
     }},
    {"rotate",
     [](const RowKernels& k, Row& r, int64_t n) {
       std::vector<float> pairs(r.b.begin(), r.b.begin() + n);
       pairs.insert(pairs.end(), r.c.begin(), r.c.begin() + n);
       k.rotate(pairs.data(), r.a.data(), r.d.data(), n % 2 == 0, n);
       std::copy_n(pairs.begin(), n, r.out.begin());
       std::copy_n(pairs.begin() + n, n, r.sum.begin());
     }},
};

/** And those of each activation function. */
std::vector<std::pair<const char*, Call>> calls() {
  auto all = kCalls;
  for (size_t kind = 0; kind < kActivations; kind++) {
    all.emplace_back("activate", [kind](const RowKernels& k, Row& r, int64_t n) {
      k.activate[kind](r.out.data(), r.a.data(), n);
    });
    all.emplace_back("activate_backward", [kind](const RowKernels& k, Row& r, int64_t n) {
      k.activate_backward[kind](r.out.data(), r.out2.data(), r.a.data(), r.b.data(), r.sum.data(),
                                n);
    });
    all.emplace_back("gate", [kind](const RowKernels& k, Row& r, int64_t n) {
      k.gate[kind](r.out.data(), r.a.data(), r.b.data(), n);
    });
    all.emplace_back("gate_backward", [kind](const RowKernels& k, Row& r, int64_t n) {
      k.gate_backward[kind](r.out.data(), r.sum.data(), r.out2.data(), r.a.data(), r.b.data(),
                            r.c.data(), n);
    });
  }
  return all;
}

TEST(RowKernels, SameBitsFromBothInstructionSets) {
  if (simd::best_level() == simd::Level::scalar) GTEST_SKIP() << "this CPU has no AVX2";
  for (const auto& [name, call] : calls()) {
    for (int64_t n = 1; n <= 130; n++) {
      Row first(n, n), second(n, n);
      call(row_kernels_baseline(), first, n);
      call(row_kernels_avx2(), second, n);
      const std::vector<float> x = first.everything(), y = second.everything();
      ASSERT_EQ(memcmp(x.data(), y.data(), x.size() * sizeof(float)), 0) << name << ", " << n;
    }
  }
}

TEST(RowKernels, WriteNothingPastTheRow) {
  for (const auto& [name, call] : calls()) {
    for (int64_t n = 1; n <= 20; n++) {
      Row row(n + 16, 7);
      const Row before = row;
      call(row_kernels(), row, n);
      for (int64_t i = n; i < n + 16; i++) {
        EXPECT_EQ(row.out[i], before.out[i]) << name << ", " << n;
        EXPECT_EQ(row.sum[i], before.sum[i]) << name << ", " << n;
        if (std::string_view(name) != "norm_backward") {
          EXPECT_EQ(row.out2[i], before.out2[i]) << name << ", " << n;
        }
      }
    }
  }
}

TEST(RowKernels, GeluAndItsDerivative) {
  const int64_t n = 200001;
  std::vector<float> x(n), one(n, 1.0f), g(n), again(n), d(n), sum(n, 0.0f);
  for (int64_t i = 0; i < n; i++)
    x[i] = -12.0f + 24.0f * static_cast<float>(i) / static_cast<float>(n - 1);
  row_kernels().activate[kGelu](g.data(), x.data(), n);
  row_kernels().activate_backward[kGelu](d.data(), again.data(), one.data(), x.data(), sum.data(),
                                         n);
  EXPECT_EQ(g, again);
  double worst = 0, worst_relative = 0, worst_derivative = 0;
  for (int64_t i = 0; i < n; i++) {
    const double at = x[i], cdf = 0.5 * std::erfc(-at / std::sqrt(2.0));
    const double density = std::exp(-0.5 * at * at) / std::sqrt(2 * M_PI);
    const double error = std::abs(g[i] - at * cdf);
    worst = std::max(worst, error / std::max(1.0, std::abs(at)));
    // The square of a large x is rounded before the exponential.
    const double relative = error / std::abs(at * cdf + 1e-45) / std::max(1.0, at * at / 25);
    worst_relative = std::max(worst_relative, relative);
    worst_derivative = std::max(worst_derivative, std::abs(d[i] - (cdf + at * density)));
  }
  EXPECT_LT(worst, 1.5e-7);
  EXPECT_LT(worst_relative, 2e-6);
  EXPECT_LT(worst_derivative, 4e-7);
}

TEST(RowKernels, ActivationsFarOutAreTheirLimit) {
  constexpr float kMost = std::numeric_limits<float>::max();
  const std::vector<float> x = {-kMost, -1e36f, -1e5f, -120, 120, 1e5f, 1e36f, kMost};
  const auto n = static_cast<int64_t>(x.size());
  std::vector<float> one(x.size(), 1.0f), g(x.size()), d(x.size()), sum(x.size(), 0.0f);
  for (size_t kind = 0; kind < kActivations; kind++) {
    row_kernels().activate_backward[kind](d.data(), g.data(), one.data(), x.data(), sum.data(), n);
    for (size_t i = 0; i < x.size(); i++) {
      EXPECT_NEAR(g[i], std::max(x[i], 0.0f), 5e-8) << x[i] << ", " << kind;
      EXPECT_NEAR(d[i], x[i] > 0 ? 1.0f : 0.0f, 1e-6) << x[i] << ", " << kind;
    }
  }
}

TEST(RowKernels, SoftCapIsTanh) {
  const int64_t n = 200001;
  std::vector<float> x(n), capped(n);
  for (int64_t i = 0; i < n; i++)
    capped[i] = x[i] = -100.0f + 200.0f * static_cast<float>(i) / static_cast<float>(n - 1);
  row_kernels().soft_cap(capped.data(), 0.5f, 5.0f, n);
  for (int64_t i = 0; i < n; i++) {
    const double exact = 5 * std::tanh(static_cast<double>(x[i]) * 0.1);
    ASSERT_NEAR(capped[i], exact, 5e-7 * std::abs(exact)) << x[i];
  }
}

TEST(RowKernels, AnglesToTheLastBit) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<float> angle(-1048575.0f, 1048575.0f);
  const int64_t n = 100000;
  std::vector<float> x(n), cosine(n), sine(n);
  for (int64_t i = 0; i < n; i++)
    x[i] = i < 1000 ? static_cast<float>(static_cast<double>(i - 500) * M_PI / 4)
                    : std::ldexp(angle(random), -static_cast<int>(random() % 24));
  row_kernels().angles(cosine.data(), sine.data(), x.data(), 1.0f, n);
  for (int64_t i = 0; i < n; i++) {
    const double at = x[i];
    // Half a step of rounding, and what near a zero is left of the reduction.
    ASSERT_NEAR(cosine[i], std::cos(at), 6e-8 * std::abs(std::cos(at)) + 1e-10) << at;
    ASSERT_NEAR(sine[i], std::sin(at), 6e-8 * std::abs(std::sin(at)) + 1e-10) << at;
  }
}

TEST(RowKernels, SiluGateAndItsDerivative) {
  const int64_t n = 200001;
  std::vector<float> x(n), one(n, 1.0f), out(n), again(n), d_gate(n), d_up(n);
  for (int64_t i = 0; i < n; i++)
    x[i] = -100.0f + 200.0f * static_cast<float>(i) / static_cast<float>(n - 1);
  row_kernels().gate[kSilu](out.data(), x.data(), one.data(), n);
  row_kernels().gate_backward[kSilu](d_gate.data(), d_up.data(), again.data(), one.data(), x.data(),
                                     one.data(), n);
  EXPECT_EQ(out, again);
  EXPECT_EQ(out, d_up);
  for (int64_t i = 0; i < n; i++) {
    const double at = x[i], sigmoid = 1 / (1 + std::exp(-at));
    ASSERT_NEAR(out[i], at * sigmoid, 5e-7 * std::abs(at * sigmoid) + 1e-36) << at;
    ASSERT_NEAR(d_gate[i], sigmoid * (1 + at * (1 - sigmoid)), 1e-6) << at;
  }
}

TEST(RowKernels, SoftmaxOfExtremes) {
  const float largest = 3e38f;
  std::vector<float> s = {largest, -largest, 0, largest}, p(4), dropped(4);
  row_kernels().softmax(p.data(), dropped.data(), s.data(), 1.0f, nullptr, 1.0f, 4);
  EXPECT_FLOAT_EQ(p[0], 0.5f);
  EXPECT_NEAR(p[1], 0, 1e-30);
  EXPECT_FLOAT_EQ(p[3], 0.5f);
  s = {0, NAN, 1, 2};
  row_kernels().softmax(p.data(), dropped.data(), s.data(), 1.0f, nullptr, 1.0f, 4);
  for (const float x : p)
    EXPECT_TRUE(std::isnan(x));
}

TEST(RowKernels, NanAndInfinityPass) {
  std::vector<float> x = {NAN, INFINITY, 3.0f}, g(3);
  row_kernels().activate[kGelu](g.data(), x.data(), 3);
  EXPECT_TRUE(std::isnan(g[0]));
  EXPECT_EQ(g[1], INFINITY);
}

}  // namespace
}  // namespace ferry::ops
