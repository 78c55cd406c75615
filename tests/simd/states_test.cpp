// AdamW on reduced states and a split master: the same bits at every level, size, offset, chunking
// and thread count; what is stored is off by no more than stated, and not on average.

#include <gtest/gtest.h>

#include <cmath>

#include "simd/random.h"
#include "simd/update/rules.h"
#include "tests/simd/support.h"
#include "tests/simd/update_problem.h"

namespace ferry::simd {
namespace {

std::vector<UpdateKind> kinds() {
  std::vector<UpdateKind> all;
  for (const Optim optim : {Optim::adamw, Optim::adamw_bf16, Optim::adamw_8bit})
    for (const DType grad : kFloatTypes) {
      all.push_back({grad, DType::bf16, true, optim, /*split=*/true});
      if (optim == Optim::adamw) continue;  // adamw_test.cpp
      all.push_back({grad, DType::f32, false, optim, false});
      for (const DType weights : kFloatTypes)
        all.push_back({grad, weights, true, optim, false});
    }
  return all;
}

UpdateStep usual_step(int64_t t = 3) {
  return make_step(Optim::adamw, {.lr = 1e-3, .weight_decay = 0.01}, t, 1.0f);
}

class ReducedLevels : public VectorLevel {};
FERRY_PER_LEVEL(ReducedLevels);

TEST_P(ReducedLevels, EqualsScalarAtEverySizeAndOffset) {
  uint64_t seed = 100;
  for (const int64_t n : test_sizes()) {
    for (const UpdateKind& kind : kinds()) {
      seed += 10;
      const uint64_t drawn = splitmix64(seed);
      const Values values = (drawn & 1) == 0 ? Values::plain : Values::hostile;
      UpdateProblem scalar(kind, n, seed);
      scalar.draw_place();
      scalar.fill(values, seed);
      UpdateProblem vector(kind, n, seed + 5, (drawn & 2) == 0);
      vector.copy_from(scalar);
      {
        const UseLevel use(Level::scalar);
        scalar.run(usual_step());
      }
      const UseLevel use(GetParam());
      vector.run(usual_step());
      vector.expect_same(scalar, text_of(kind, n));
      if (HasFailure()) return;
    }
  }
}

TEST_P(ReducedLevels, ChunksAndThreadsChangeNothing) {
  const int64_t n = 50'021;
  for (const UpdateKind& kind : kinds()) {
    // Pieces of block8 states begin where a block does.
    const int64_t unit = spec_of(kind.optim).unit;
    const auto cut = [&](int64_t at) { return at == n ? n : at / unit * unit; };
    UpdateProblem whole(kind, n, 1);
    whole.draw_place();
    whole.fill(Values::hostile, 2);
    UpdateProblem before(kind, n, 1);
    before.copy_from(whole);
    const UseLevel use(GetParam());
    whole.run(usual_step());
    for (const int n_threads : {1, 2, 7}) {
      UpdateProblem parts(kind, n, 77);
      parts.copy_from(before);
      spread(n_threads, n,
             [&](int64_t begin, int64_t end) { parts.run(usual_step(), cut(begin), cut(end)); });
      parts.expect_same(whole, text_of(kind, n) + ", threads " + std::to_string(n_threads));
    }
    UpdateProblem pieces(kind, n, 78);
    pieces.copy_from(before);
    std::mt19937 random(5);
    for (int64_t begin = 0; begin < n;) {
      const int64_t end = std::min<int64_t>(n, begin + unit + cut(random() % 700));
      pieces.run(usual_step(), begin, end);
      begin = end;
    }
    pieces.expect_same(whole, text_of(kind, n) + ", random pieces");
  }
}

class ReducedEveryLevel : public VectorLevel {};
INSTANTIATE_TEST_SUITE_P(,
                         ReducedEveryLevel,
                         ::testing::Values(Level::scalar, Level::avx2, Level::avx512),
                         level_test_name);

/** One element's fp32 step in the order that adamw.h states. */
struct Stepped {
  float p, m, v, root;
};
Stepped stepped(float p, float m, float v, float g, const UpdateStep& s) {
  g *= s.grad_multiplier;
  m = std::fma(s.scalars[Adamw::one_minus_beta1], g - m, m);
  const float weighted = s.scalars[Adamw::one_minus_beta2] * g, faded = s.scalars[Adamw::beta2] * v;
  v = std::fma(weighted, g, faded);
  const float root = std::sqrt(v),
              d = std::fma(root, s.scalars[Adamw::correction2], s.scalars[Adamw::eps]),
              decayed = s.scalars[Adamw::decay] * p;
  return {p - std::fma(s.scalars[Adamw::step_size], m / d, decayed), m, v, root};
}

/** Factors of gradients: usual ones, and such that m is near and below the least normal number. */
constexpr float kGradientScales[] = {1.0f, 1e-35f, 1e-37f, 1e-39f};

/** The values of block8 codes as adamw.h describes them. */
double value_of_m(uint8_t code, uint8_t exponent) {
  if ((code & 127) == 0) return 0.0;
  const double size = std::ldexp(1.0 + (code % 8) / 8.0, exponent - 127 - 15 + code % 128 / 8);
  return code < 128 ? size : -size;
}
double value_of_root(uint8_t code, uint8_t exponent) {
  return exponent == 0 ? 0.0
                       : std::ldexp(1.0 + (code % 16) / 16.0, exponent - 127 - 15 + code / 16);
}

// Every step from the states that were stored, whose errors are those of one rounding.
TEST_P(ReducedEveryLevel, Bf16StatesAreOffByLessThanTheStatedBound) {
  const UseLevel use(GetParam());
  const int64_t n = 3'000;
  for (const float scale : kGradientScales) {
    UpdateProblem problem({DType::f32, DType::f32, false, Optim::adamw_bf16, false}, n, 1);
    problem.fill(Values::plain, 2);
    problem.clear_states();
    for (int64_t t = 1; t <= 30; ++t) {
      problem.set_gradient(static_cast<uint64_t>(t));
      for (int64_t i = 0; i < n; ++i)
        problem.grad.f32()[i] *= scale;
      UpdateProblem before(problem.kind, n, 1);
      before.copy_from(problem);
      const UpdateStep step = usual_step(t);
      problem.run(step);
      for (int64_t i = 0; i < n; ++i) {
        const auto bf16 = [&](Buffer& buffer) {
          return as_float(static_cast<uint32_t>(buffer.u16()[i]) << 16);
        };
        const Stepped now = stepped(before.master.f32()[i], bf16(before.m), bf16(before.v),
                                    before.grad.f32()[i], step);
        ASSERT_EQ(as_bits(problem.master.f32()[i]), as_bits(now.p)) << t;
        const auto bound = [](float x) { return std::max(0x1p-7f * std::abs(x), 0x1p-133f); };
        ASSERT_LT(std::abs(bf16(problem.m) - now.m), bound(now.m)) << t << ", scale " << scale;
        ASSERT_LT(std::abs(bf16(problem.v) - now.v), bound(now.v)) << t << ", scale " << scale;
      }
    }
  }
}

TEST_P(ReducedEveryLevel, BlocksOfZerosStayZero) {
  const UseLevel use(GetParam());
  const int64_t n = 2 * kStateBlock + 9;
  UpdateProblem problem({DType::f32, DType::f32, false, Optim::adamw_8bit, false}, n, 1);
  problem.fill(Values::plain, 2);
  problem.clear_states();
  std::fill_n(problem.grad.f32(), n, 0.0f);
  problem.grad.f32()[kStateBlock] = 1.0f;
  for (int64_t t = 1; t <= 3; ++t)
    problem.run(usual_step(t));
  for (int64_t i = 0; i < n; ++i) {
    const bool beside = i / kStateBlock == 1;
    ASSERT_EQ(problem.stored_m(i) != 0, i == kStateBlock) << i;
    ASSERT_EQ(problem.stored_v(i) != 0, beside) << i;
    ASSERT_LE(problem.stored_v(i), (i == kStateBlock ? 1 : 0x1p-14) * problem.stored_v(kStateBlock))
        << i;
  }
}

TEST_P(ReducedEveryLevel, Block8StatesAreOffByLessThanTheStatedBound) {
  const UseLevel use(GetParam());
  const int64_t n = 3'000;
  int64_t n_at_the_end = 0;
  for (const float scale : kGradientScales) {
    SCOPED_TRACE(scale);
    UpdateProblem problem({DType::f32, DType::f32, false, Optim::adamw_8bit, false}, n, 1);
    problem.fill(Values::plain, 2);
    problem.clear_states();
    for (int64_t t = 1; t <= 30; ++t) {
      problem.set_gradient(static_cast<uint64_t>(t));
      // Gradients from 1e-8 to 1e0, so that some leave the range of their block.
      for (int64_t i = 0; i < n; ++i)
        problem.grad.f32()[i] *= scale * static_cast<float>(std::pow(10.0, -(i % 9)));
      UpdateProblem before(problem.kind, n, 1);
      before.copy_from(problem);
      const UpdateStep step = usual_step(t);
      problem.run(step);
      std::vector<Stepped> now;
      std::vector<double> largest_m(static_cast<size_t>(state_blocks(n))), largest_root(largest_m);
      for (int64_t i = 0; i < n; ++i) {
        const int64_t block = i / kStateBlock;
        const auto root =
            static_cast<float>(value_of_root(before.v.u8()[i], before.v_exponents.u8()[block]));
        const auto m =
            static_cast<float>(value_of_m(before.m.u8()[i], before.m_exponents.u8()[block]));
        now.push_back(stepped(before.master.f32()[i], m, root * root, before.grad.f32()[i], step));
        double& of_m = largest_m[static_cast<size_t>(block)];
        of_m = std::max<double>(of_m, std::abs(now.back().m));
        double& of_root = largest_root[static_cast<size_t>(block)];
        of_root = std::max<double>(of_root, now.back().root);
      }
      for (int64_t i = 0; i < n; ++i) {
        const int64_t block = i / kStateBlock;
        const Stepped& exact = now[static_cast<size_t>(i)];
        const double m = value_of_m(problem.m.u8()[i], problem.m_exponents.u8()[block]);
        const double root = value_of_root(problem.v.u8()[i], problem.v_exponents.u8()[block]);
        ASSERT_EQ(as_bits(problem.master.f32()[i]), as_bits(exact.p)) << t;
        const double end_m =
            std::max(0x1p-14 * largest_m[static_cast<size_t>(block)], 1.125 * 0x1p-126);
        const double end_root = 0x1p-14 * largest_root[static_cast<size_t>(block)];
        if (std::abs(exact.m) >= end_m || m != 0) {
          ASSERT_LT(std::abs(m - exact.m), 0x1p-3 * std::abs(exact.m)) << t << ", element " << i;
        }
        if (exact.root > 0 && exact.root >= end_root) {
          ASSERT_LT(std::abs(root - exact.root), 0x1p-4 * exact.root) << t << ", element " << i;
        } else {
          n_at_the_end += exact.root > 0;
          ASSERT_LE(root, std::max(end_root, exact.root * (1 + 0x1p-4))) << t;
          ASSERT_GE(root, exact.root * (1 - 0x1p-4)) << t;
        }
        if (exact.root > 0) {
          ASSERT_LE(std::abs(m) / root, 1.2 * std::abs(exact.m) / exact.root) << t;
        }
      }
    }
  }
  EXPECT_GT(n_at_the_end, 1'000) << "the test must meet the end of the range";
}

/** The stored m and r (block8) or v that a step makes of the same states, on average over `n_keys`
 * random keys. */
struct Means {
  std::vector<double> m, v;
};
Means means_over_keys(const UpdateProblem& before, int n_keys) {
  const int64_t n = before.master.n();
  Means means{std::vector<double>(static_cast<size_t>(n)),
              std::vector<double>(static_cast<size_t>(n))};
  std::mt19937 random(3);
  for (int k = 0; k < n_keys; ++k) {
    UpdateProblem problem(before.kind, n, 1);
    problem.copy_from(before);
    problem.noise_key = random();
    problem.run(usual_step());
    for (int64_t i = 0; i < n; ++i) {
      means.m[static_cast<size_t>(i)] += problem.stored_m(i) / n_keys;
      means.v[static_cast<size_t>(i)] += problem.stored_v(i) / n_keys;
    }
  }
  return means;
}

TEST_P(ReducedEveryLevel, RoundingIsExactOnAverage) {
  const UseLevel use(GetParam());
  constexpr int kKeys = 4'000;
  const int64_t n = 300;
  for (const Optim optim : {Optim::adamw_bf16, Optim::adamw_8bit}) {
    UpdateProblem before({DType::f32, DType::f32, false, optim, false}, n, 1);
    before.fill(Values::plain, 4);
    const Means means = means_over_keys(before, kKeys);
    const UpdateStep step = usual_step();
    double sum_m = 0, sum_v = 0;
    for (int64_t i = 0; i < n; ++i) {
      const double old_v = before.stored_v(i);
      const bool is_root = optim == Optim::adamw_8bit;
      const Stepped exact =
          stepped(before.master.f32()[i], static_cast<float>(before.stored_m(i)),
                  static_cast<float>(is_root ? old_v * old_v : old_v), before.grad.f32()[i], step);
      const double v = is_root ? exact.root : exact.v;
      // A rounding of step h has at most h/2 of deviation; six of the mean's are allowed.
      const double allowed = 6 * 0.5 / std::sqrt(kKeys);
      const double step_m = optim == Optim::adamw_bf16 ? 0x1p-7 : 0x1p-3;
      const double step_v = optim == Optim::adamw_bf16 ? 0x1p-7 : 0x1p-4;
      const double off_m = means.m[static_cast<size_t>(i)] / exact.m - 1;
      const double off_v = means.v[static_cast<size_t>(i)] / v - 1;
      ASSERT_LT(std::abs(off_m), allowed * step_m) << i;
      ASSERT_LT(std::abs(off_v), allowed * step_v) << i;
      sum_m += off_m / step_m, sum_v += off_v / step_v;
    }
    EXPECT_LT(std::abs(sum_m / n), 6 * 0.5 / std::sqrt(kKeys * n));
    EXPECT_LT(std::abs(sum_v / n), 6 * 0.5 / std::sqrt(kKeys * n));
  }
}

// Rounding to nearest would get this wrong: v would stay where it is.
TEST_P(ReducedEveryLevel, VFadesAtItsRate) {
  const UseLevel use(GetParam());
  constexpr double kFade = 0.999;
  const int64_t n = 4'096 * kNoiseBlocks, n_steps = 2'000;
  for (const Optim optim : {Optim::adamw_bf16, Optim::adamw_8bit}) {
    UpdateProblem problem({DType::f32, DType::f32, false, optim, false}, n, 1);
    problem.fill(Values::plain, 4);
    const auto sum_of_v = [&] {
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) {
        const double v = problem.stored_v(i);
        sum += optim == Optim::adamw_8bit ? v * v : v;
      }
      return sum;
    };
    const double before = sum_of_v();
    std::fill_n(problem.grad.f32(), n, 0.0f);
    std::mt19937 random(9);
    for (int64_t t = 1; t <= n_steps; ++t) {
      problem.noise_key = random();
      problem.run(usual_step(t));
    }
    // In block8 r is exact on average, so that its square is too large by the variance of r. A step
    // takes (1 - 0.999) / 2 of r: with codes h apart it takes all of h with the probability of that
    // over h / r, which has a variance of that times h / r, and h / r is 1/16 to 1/32, by its
    // logarithm evenly, thus 1 / (32 ln 2) on average.
    const double spread = (1 - kFade) / 2 * n_steps / (32 * std::log(2.0));
    const double expected =
        std::pow(kFade, n_steps) * (optim == Optim::adamw_8bit ? std::exp(spread) : 1);
    EXPECT_NEAR(sum_of_v() / before, expected, 0.02 * expected) << static_cast<int>(optim);
  }
}

// Noisy gradients of sum (h (p - target))^2 / 2, h from 1e-2 to 1e2 inside each block: what block8
// states have room for.
TEST_P(ReducedEveryLevel, ReachesWhatFp32StatesReach) {
  const UseLevel use(GetParam());
  const int64_t n = 2'048, n_steps = 1'500;
  const auto distance_after_training = [&](Optim optim) {
    UpdateProblem problem({DType::f32, DType::f32, false, optim, false}, n, 1);
    problem.clear_states();
    std::vector<float> target(static_cast<size_t>(n)), h(target);
    std::mt19937 random(11);
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < n; ++i) {
      target[static_cast<size_t>(i)] = normal(random);
      h[static_cast<size_t>(i)] = std::pow(10.0f, static_cast<float>(random() % 401) / 100 - 2);
      problem.master.f32()[i] = 0;
    }
    for (int64_t t = 1; t <= n_steps; ++t) {
      for (int64_t i = 0; i < n; ++i)
        problem.grad.f32()[i] =
            h[static_cast<size_t>(i)] *
            (problem.master.f32()[i] - target[static_cast<size_t>(i)] + normal(random));
      problem.noise_key = random();
      const double left = 1.0 - static_cast<double>(t) / n_steps;
      problem.run(make_step(Optim::adamw, {.lr = 1e-2 * left}, t, 1.0f));
    }
    double sum = 0;
    for (int64_t i = 0; i < n; ++i)
      sum += std::pow(problem.master.f32()[i] - target[static_cast<size_t>(i)], 2);
    return std::sqrt(sum / static_cast<double>(n));
  };
  const double fp32 = distance_after_training(Optim::adamw);
  ASSERT_LT(fp32, 0.2) << "the reference must have learnt something";
  EXPECT_NEAR(distance_after_training(Optim::adamw_bf16), fp32, 0.005 * fp32);
  EXPECT_NEAR(distance_after_training(Optim::adamw_8bit), fp32, 0.02 * fp32);
}

// The split changes where the master's bits lie, nothing else.
TEST_P(ReducedEveryLevel, SplitMasterHasTheBitsOfTheWhole) {
  const UseLevel use(GetParam());
  const int64_t n = 40'001;
  for (const Optim optim : {Optim::adamw, Optim::adamw_bf16, Optim::adamw_8bit}) {
    UpdateProblem split({DType::bf16, DType::bf16, true, optim, true}, n, 1);
    UpdateProblem whole({DType::bf16, DType::bf16, true, optim, false}, n, 2);
    whole.fill(Values::hostile, 3);
    for (int64_t i = 0; i < n; ++i) {
      float& p = whole.master.f32()[i];
      if (std::isnan(p)) p = as_float(0x7fc00000u);
      const uint32_t bits = as_bits(p);
      const uint32_t high = (bits + 0x8000u) >> 16;
      split.weights.u16()[i] = static_cast<uint16_t>(high);
      split.master.u16()[i] = static_cast<uint16_t>(bits - (high << 16));
    }
    for (auto [to, from] : {std::pair{&split.m, &whole.m},
                            {&split.v, &whole.v},
                            {&split.grad, &whole.grad},
                            {&split.m_exponents, &whole.m_exponents},
                            {&split.v_exponents, &whole.v_exponents}})
      to->copy_from(*from);
    whole.run(usual_step());
    split.run(usual_step());
    EXPECT_TRUE(same_bits(split.m, whole.m));
    EXPECT_TRUE(same_bits(split.v, whole.v));
    for (int64_t i = 0; i < n; ++i) {
      const uint32_t bits = as_bits(whole.master.f32()[i]);
      const uint32_t joined =
          (static_cast<uint32_t>(split.weights.u16()[i]) << 16) +
          static_cast<uint32_t>(static_cast<int32_t>(static_cast<int16_t>(split.master.u16()[i])));
      ASSERT_EQ(joined, bits) << i;
      const uint32_t up = bits & 0x7fffffffu;  // ties away from zero: in magnitude
      ASSERT_EQ(split.weights.u16()[i],
                static_cast<uint16_t>((bits & 0x80000000u) >> 16 | (up + 0x8000u) >> 16))
          << i;
    }
  }
}

TEST_P(ReducedEveryLevel, NanAndInfinityStayInTheirBlock) {
  const UseLevel use(GetParam());
  const int64_t n = 3 * kStateBlock;
  for (const uint32_t bits : {0x7fc00000u, 0xff923456u, 0x7f800000u}) {
    UpdateProblem problem({DType::f32, DType::f32, false, Optim::adamw_8bit, false}, n, 1);
    problem.fill(Values::plain, 4);
    problem.grad.f32()[kStateBlock + 7] = as_float(bits);
    problem.run(usual_step());
    EXPECT_EQ(as_bits(problem.master.f32()[kStateBlock + 7]), 0x7fc00000u);
    EXPECT_FALSE(std::isfinite(problem.stored_m(kStateBlock + 7)));
    for (int64_t i = 0; i < n; ++i) {
      if (i == kStateBlock + 7) continue;
      ASSERT_TRUE(std::isfinite(problem.master.f32()[i])) << i;
      const bool beside = i / kStateBlock == 1;
      ASSERT_EQ(problem.stored_m(i) == 0, beside) << i;
      ASSERT_EQ(problem.stored_v(i) > 1, beside) << i;
    }
  }
}

/** All elements alike, so that their new states differ by the noise alone. */
class AlikeElements {
 public:
  AlikeElements(Optim optim, int64_t n)
      : before_({DType::f32, DType::f32, false, optim, false}, n, 1) {
    before_.fill(Values::plain, 4);
    for (int64_t i = 0; i < n; ++i)
      for (Buffer* each : {&before_.master, &before_.grad})
        each->f32()[i] = 0.7f;
  }
  UpdateProblem& before() { return before_; }
  std::unique_ptr<UpdateProblem> run(uint32_t key, int64_t first_element = 0) const {
    auto problem = std::make_unique<UpdateProblem>(before_.kind, before_.master.n(), 1);
    problem->copy_from(before_);
    problem->noise_key = key;
    problem->first_element = first_element;
    problem->run(usual_step());
    return problem;
  }

 private:
  UpdateProblem before_;
};

// Keys and elements: what either changes is drawn anew, what neither changes is not.
TEST_P(ReducedEveryLevel, NoiseIsKeyedByStepAndElement) {
  const UseLevel use(GetParam());
  const int64_t n = 512;
  AlikeElements alike(Optim::adamw_bf16, n);
  std::fill_n(alike.before().m.u16(), n, uint16_t{0x3f40});
  std::fill_n(alike.before().v.u16(), n, uint16_t{0x3f40});
  const auto reference = alike.run(5);
  EXPECT_TRUE(same_bits(reference->m, alike.run(5)->m));
  EXPECT_FALSE(same_bits(reference->m, alike.run(6)->m));
  const auto later = alike.run(5, 256);
  EXPECT_EQ(std::memcmp(later->v.u16(), reference->v.u16() + 256, 512), 0);
  EXPECT_NE(std::memcmp(reference->v.u16(), reference->v.u16() + 256, 512), 0);
}

// Block8: of 16 blocks in a row the first one's noise, and other noise for the next 16.
TEST_P(ReducedEveryLevel, BlocksShareNoiseBySixteen) {
  const UseLevel use(GetParam());
  const int64_t n = kNoiseElements + kStateBlock;
  AlikeElements alike(Optim::adamw_8bit, n);
  alike.before().clear_states();
  const auto reference = alike.run(5), other_key = alike.run(6);
  for (const auto codes : {&UpdateProblem::m, &UpdateProblem::v}) {
    const auto block = [&](UpdateProblem& problem, int64_t k) {
      const uint8_t* first = (problem.*codes).u8() + k * kStateBlock;
      return std::vector<uint8_t>(first, first + kStateBlock);
    };
    for (int64_t k = 1; k < kNoiseBlocks; ++k)
      ASSERT_EQ(block(*reference, k), block(*reference, 0)) << k;
    EXPECT_NE(block(*reference, kNoiseBlocks), block(*reference, 0));
    EXPECT_NE(block(*other_key, 0), block(*reference, 0));
    // The tensor's elements count, not the arrays': one block further, the last two are of the
    // next 16.
    const auto later = alike.run(5, kStateBlock);
    EXPECT_EQ(block(*later, kNoiseBlocks - 2), block(*reference, 0));
    EXPECT_EQ(block(*later, kNoiseBlocks - 1), block(*reference, kNoiseBlocks));
  }
}

TEST(ReducedDeathTest, RefusesWhatItCannotDo) {
  uint8_t exponents[2] = {};
  float p[512] = {}, m[512] = {}, v[512] = {}, g[512] = {};
  UpdateArgs args{.master = p,
                  .states = {{m, exponents}, {v, exponents}},
                  .grad = g,
                  .grad_type = DType::f32,
                  .weights = nullptr,
                  .weights_type = DType::f32,
                  .n = 512,
                  .step = usual_step(),
                  .optim = Optim::adamw_8bit};
  EXPECT_DEATH(part_of(args, 100, 10), "cut at element 100");
  args.first_element = 12;
  EXPECT_DEATH(update(args), "from element 12, inside a block");
  args.first_element = 0;
  args.split_master = true;
  EXPECT_DEATH(update(args), "upper halves of a split master are bf16");
}

TEST(StateBytes, CountsValuesAndExponents) {
  EXPECT_EQ(state_bytes(StateType::fp32, 1000), 4000);
  EXPECT_EQ(state_bytes(StateType::bf16, 1000), 2000);
  EXPECT_EQ(state_bytes(StateType::block8, 1000), 1004);
  EXPECT_EQ(state_bytes(StateType::block8, 1024), 1028);
  EXPECT_EQ(state_value_bytes(StateType::block8, 1000), 1000);
  EXPECT_EQ(state_bytes(Optim::adamw, 1000), 8000);
  EXPECT_EQ(state_bytes(Optim::lion, 1000), 4000);
  EXPECT_EQ(state_bytes(Optim::sgd, 1000), 0);
}

}  // namespace
}  // namespace ferry::simd
