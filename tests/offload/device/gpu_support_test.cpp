// Which cards a build serves under which driver, and what is said where it does not.

#include "offload/device/gpu_support.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ferry::test {
namespace {

using testing::HasSubstr;
using Of = GpuRefusal::Of;

GpuFacts card(int compute_capability) {
  return {
      .name = "the card", .compute_capability = compute_capability, .driver_cuda_version = 13000};
}

TEST(GpuSupport, MachineCodeRunsOnItsMajorVersionAndPtxOnAllThatIsNewer) {
  const GpuCode turing = {.archs = {75}, .ptx_arch = 0}, several = {.archs = {80, 86, 90}},
                with_ptx = {.archs = {80, 86, 90}, .ptx_arch = 90};
  struct Case {
    GpuCode code;
    int compute_capability;
    bool runs;
  };
  const Case cases[] = {{turing, 75, true},          {turing, 80, false},  {several, 75, false},
                        {several, 80, true},         {several, 86, true},  {several, 87, true},
                        {several, 89, true},         {several, 90, true},  {several, 100, false},
                        {with_ptx, 75, false},       {with_ptx, 89, true}, {with_ptx, 100, true},
                        {with_ptx, 120, true},       {with_ptx, 0, true},  // not known: no reason
                        {{.archs = {86}}, 80, false}};
  for (const Case& each : cases)
    EXPECT_EQ(!refusal_of(card(each.compute_capability), each.code), each.runs)
        << each.compute_capability;
}

TEST(GpuSupport, ACardWithoutCodeIsNamedWithWhatTheBuildHoldsAndTheCure) {
  const auto refusal = refusal_of(card(75), {.archs = {80, 90}, .ptx_arch = 90});
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->of, Of::build);
  EXPECT_EQ(refusal->what,
            "the card has compute capability 7.5, and this build holds GPU code for 8.0, 9.0 and "
            "PTX of 9.0");
  EXPECT_THAT(refusal->cure, HasSubstr("-Dgpu_archs=75"));
}

TEST(GpuSupport, ACardThatCudaHasLeftBehindCannotBeHelped) {
  // Not by a build that had code for it, and not by the driver that is too old as well.
  GpuFacts pascal = card(61);
  pascal.driver_cuda_version = 12020;
  const auto refusal = refusal_of(pascal, {.archs = {61, 75}});
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->of, Of::card);
  EXPECT_THAT(refusal->what, HasSubstr("compute capability 6.1; CUDA 13 and LibTorch need 7.5"));
  EXPECT_THAT(refusal->cure, HasSubstr("cannot be used"));
}

TEST(GpuSupport, AnOldDriverIsToldByTheNumberThatIsKnown) {
  const GpuCode code = {.archs = {75}};
  GpuFacts facts = card(75);
  EXPECT_FALSE(refusal_of(facts, code));
  facts.driver_cuda_version = 12090;  // as CUDA tells it
  auto refusal = refusal_of(facts, code);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->of, Of::driver);
  EXPECT_EQ(refusal->what,
            "the NVIDIA driver is too old: it serves CUDA 12.9, and CUDA 13 needs 580 or newer");
  EXPECT_EQ(refusal->cure, "update the NVIDIA driver to 580 or newer");
  facts.driver_version = "575.51";  // as NVML does
  refusal = refusal_of(facts, code);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->what, "NVIDIA driver 575.51 is too old: CUDA 13 needs 580 or newer");
  facts.driver_version = "580.65.06";
  EXPECT_FALSE(refusal_of(facts, code));
  facts.driver_version = "unreadable";  // then the other counts
  EXPECT_TRUE(refusal_of(facts, code));
  facts.driver_cuda_version = 0;
  EXPECT_FALSE(refusal_of(facts, code));

  // A build with a later CUDA asks for more.
  facts.driver_version = {};
  facts.driver_cuda_version = 13010;
  refusal = refusal_of(facts, {.archs = {75}, .cuda_major = 14});
  ASSERT_TRUE(refusal);
  EXPECT_THAT(refusal->cure, HasSubstr("one that serves CUDA 14"));
}

TEST(GpuSupport, ABuildKnowsWhatItHolds) {
  const GpuCode code = gpu_code_of_build();
  if (code.archs.empty()) {
    const auto refusal = refusal_of(card(90), code);
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->what, "this build has no CUDA");
    return;
  }
  for (int arch : code.archs)
    EXPECT_FALSE(refusal_of(card(arch), code)) << arch;
  EXPECT_FALSE(refusal_of(card(130), code)) << "PTX serves what comes after";
  EXPECT_GE(code.cuda_major, 13);
}

}  // namespace
}  // namespace ferry::test
