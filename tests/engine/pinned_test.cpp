// A generation on a drive and the files beside it hold a whole model: a run with other blocks on a
// drive, or with none, has the same bits from them, and so has an exported model. Torch-free.

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/engine/stored_model.h"
#include "tests/files/test_files.h"

namespace ferry {
namespace {

using test::OnDrive, test::StoredCase, test::StoredModel;

class Pinned : public ::testing::TestWithParam<StoredCase> {
 protected:
  /** A checkpoint of a model whose `which` blocks lie on a drive, and what it was made of. */
  struct Made {
    Made(const StoredCase& its, OnDrive which) : model(its, which, directory / "run.states") {
      model.fill();
      bytes = model.bytes();
      model.pin();
      about = stored_states_of(model.table(), model.shape());
      checksums = model.write_files(directory / "checkpoint", FilesHold::what_no_drive_has);
    }
    std::filesystem::path checkpoint() const { return directory / "checkpoint"; }

    test::TempDir directory;
    StoredModel model;
    std::map<std::pair<int, Segment>, std::vector<std::byte>> bytes;
    StoredStates about;
    std::map<std::string, TensorChecksums> checksums;
  };
};

TEST_P(Pinned, ARunElsewhereHasTheSameBits) {
  for (OnDrive then : {OnDrive::odd, OnDrive::even, OnDrive::all, OnDrive::with_weights}) {
    Made made(GetParam(), then);
    const StepShape shape = shape_of(made.about);
    ASSERT_TRUE(StateStore::is_store_of(shape, made.model.store().extents().layout()));
    StateStore states(shape, made.model.store().extents());
    // All pairs take long.
    if (!std::getenv("FERRY_LONG") && then != OnDrive::odd && then != OnDrive::with_weights)
      continue;
    for (OnDrive now :
         {OnDrive::none, OnDrive::odd, OnDrive::even, OnDrive::all, OnDrive::with_weights}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(then)) + " to " +
                   std::to_string(static_cast<int>(now)));
      GenerationReader reader(shape, states, made.model.store().extents().pinned("checkpoint-1"));
      const DriveSource drive = {.about = &made.about, .reader = &reader};
      const test::TempDir directory;
      StoredModel run(GetParam(), now, directory / "run.states");
      run.load(made.checkpoint(), made.checksums, &drive);
      const auto bytes = run.bytes();
      for (const auto& [of, there] : made.bytes)
        EXPECT_TRUE(bytes.at(of) == there)
            << of.first << " " << name_of(of.second, GetParam().optim);
    }
  }
}

TEST_P(Pinned, TheSameStoreGoesOnFromThere) {
  Made made(GetParam(), OnDrive::odd);
  ExtentStore& extents = made.model.store().extents();
  // A later step, which the run goes back from.
  for (int b = 0; b < made.model.shape().n_blocks(); ++b)
    for (Segment segment : {Segment::weights, Segment::master, Segment::state_0})
      if (const auto bytes = made.model.segments().bytes_of(b, segment); !bytes.empty())
        made.model.segments().set_bytes(b, segment, 0, std::vector<std::byte>(bytes.size()));
  EXPECT_FALSE(made.model.bytes() == made.bytes);
  extents.commit("later");
  extents.start_from(extents.pinned("checkpoint-1"));
  made.model.segments().restore_weights();
  const DriveSource in_place = {.about = &made.about};
  made.model.load(made.checkpoint(), made.checksums, &in_place);
  const auto bytes = made.model.bytes();
  for (const auto& [of, there] : made.bytes)
    EXPECT_TRUE(bytes.at(of) == there) << of.first << " " << name_of(of.second, GetParam().optim);
}

TEST_P(Pinned, ExportsTheModelThatSaveWeightsWrites) {
  for (OnDrive then : {OnDrive::odd, OnDrive::all, OnDrive::with_weights}) {
    Made made(GetParam(), then);
    const StepShape shape = shape_of(made.about);
    StateStore states(shape, made.model.store().extents());
    GenerationReader reader(shape, states, made.model.store().extents().pinned("checkpoint-1"));
    const DriveSource drive = {.about = &made.about, .reader = &reader};
    const test::TempDir exported, whole;
    copy_master(made.model.table(), made.checkpoint(), made.checksums, drive, exported.path());
    made.model.write_files(whole.path(), FilesHold::all);
    EXPECT_TRUE(test::read_file(exported / "model.safetensors") ==
                test::read_file(whole / "model.safetensors"));
  }
}

INSTANTIATE_TEST_SUITE_P(
    EngineStates,
    Pinned,
    ::testing::Values(StoredCase{"llama", DecoderFamily::llama, DType::f32},
                      StoredCase{"llama_cut_frozen_bf16", DecoderFamily::llama, DType::bf16,
                                 simd::Optim::adamw, false, true, true},
                      StoredCase{"gpt2_bf16_split", DecoderFamily::gpt2, DType::bf16,
                                 simd::Optim::adamw_bf16, true},
                      StoredCase{"gpt2_cut_8bit_split", DecoderFamily::gpt2, DType::bf16,
                                 simd::Optim::adamw_8bit, true, true},
                      StoredCase{"llama_cut_8bit", DecoderFamily::llama, DType::f32,
                                 simd::Optim::adamw_8bit, false, true},
                      StoredCase{"gpt2_cut_lion", DecoderFamily::gpt2, DType::bf16,
                                 simd::Optim::lion, false, true},
                      StoredCase{"llama_sgd", DecoderFamily::llama, DType::f32, simd::Optim::sgd},
                      StoredCase{"llama_frozen_momentum_split", DecoderFamily::llama, DType::bf16,
                                 simd::Optim::sgd_momentum, true, false, true}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace ferry
