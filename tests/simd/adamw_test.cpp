// AdamW: the same bits at every level, size, offset, chunking and thread count; the stated order;
// torch's meaning.

#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <cmath>
#include <numeric>

#include "simd/random.h"
#include "simd/update/adamw.h"
#include "tests/simd/support.h"

namespace ferry::simd {
namespace {

/** One problem: the five arrays, each at its own offset, and the types in between. */
struct Problem {
  Problem(DType grad_type,
          DType weights_type,
          bool has_weights,
          int64_t n,
          uint64_t seed,
          bool aligned = false)
      : random(seed),
        master(DType::f32, n, aligned ? 0 : offset()),
        m(DType::f32, n, aligned ? 0 : offset()),
        v(DType::f32, n, aligned ? 0 : offset()),
        grad(grad_type, n, aligned ? 0 : offset()),
        weights(weights_type, has_weights ? n : 0, aligned ? 0 : offset()),
        has_weights(has_weights) {}

  int64_t offset() { return static_cast<int64_t>(random() % 33); }

  Problem& fill(Values values, uint64_t seed) {
    master.fill(values, seed);
    m.fill(values, seed + 1, 1e-3f);
    v.fill(values, seed + 2, 1e-3f);
    if (values == Values::plain)
      for (int64_t i = 0; i < v.n(); ++i)
        v.f32()[i] = std::abs(v.f32()[i]);
    grad.fill(values, seed + 3, 0.1f);
    return *this;
  }

  void copy_from(const Problem& other) {
    master.copy_from(other.master);
    m.copy_from(other.m);
    v.copy_from(other.v);
    grad.copy_from(other.grad);
  }

  void run(const UpdateStep& step, int64_t begin, int64_t end) {
    update({.master = master.f32() + begin,
            .states = {{m.f32() + begin}, {v.f32() + begin}},
            .grad = grad.at(begin),
            .grad_type = grad.type(),
            .weights = has_weights ? weights.at(begin) : nullptr,
            .weights_type = weights.type(),
            .n = end - begin,
            .step = step});
  }
  void run(const UpdateStep& step) { run(step, 0, master.n()); }

  void expect_same(const Problem& other, const std::string& what) const {
    EXPECT_TRUE(same_bits(master, other.master)) << what << ", master";
    EXPECT_TRUE(same_bits(m, other.m)) << what << ", m";
    EXPECT_TRUE(same_bits(v, other.v)) << what << ", v";
    EXPECT_TRUE(same_bits(grad, other.grad)) << what << ", grad";
    EXPECT_TRUE(same_bits(weights, other.weights)) << what << ", weights";
    for (const Buffer* buffer : {&master, &m, &v, &grad, &weights})
      buffer->expect_guards(what);
  }

  std::mt19937_64 random;
  Buffer master, m, v, grad, weights;
  bool has_weights;
};

struct Kind {
  DType grad;
  DType weights;
  bool has_weights;
};

std::vector<Kind> kinds() {
  std::vector<Kind> all;
  for (const DType grad : kFloatTypes) {
    all.push_back({grad, DType::f32, false});
    for (const DType weights : kFloatTypes)
      all.push_back({grad, weights, true});
  }
  return all;
}

std::string text_of(const Kind& kind, int64_t n) {
  return std::string(name_of(kind.grad)) + " -> " +
         std::string(kind.has_weights ? name_of(kind.weights) : "none") + ", n " +
         std::to_string(n);
}

UpdateStep usual_step(float grad_multiplier = 1.0f) {
  return make_step(Optim::adamw, {.lr = 1e-3, .weight_decay = 0.01}, 3, grad_multiplier);
}

class AdamwLevels : public VectorLevel {};
FERRY_PER_LEVEL(AdamwLevels);

TEST_P(AdamwLevels, EqualsScalarAtEverySizeAndOffset) {
  uint64_t seed = 100;
  for (const int64_t n : test_sizes()) {
    for (const Kind& kind : kinds()) {
      seed += 10;
      const uint64_t drawn = splitmix64(seed);
      const Values values = (drawn & 1) == 0 ? Values::plain : Values::hostile;
      Problem scalar(kind.grad, kind.weights, kind.has_weights, n, seed);
      scalar.fill(values, seed);
      Problem vector(kind.grad, kind.weights, kind.has_weights, n, seed + 5, (drawn & 2) == 0);
      vector.copy_from(scalar);
      const UpdateStep step = usual_step((drawn & 4) == 0 ? 1.0f : 0.37f / 1024.0f);
      {
        const UseLevel use(Level::scalar);
        scalar.run(step);
      }
      const UseLevel use(GetParam());
      vector.run(step);
      vector.expect_same(scalar, text_of(kind, n));
      if (HasFailure()) return;
    }
  }
}

TEST_P(AdamwLevels, ChunksAndThreadsChangeNothing) {
  const int64_t n = 50'021;
  for (const Kind& kind : kinds()) {
    Problem whole(kind.grad, kind.weights, kind.has_weights, n, 1);
    whole.fill(Values::hostile, 2);
    Problem before(kind.grad, kind.weights, kind.has_weights, n, 1);
    before.copy_from(whole);
    const UseLevel use(GetParam());
    whole.run(usual_step());
    for (const int n_threads : {1, 2, 7}) {
      Problem parts(kind.grad, kind.weights, kind.has_weights, n, 77);
      parts.copy_from(before);
      spread(n_threads, n,
             [&](int64_t begin, int64_t end) { parts.run(usual_step(), begin, end); });
      parts.expect_same(whole, text_of(kind, n) + ", threads " + std::to_string(n_threads));
    }
    Problem pieces(kind.grad, kind.weights, kind.has_weights, n, 78);
    pieces.copy_from(before);
    std::mt19937 random(5);
    for (int64_t begin = 0; begin < n;) {
      const int64_t end = std::min<int64_t>(n, begin + random() % 700);
      pieces.run(usual_step(), begin, end);
      begin = end;
    }
    pieces.expect_same(whole, text_of(kind, n) + ", random pieces");
  }
}

TEST_P(AdamwLevels, EqualsScalarOnHundredMillion) {
  if (!is_long()) GTEST_SKIP() << "1e8 elements: in the long suite (FERRY_LONG=1)";
  const int64_t n = 100'000'000;
  Problem scalar(DType::bf16, DType::bf16, true, n, 1, true),
      vector(DType::bf16, DType::bf16, true, n, 2, true);
  scalar.fill(Values::plain, 3);
  vector.copy_from(scalar);
  for (int64_t t = 1; t <= 2; ++t) {
    const UpdateStep step = make_step(Optim::adamw, {.lr = 1e-3, .weight_decay = 0.1}, t, 0.5f);
    {
      const UseLevel use(Level::scalar);
      spread(2, n, [&](int64_t begin, int64_t end) { scalar.run(step, begin, end); });
    }
    const UseLevel use(GetParam());
    spread(7, n, [&](int64_t begin, int64_t end) { vector.run(step, begin, end); });
  }
  vector.expect_same(scalar, "1e8");
}

class AdamwEveryLevel : public VectorLevel {};
INSTANTIATE_TEST_SUITE_P(,
                         AdamwEveryLevel,
                         ::testing::Values(Level::scalar, Level::avx2, Level::avx512),
                         level_test_name);

// The order that kernels.h states, written out again with nothing of simd/ in it.
TEST_P(AdamwEveryLevel, FollowsTheStatedOrder) {
  const UseLevel use(GetParam());
  const int64_t n = 20'000;
  const UpdateStep s = make_step(
      Optim::adamw, {.lr = 3e-2, .beta1 = 0.8, .beta2 = 0.99, .eps = 1e-6, .weight_decay = 0.3}, 7,
      0.77f);
  Problem problem(DType::f32, DType::f32, true, n, 9);
  problem.fill(Values::plain, 10);
  Problem before(DType::f32, DType::f32, true, n, 9);
  before.copy_from(problem);
  problem.run(s);
  for (int64_t i = 0; i < n; ++i) {
    const float g = before.grad.f32()[i] * s.grad_multiplier;
    const float m =
        std::fma(s.scalars[Adamw::one_minus_beta1], g - before.m.f32()[i], before.m.f32()[i]);
    const float weighted = s.scalars[Adamw::one_minus_beta2] * g,
                faded = s.scalars[Adamw::beta2] * before.v.f32()[i];
    const float v = std::fma(weighted, g, faded);
    const float d = std::fma(std::sqrt(v), s.scalars[Adamw::correction2], s.scalars[Adamw::eps]);
    const float decayed = s.scalars[Adamw::decay] * before.master.f32()[i];
    const float u = std::fma(s.scalars[Adamw::step_size], m / d, decayed);
    const float p = before.master.f32()[i] - u;
    ASSERT_EQ(as_bits(problem.m.f32()[i]), as_bits(m)) << i;
    ASSERT_EQ(as_bits(problem.v.f32()[i]), as_bits(v)) << i;
    ASSERT_EQ(as_bits(problem.master.f32()[i]), as_bits(p)) << i;
    ASSERT_EQ(as_bits(problem.weights.f32()[i]), as_bits(p)) << i;
  }
}

// Three steps of torch 2.11's torch.optim.AdamW in float64: lr 1e-2, weight decay 0.1, five
// parameters.
TEST_P(AdamwEveryLevel, MeansWhatTorchMeans) {
  const UseLevel use(GetParam());
  float p[] = {0.5f, -1.25f, 3.0f, 0.0078125f, -20.0f}, m[5] = {}, v[5] = {};
  const float grads[3][5] = {{0.1f, -0.2f, 0.0f, 1e-4f, 3.0f},
                             {0.05f, 0.3f, 0.0f, -2e-4f, -1.0f},
                             {-0.4f, 0.25f, 1e-6f, 1e-4f, 0.5f}};
  const double expected[3][5] = {
      {0.4895000009999999, -1.2387500005, 2.997, -0.0021943125999647458, -19.989999999966667},
      {0.479688705790187, -1.2399882686748858, 2.9940029999999997, 0.001468685488166836,
       -19.97401218566834},
      {0.48342363744498656, -1.2439630317208934, 2.98472956950404, 0.0014411261442396738,
       -19.958092427495732}};
  const double m_end[] = {-0.027400000408291807, 0.03580000083148479, 9.999999974752425e-08,
                          9.999999747378823e-08, 0.20299999999999999};
  const double v_end[] = {0.00017247751514023056, 0.00019233004833511504, 9.999999949504862e-16,
                          5.994000697157606e-11, 0.010231009000000008};
  const double largest[] = {0.4, 0.3, 1e-6, 2e-4, 3.0};
  for (int t = 0; t < 3; ++t) {
    update({.master = p,
            .states = {{m}, {v}},
            .grad = grads[t],
            .grad_type = DType::f32,
            .weights = nullptr,
            .weights_type = DType::f32,
            .n = 5,
            .step = make_step(Optim::adamw, {.lr = 1e-2, .weight_decay = 0.1}, t + 1, 1.0f)});
    for (int i = 0; i < 5; ++i)
      EXPECT_NEAR(p[i], expected[t][i], 2.5e-7 * (0.01 + std::abs(expected[t][i]))) << t;
  }
  for (int i = 0; i < 5; ++i) {
    EXPECT_NEAR(m[i], m_end[i], 1e-7 * largest[i]);  // m may cancel, so against what went in
    EXPECT_NEAR(v[i], v_end[i], 1e-6 * v_end[i]);
  }
}

// From the same fp32 state, one step in double: the fp32 step is off by a few roundings.
TEST_P(AdamwEveryLevel, StaysWithinRoundingsOfDouble) {
  const UseLevel use(GetParam());
  constexpr double kUlp = 0x1p-23;
  const int64_t n = 4096;
  const UpdateHyper hyper{.lr = 2e-5, .weight_decay = 0.01};
  Problem problem(DType::f32, DType::f32, false, n, 20);
  problem.fill(Values::plain, 21);
  std::fill_n(problem.m.f32(), n, 0.0f);
  std::fill_n(problem.v.f32(), n, 0.0f);
  for (int64_t t = 1; t <= 50; ++t) {
    problem.grad.fill(Values::plain, 1000 + static_cast<uint64_t>(t), 1e-2f);
    Problem before(DType::f32, DType::f32, false, n, 20);
    before.copy_from(problem);
    problem.run(make_step(Optim::adamw, hyper, t, 1.0f));
    const double c1 = 1.0 - std::pow(hyper.beta1, t), c2 = 1.0 - std::pow(hyper.beta2, t);
    for (int64_t i = 0; i < n; ++i) {
      const double g = before.grad.f32()[i], m0 = before.m.f32()[i], v0 = before.v.f32()[i],
                   p0 = before.master.f32()[i];
      const double m = hyper.beta1 * m0 + (1.0 - hyper.beta1) * g,
                   v = hyper.beta2 * v0 + (1.0 - hyper.beta2) * g * g;
      ASSERT_NEAR(problem.m.f32()[i], m, 2 * kUlp * std::max(std::abs(g), std::abs(m0))) << t;
      ASSERT_NEAR(problem.v.f32()[i], v, 2 * kUlp * v) << t;
      const double change =
          hyper.lr / c1 * problem.m.f32()[i] / (std::sqrt(problem.v.f32()[i] / c2) + hyper.eps);
      const double p = p0 * (1.0 - hyper.lr * hyper.weight_decay) - change;
      ASSERT_NEAR(problem.master.f32()[i], p,
                  0.51 * kUlp * std::abs(p) + 8 * kUlp * std::abs(change))
          << t;
    }
  }
}

TEST_P(AdamwEveryLevel, WeightsAreTheRoundedMaster) {
  const UseLevel use(GetParam());
  for (const DType type : kFloatTypes) {
    Problem problem(DType::bf16, type, true, 5000, 30);
    problem.fill(Values::hostile, 31).run(usual_step());
    Buffer rounded(type, 5000);
    convert(rounded.data(), type, problem.master.data(), DType::f32, 5000);
    EXPECT_TRUE(same_bits(problem.weights, rounded)) << name_of(type);
  }
  Problem one(DType::f32, DType::f32, false, 333, 32),
      other(DType::f32, DType::f32, false, 333, 32);
  one.fill(Values::plain, 33);
  other.copy_from(one);
  one.run(usual_step());
  update({.master = other.master.f32(),
          .states = {{other.m.f32()}, {other.v.f32()}},
          .grad = other.grad.data(),
          .grad_type = DType::f32,
          .weights = other.master.data(),
          .weights_type = DType::f32,
          .n = 333,
          .step = usual_step()});
  other.expect_same(one, "weights == master");
}

TEST_P(AdamwEveryLevel, IgnoresTheThreadsRoundingAndFlushing) {
  const UseLevel use(GetParam());
  Problem plain(DType::f16, DType::f16, true, 3000, 40),
      switched(DType::f16, DType::f16, true, 3000, 40);
  plain.fill(Values::hostile, 41);
  switched.copy_from(plain);
  plain.run(usual_step());
  const unsigned before = _mm_getcsr();
  const unsigned hostile =
      before | _MM_FLUSH_ZERO_ON | 0x40 /* denormals are zero */ | _MM_ROUND_UP;
  _mm_setcsr(hostile);
  switched.run(usual_step());
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  EXPECT_EQ(after & 0xffc0u, hostile & 0xffc0u) << "the thread's setting must come back";
  switched.expect_same(plain, "flush to zero, round up");
}

TEST_P(AdamwEveryLevel, NanHasOnePattern) {
  const UseLevel use(GetParam());
  for (const uint32_t nan : {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xff923456u}) {
    std::vector<float> p(40, 1.0f), m(40, 0.0f), v(40, 0.0f), g(40, 0.5f);
    g[3] = as_float(nan);
    g[35] = as_float(nan);
    update({.master = p.data(),
            .states = {{m.data()}, {v.data()}},
            .grad = g.data(),
            .grad_type = DType::f32,
            .weights = nullptr,
            .weights_type = DType::f32,
            .n = 40,
            .step = usual_step()});
    for (const size_t i : {size_t{3}, size_t{35}}) {
      EXPECT_EQ(as_bits(p[i]), 0x7fc00000u);
      EXPECT_EQ(as_bits(m[i]), 0x7fc00000u);
      EXPECT_EQ(as_bits(v[i]), 0x7fc00000u);
    }
    EXPECT_TRUE(std::isfinite(p[2]) && std::isfinite(p[34]));
  }
}

TEST(AdamwStep, BiasCorrectionsComeFromTheIntegerStep) {
  for (const int64_t t : {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{10}, int64_t{999},
                          int64_t{12345}, int64_t{1} << 40}) {
    const UpdateStep s = make_step(Optim::adamw, {.lr = 2e-5, .weight_decay = 0.01}, t, 0.25f);
    const double exponent = static_cast<double>(t);
    const double c1 = -std::expm1(exponent * std::log(0.9)),
                 c2 = -std::expm1(exponent * std::log(0.999));
    EXPECT_NEAR(s.scalars[Adamw::step_size], 2e-5 / c1, 1e-7 * 2e-5 / c1) << t;
    EXPECT_NEAR(s.scalars[Adamw::correction2], 1.0 / std::sqrt(c2), 1e-7 / std::sqrt(c2)) << t;
    EXPECT_EQ(s.grad_multiplier, 0.25f);
    EXPECT_FLOAT_EQ(s.scalars[Adamw::one_minus_beta1], 0.1f);
    EXPECT_FLOAT_EQ(s.scalars[Adamw::one_minus_beta2], 0.001f);
    EXPECT_FLOAT_EQ(s.scalars[Adamw::decay], 2e-7f);
  }
}

TEST(AdamwDeathTest, RefusesWhatItCannotDo) {
  EXPECT_DEATH(make_step(Optim::adamw, {}, 0, 1.0f), "steps from 1");
  UpdateArgs args{.grad_type = DType::i32};
  EXPECT_DEATH(update(args), "gradients are int32");
}

}  // namespace
}  // namespace ferry::simd
