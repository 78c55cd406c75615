// What a run's settings become on a machine: data type, attention, states, lengths.

#include "src/plan/run_plan.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "src/base/error.h"
#include "tests/plan/settings.h"

namespace ferry {
namespace {

constexpr int kTuring = 75, kAmpere = 80, kAda = 89, kHopper = 90, kBlackwell = 120;

PlanMachine with_gpu(int compute_capability) {
  return {.has_gpu = true, .compute_capability = compute_capability};
}

void expect_usage_error(const std::function<void()>& call, const std::string& word) {
  try {
    call();
    ADD_FAILURE() << "no error that names " << word;
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::usage);
    EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }
}

TEST(ChooseAttention, IsFlashWhereItsKernelsRun) {
  for (const int newer : {kAmpere, kAda, kHopper, kBlackwell}) {
    for (const DType type : {DType::bf16, DType::f16})
      EXPECT_EQ(choose_attention(type, with_gpu(newer)), AttentionBackend::flash) << newer;
    EXPECT_EQ(choose_attention(DType::f32, with_gpu(newer)), AttentionBackend::memory_efficient);
  }
  for (const DType type : {DType::f16, DType::f32})
    EXPECT_EQ(choose_attention(type, with_gpu(kTuring)), AttentionBackend::memory_efficient);
  EXPECT_EQ(choose_attention(DType::f32, {}), AttentionBackend::cpu_math);
}

TEST(ChooseDtype, Is16BitsWhereTheGpuHasThem) {
  EXPECT_EQ(choose_dtype(config_of({}), with_gpu(kHopper)), DType::bf16);
  EXPECT_EQ(choose_dtype(config_of({}), with_gpu(kAmpere)), DType::bf16);
  EXPECT_EQ(choose_dtype(config_of({}), with_gpu(kTuring)), DType::f16);
  EXPECT_EQ(choose_dtype(config_of({}), {}), DType::f32);
  EXPECT_EQ(choose_dtype(config_of({{"dtype", "fp16"}}), with_gpu(kHopper)), DType::f16);
  EXPECT_EQ(choose_dtype(config_of({{"dtype", "fp32"}}), with_gpu(kTuring)), DType::f32);
  EXPECT_EQ(choose_dtype(config_of({{"dtype", "bf16"}}), {}), DType::bf16);
  expect_usage_error(
      [] {
        choose_dtype(config_of({{"dtype", "bf16"}}), with_gpu(kTuring));
      },
      "this GPU has 7.5");
}

TEST(ChooseStates, AreNeverReducedUnasked) {
  EXPECT_EQ(choose_states(config_of({})), simd::StateType::fp32);
  EXPECT_EQ(choose_states(config_of({{"optim", "adamw_bf16"}})), simd::StateType::bf16);
  EXPECT_EQ(choose_states(config_of({{"optim", "adamw_8bit"}})), simd::StateType::block8);
  EXPECT_FALSE(choose_split_master(config_of({}), DType::bf16));
  EXPECT_TRUE(choose_split_master(config_of({{"master", "split"}}), DType::bf16));
  for (const DType type : {DType::f16, DType::f32})
    expect_usage_error(
        [&] {
          choose_split_master(config_of({{"master", "split"}}), type);
        },
        std::string(name_of(type)));
}

TEST(ChooseMaxLength, IsTheModelsLimitUpTo2048) {
  EXPECT_EQ(choose_max_length(config_of({}), 512, false), 512);
  EXPECT_EQ(choose_max_length(config_of({}), 32768, false), 2048);
  EXPECT_EQ(choose_max_length(config_of({{"max_length", "4096"}}), 32768, false), 4096);
  EXPECT_EQ(choose_max_length(config_of({{"max_length", "20000"}}), 32768, true), 20000);
  expect_usage_error(
      [] {
        choose_max_length(config_of({{"max_length", "513"}}), 512, true);
      },
      "at most 512");
  expect_usage_error(
      [] {
        choose_max_length(config_of({{"max_length", "20000"}}), 32768, false);
      },
      "at most 16384");
}

}  // namespace
}  // namespace ferry
