// Lion and SGD: the same bits at every level, size, offset and chunking; the stated order; the
// meaning of the paper and of torch. AdamW has adamw_test.cpp.

#include <gtest/gtest.h>

#include <cmath>

#include "simd/random.h"
#include "simd/update/rules.h"
#include "tests/simd/support.h"
#include "tests/simd/update_problem.h"

namespace ferry::simd {
namespace {

constexpr Optim kOthers[] = {Optim::lion, Optim::sgd, Optim::sgd_momentum};

std::vector<UpdateKind> kinds() {
  std::vector<UpdateKind> all;
  for (const Optim optim : kOthers)
    for (const DType grad : kFloatTypes) {
      all.push_back({grad, DType::bf16, true, optim, /*split=*/true});
      all.push_back({grad, DType::f32, false, optim, false});
      for (const DType weights : kFloatTypes)
        all.push_back({grad, weights, true, optim, false});
    }
  return all;
}

class OptimLevels : public VectorLevel {};
FERRY_PER_LEVEL(OptimLevels);

TEST_P(OptimLevels, EqualsScalarAtEverySizeAndOffset) {
  uint64_t seed = 100;
  for (const int64_t n : test_sizes()) {
    for (const UpdateKind& kind : kinds()) {
      seed += 10;
      const uint64_t drawn = splitmix64(seed);
      const Values values = (drawn & 1) == 0 ? Values::plain : Values::hostile;
      UpdateProblem scalar(kind, n, seed);
      scalar.fill(values, seed);
      UpdateProblem vector(kind, n, seed + 5, (drawn & 2) == 0);
      vector.copy_from(scalar);
      const UpdateStep step = scalar.usual_step(3 + (drawn >> 2) % 2);
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

TEST_P(OptimLevels, ChunksAndThreadsChangeNothing) {
  const int64_t n = 50'021;
  for (const UpdateKind& kind : kinds()) {
    UpdateProblem whole(kind, n, 1);
    whole.fill(Values::hostile, 2);
    UpdateProblem parts(kind, n, 77);
    parts.copy_from(whole);
    const UpdateStep step = whole.usual_step(3);
    const UseLevel use(GetParam());
    whole.run(step);
    spread(3, n, [&](int64_t begin, int64_t end) { parts.run(step, begin, end); });
    parts.expect_same(whole, text_of(kind, n));
  }
}

class OptimEveryLevel : public VectorLevel {};
INSTANTIATE_TEST_SUITE_P(,
                         OptimEveryLevel,
                         ::testing::Values(Level::scalar, Level::avx2, Level::avx512),
                         level_test_name);

// The orders that lion.h and sgd.h state, written out again with nothing of simd/ in it.
TEST_P(OptimEveryLevel, FollowsTheStatedOrder) {
  const UseLevel use(GetParam());
  const int64_t n = 20'000;
  const UpdateHyper hyper = {.lr = 3e-2, .beta1 = 0.8, .beta2 = 0.99, .weight_decay = 0.3};
  const float multiplier = 0.77f;
  for (const bool nesterov : {false, true})
    for (const Optim optim : kOthers) {
      UpdateHyper its = hyper;
      its.momentum = 0.9, its.nesterov = nesterov;
      UpdateProblem problem({DType::f32, DType::f32, true, optim, false}, n, 9);
      problem.fill(Values::plain, 10);
      problem.grad.f32()[0] = problem.master.f32()[0] = 0;
      if (optim != Optim::sgd) problem.m.f32()[0] = 0;
      UpdateProblem before(problem.kind, n, 9);
      before.copy_from(problem);
      problem.run(make_step(optim, its, 7, multiplier));
      const auto lr = static_cast<float>(its.lr), decay = static_cast<float>(its.lr * 0.3);
      const auto mu = static_cast<float>(its.momentum);
      for (int64_t i = 0; i < n; ++i) {
        float g = before.grad.f32()[i] * multiplier, p = before.master.f32()[i], state = 0;
        if (optim == Optim::lion) {
          const float d = g - before.m.f32()[i];
          const float c = std::fma(static_cast<float>(1.0 - its.beta1), d, before.m.f32()[i]);
          const float sign = c > 0 ? 1.0f : c < 0 ? -1.0f : c, decayed = decay * p;
          p = p - std::fma(lr, sign, decayed);
          state = std::fma(static_cast<float>(1.0 - its.beta2), d, before.m.f32()[i]);
        } else {
          g = std::fma(static_cast<float>(its.weight_decay), p, g);
          float d = g;
          if (optim == Optim::sgd_momentum) {
            state = std::fma(mu, before.m.f32()[i], g);
            const float of_g = nesterov ? g : 0.0f;
            d = std::fma(nesterov ? mu : 1.0f, state, of_g);
          }
          p = std::fma(-lr, d, p);
        }
        ASSERT_EQ(as_bits(problem.master.f32()[i]), as_bits(p)) << text_of(problem.kind, i);
        ASSERT_EQ(as_bits(problem.weights.f32()[i]), as_bits(p)) << text_of(problem.kind, i);
        if (optim == Optim::sgd) continue;
        ASSERT_EQ(as_bits(problem.m.f32()[i]), as_bits(state)) << text_of(problem.kind, i);
      }
    }
}

// Three steps of five parameters in float64: of torch 2.11's torch.optim.SGD, and of Lion as its
// paper writes it. lr 1e-2, weight decay 0.1.
TEST_P(OptimEveryLevel, MeansWhatOthersMean) {
  struct Case {
    Optim optim;
    double momentum;
    bool nesterov;
    double p[5];
    double state[5];
  };
  const Case cases[] = {
      {Optim::sgd,
       0,
       false,
       {0.5010039985, -1.2497547467499999, 2.991008987, 0.0077890859286875, -19.96501001},
       {}},
      {Optim::sgd_momentum,
       0.9,
       false,
       {0.4975416985, -1.24577809675, 2.9831843869999997, 0.0077688011661875, -19.95509201},
       {-0.13901984999999997, 0.019984674999999938, 0.8118613000000001, 0.00211513963125,
        -3.389799000000001}},
      {Optim::sgd_momentum,
       0.9,
       true,
       {0.4988005467115, -1.24596787870825, 2.975894684423, 0.007749809861305063, -19.92459538859},
       {-0.1393524585, 0.020352826749999955, 0.8111060830000001, 0.0021131911813125,
        -3.3887163900000004}},
      {Optim::lion,
       0,
       false,
       {0.4885314895, -1.25626373875, 2.9810089969999995, -0.002200924070312499,
        -19.950049989999997},
       {-0.0025249, 0.0035098000000000004, 1e-08, 9.999999999979575e-11, 0.024502999999999997}}};
  const float grads[3][5] = {{0.1f, -0.2f, 0.0f, 1e-4f, 3.0f},
                             {0.05f, 0.3f, 0.0f, -2e-4f, -1.0f},
                             {-0.4f, 0.25f, 1e-6f, 1e-4f, 0.5f}};
  const UseLevel use(GetParam());
  for (const Case& its : cases) {
    float p[] = {0.5f, -1.25f, 3.0f, 0.0078125f, -20.0f}, state[5] = {};
    for (int t = 0; t < 3; ++t)
      update({.master = p,
              .states = {{state}},
              .grad = grads[t],
              .grad_type = DType::f32,
              .weights = nullptr,
              .weights_type = DType::f32,
              .n = 5,
              .step = make_step(its.optim,
                                {.lr = 1e-2,
                                 .beta1 = 0.9,
                                 .beta2 = 0.99,
                                 .weight_decay = 0.1,
                                 .momentum = its.momentum,
                                 .nesterov = its.nesterov},
                                t + 1, 1.0f),
              .optim = its.optim});
    for (int i = 0; i < 5; ++i) {
      EXPECT_NEAR(p[i], its.p[i], 3e-7 * (0.01 + std::abs(its.p[i])))
          << spec_of(its.optim).name << " " << i;
      // A state may cancel, so against what went in.
      EXPECT_NEAR(state[i], its.state[i], 2e-7 * (1e-4 + std::abs(p[i])))
          << spec_of(its.optim).name << " " << i;
    }
  }
}

TEST_P(OptimEveryLevel, NanHasOnePattern) {
  const UseLevel use(GetParam());
  for (const Optim optim : kOthers)
    for (const uint32_t nan : {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xff923456u}) {
      UpdateProblem problem({DType::f32, DType::f32, false, optim, false}, 80, 3);
      problem.fill(Values::plain, 4);
      for (const int64_t i : {3, 70})
        problem.grad.f32()[i] = as_float(nan);
      problem.run(problem.usual_step(3));
      for (int64_t i = 0; i < 80; ++i) {
        const bool is_nan = i == 3 || i == 70;
        EXPECT_EQ(as_bits(problem.master.f32()[i]) == 0x7fc00000u, is_nan) << i;
        if (optim == Optim::sgd) continue;
        EXPECT_EQ(as_bits(problem.m.f32()[i]) == 0x7fc00000u, is_nan) << i;
      }
    }
}

/** A step of a rehearsal: all is read and written, and nothing changes. */
TEST(NeutralStep, ChangesNoValueOfAnyOptimizer) {
  for (size_t o = 0; o < kOptims.size(); ++o) {
    UpdateProblem problem({DType::f32, DType::f32, false, static_cast<Optim>(o), false}, 1000, 5);
    problem.fill(Values::plain, 6);
    UpdateProblem before(problem.kind, 1000, 5);
    before.copy_from(problem);
    problem.run(neutral_step(problem.kind.optim));
    EXPECT_TRUE(same_bits(problem.master, before.master)) << kOptims[o].name;
    EXPECT_TRUE(same_bits(problem.m, before.m)) << kOptims[o].name;
    EXPECT_TRUE(same_bits(problem.v, before.v)) << kOptims[o].name;
  }
}

}  // namespace
}  // namespace ferry::simd
