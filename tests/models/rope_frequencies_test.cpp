// The frequencies of rotary positions against those that transformers 5.20 computes (fp32, its
// ROPE_INIT_FUNCTIONS), and the specifications that are refused.

#include "models/ops/rotary/rope_frequencies.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ferry {
namespace {

const std::vector<double> kShort = {1.0, 1.05, 1.1, 1.2, 1.3, 1.5, 1.8, 2.0};
const std::vector<double> kLong = {1.0, 1.2, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0};

struct Case {
  const char* name;
  RopeSpec spec;
  int64_t max_length;
  std::vector<float> frequencies;
  float factor;
};

std::vector<Case> cases() {
  const RopeSpec phi3 = {.scaling = RopeScaling::longrope,
                         .width = 16,
                         .max_positions = 131072,
                         .original_positions = 4096,
                         .short_factor = kShort,
                         .long_factor = kLong};
  return {
      {"linear",
       {.scaling = RopeScaling::linear, .width = 16, .factor = 4},
       100000,
       {0.25f, 0.079056941f, 0.0250000004f, 0.00790569466f, 0.00249999994f, 0.000790569466f,
        0.000250000012f, 7.90569466e-05f},
       1},
      {"dynamic",
       {.scaling = RopeScaling::dynamic, .width = 16, .factor = 4, .max_positions = 2048},
       2048,
       {1, 0.316227764f, 0.100000001f, 0.0316227786f, 0.00999999978f, 0.00316227786f,
        0.00100000005f, 0.000316227786f},
       1},
      {"llama3 of Llama 3.1",
       {.scaling = RopeScaling::llama3,
        .theta = 500000,
        .width = 16,
        .factor = 8,
        .original_positions = 8192},
       131072,
       {1, 0.193922758f, 0.0376060307f, 0.00729266508f, 0.000524846022f, 3.42810235e-05f,
        6.64786967e-06f, 1.28917316e-06f},
       1},
      {"llama3 of few original positions",
       {.scaling = RopeScaling::llama3,
        .theta = 500000,
        .width = 16,
        .factor = 32,
        .original_positions = 256},
       131072,
       {1, 0.193922758f, 0.00763810938f, 0.000227895784f, 4.41941702e-05f, 8.57025589e-06f,
        1.66196742e-06f, 3.22293289e-07f},
       1},
      {"yarn of Qwen",
       {.scaling = RopeScaling::yarn,
        .theta = 1000000,
        .width = 16,
        .max_positions = 131072,
        .original_positions = 32768},
       131072,
       {1, 0.177827939f, 0.0316227786f, 0.00421755994f, 0.000500000024f, 4.44569851e-05f,
        7.90569356e-06f, 1.40585337e-06f},
       1.13862944f},
      {"yarn with all settings",
       {.scaling = RopeScaling::yarn,
        .width = 16,
        .factor = 4,
        .original_positions = 4096,
        .beta_fast = 16,
        .beta_slow = 2,
        .mscale = 0.707,
        .mscale_all_dim = 1,
        .truncate = false},
       16384,
       {1, 0.316227764f, 0.100000001f, 0.0316227786f, 0.00676161889f, 0.000825104478f,
        0.000250000012f, 7.90569466e-05f},
       0.964326915f},
      {"yarn with a factor of attention",
       {.scaling = RopeScaling::yarn,
        .width = 16,
        .factor = 4,
        .original_positions = 4096,
        .attention_factor = 1.5},
       16384,
       {1, 0.316227764f, 0.100000001f, 0.025693506f, 0.00624999963f, 0.00138349656f,
        0.000250000012f, 7.90569466e-05f},
       1.5f},
      {"longrope of short sequences",
       phi3,
       4096,
       {1, 0.301169306f, 0.0909090936f, 0.0263523124f, 0.0076923077f, 0.00210818532f,
        0.000555555569f, 0.000158113893f},
       1.19023807f},
      {"longrope of long sequences",
       phi3,
       4097,
       {1, 0.263523132f, 0.0500000007f, 0.00790569466f, 0.00124999997f, 0.000197642366f,
        3.12500015e-05f, 4.94105916e-06f},
       1.19023807f},
      {"longrope of half a head, with a factor",
       {.scaling = RopeScaling::longrope,
        .width = 8,
        .factor = 8,
        .original_positions = 4096,
        .short_factor = {1.0, 1.05, 1.1, 1.2},
        .long_factor = {1.0, 1.2, 2.0, 4.0}},
       100,
       {1, 0.095238097f, 0.0090909088f, 0.000833333354f},
       1.11803399f},
  };
}

TEST(RopeFrequencies, AreThoseOfTransformers) {
  for (const Case& its : cases()) {
    SCOPED_TRACE(its.name);
    const RopeTable table = rope_table(its.spec);
    EXPECT_NEAR(table.factor, its.factor, 2e-7);
    const bool is_long = table.long_from > 0 && its.max_length > table.long_from;
    const std::vector<float>& found = is_long ? table.long_frequencies : table.frequencies;
    ASSERT_EQ(found.size(), its.frequencies.size());
    // Transformers takes its powers in fp32.
    for (size_t i = 0; i < its.frequencies.size(); ++i)
      EXPECT_NEAR(found[i] / its.frequencies[i], 1, 1e-6) << i;
  }
}

TEST(RopeFrequencies, WithoutScalingArePowersOfTheta) {
  const RopeTable table = rope_table({.theta = 500000, .width = 128});
  ASSERT_EQ(table.frequencies.size(), 64u);
  EXPECT_EQ(table.factor, 1);
  for (size_t i = 0; i < 64; ++i)
    EXPECT_EQ(table.frequencies[i],
              static_cast<float>(std::pow(500000.0, -2.0 * static_cast<double>(i) / 128)));
}

TEST(RopeFrequencies, RefuseWhatOneTableCannotGive) {
  const RopeSpec dynamic = {
      .scaling = RopeScaling::dynamic, .width = 16, .factor = 2, .max_positions = 2048};
  EXPECT_EQ(refused_rope(dynamic), nullptr);
  EXPECT_NE(refused_rope({.width = 15}), nullptr);
  EXPECT_NE(refused_rope({.scaling = RopeScaling::linear, .width = 16}), nullptr);
  EXPECT_NE(refused_rope({.scaling = RopeScaling::llama3, .width = 16, .factor = 8}), nullptr);
  EXPECT_NE(refused_rope({.scaling = RopeScaling::yarn, .width = 16, .original_positions = 4096}),
            nullptr);
  EXPECT_NE(refused_rope({.scaling = RopeScaling::longrope,
                          .width = 16,
                          .factor = 2,
                          .original_positions = 4096,
                          .short_factor = kShort,
                          .long_factor = {1.0}}),
            nullptr);
}

}  // namespace
}  // namespace ferry
