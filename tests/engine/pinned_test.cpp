// A generation on a drive and the files beside it hold a whole model: a run with other blocks on a
// drive, or with none, has the same bits from them, and so has an exported model. Torch-free.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "models/decoder/decoder_table.h"
#include "offload/nvme/open_disk.h"
#include "src/engine/state/drive_states.h"
#include "src/engine/state/state_files.h"
#include "src/engine/state/weights.h"
#include "src/files/write/write_behind.h"
#include "src/plan/plan.h"
#include "tests/files/test_files.h"

namespace ferry {
namespace {

struct PinnedCase {
  const char* name;
  DecoderFamily family;  ///< GPT-2's matrices lie the other way round in files
  DType compute;
  simd::StateType states = simd::StateType::fp32;
  bool is_split = false;
  bool is_cut = false;         ///< the table of words in pieces, of which some lie on the drive
  bool freezes_norms = false;  ///< a part of each layer
};

/** with_weights: of odd blocks the weights lie there, too, frozen ones with them. */
enum class OnDrive { none, odd, even, all, with_weights };

/** A model in memory and on a drive, with states that follow from their places. */
class StoredModel {
 public:
  StoredModel(const PinnedCase& its, OnDrive which, const std::filesystem::path& file)
      : table_(make_table(its)),
        request_{.states = its.states, .split_master = its.is_split},
        shape_(make_shape(which)),
        drive_(shape_,
               memory_,
               {.open = [&](int64_t n_bytes, std::span<std::byte>) -> Disk& {
                  disk_ = open_disk({file}, n_bytes);
                  return *disk_;
                },
                .n_kept = 1,
                .run = "run",
                .uuid = {}}) {
    if (drive_.store()) window_.emplace(shape_, memory_, *drive_.store());
    segments_.emplace(shape_, *device_, memory_, window_ ? &*window_ : nullptr);
  }

  void fill() {
    initialise_weights(table_, 3, *segments_);
    for (int b = 0; b < shape_.n_blocks(); ++b)
      for (Segment segment : {Segment::adam_m, Segment::adam_v}) {
        if (layout_.segment(b, segment) < 0) continue;
        // Not between the tensors: nothing keeps what is there.
        for (const TensorExtent& t : shape_.blocks[static_cast<size_t>(b)].tensors) {
          if (!t.trainable) continue;
          set(b, segment, element_bytes(shape_, b, segment, t.offset, t.n_elements));
          if (shape_.states == simd::StateType::block8)
            set(b, segment, exponent_bytes(shape_, b, t));
        }
      }
  }
  void pin() {
    window_->finish_writes();
    drive_.store()->extents().commit("it");
    drive_.store()->extents().pin("checkpoint-1");
  }
  std::map<std::string, TensorChecksums> write_files(const std::filesystem::path& directory,
                                                     FilesHold holds) {
    constexpr auto kBuffer_bytes = WriteBehind::kPiece_slots * WriteBehind::kSlot_bytes;
    const std::unique_ptr<std::byte, decltype(&std::free)> buffer(
        static_cast<std::byte*>(std::aligned_alloc(4096, kBuffer_bytes)), &std::free);
    WriteBehind behind({buffer.get(), kBuffer_bytes});
    std::filesystem::create_directories(directory / "state");
    StateWriter writer(table_, shape_, segments_->frozen(), directory, INT64_MAX, behind, holds);
    std::atomic<int64_t> n_read_bytes = 0;
    for (int b = 0; b < shape_.n_blocks(); ++b) {
      BlockStates states(shape_, *device_, *pool_, memory_, window_ ? &*window_ : nullptr, b,
                         n_read_bytes);
      writer.write(states);
    }
    auto checksums = writer.finish();
    int64_t n_bytes = 0;
    for (const auto& [stem, tensors] : checksums)
      n_bytes += CheckpointReader::open(stem == "model" ? directory : directory / "state", stem)
                     .total_bytes();
    EXPECT_EQ(writer.n_bytes(), n_bytes);
    return checksums;
  }
  void load(const std::filesystem::path& directory,
            const std::map<std::string, TensorChecksums>& checksums,
            const DriveSource* drive) {
    load_states(table_, shape_, directory, checksums, kSavedSegments, *segments_, drive);
  }
  /** All that training changes, by block and segment; the weights too. */
  std::map<std::pair<int, Segment>, std::vector<std::byte>> bytes() {
    if (window_) window_->finish_writes();
    std::map<std::pair<int, Segment>, std::vector<std::byte>> all;
    for (int b = 0; b < shape_.n_blocks(); ++b)
      for (Segment s : {Segment::weights, Segment::master, Segment::adam_m, Segment::adam_v})
        all[{b, s}] = segments_->bytes_of(b, s);
    return all;
  }

  const ModelTable& table() const { return table_; }
  const StepShape& shape() const { return shape_; }
  StateStore& store() { return *drive_.store(); }
  Segments& segments() { return *segments_; }

 private:
  void set(int block, Segment segment, const ByteRange& range) {
    std::vector<std::byte> bytes(static_cast<size_t>(range.n_bytes));
    for (size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<std::byte>((i + static_cast<size_t>(range.offset + block)) %
                                        (segment == Segment::adam_m ? 113 : 109));
    segments_->set_bytes(block, segment, range.offset, bytes);
  }
  static ModelTable make_table(const PinnedCase& its) {
    TableOptions options = {.compute = its.compute};
    if (its.is_cut) options.piece_elements_max = 1;
    ModelTable table = make_decoder_table({.family = its.family,
                                           .vocab_size = 2 * 4096 + 61,
                                           .hidden_size = 24,
                                           .num_hidden_layers = 3,
                                           .num_attention_heads = 3,
                                           .num_key_value_heads = 3,
                                           .intermediate_size = 40,
                                           .max_position_embeddings = 16},
                                          options);
    for (const HfEntry& entry : table.hf_names)
      if (its.freezes_norms && entry.hf_name.find("norm") != std::string::npos)
        table.blocks[static_cast<size_t>(entry.block)]
            .params[static_cast<size_t>(entry.param)]
            .trainable = false;
    for (BlockTable& block : table.blocks)
      block.arrange();
    return table;
  }
  StepShape make_shape(OnDrive which) const {
    StepShape shape =
        make_step_shape(table_, {.tokens = 32, .n_seqs_max = 2, .max_length = 16}, request_, 1);
    choose(shape, table_, {.place = Place::host});
    shape.state_piece_elements = 8192;
    shape.computes_on_host = false;
    for (int b = 0; b < shape.n_blocks(); ++b) {
      const bool has_weights = which == OnDrive::with_weights;
      const bool is_chosen = which == OnDrive::all ||
                             ((which == OnDrive::odd || has_weights) && b % 2 == 1) ||
                             (which == OnDrive::even && b % 2 == 0);
      if (is_chosen && shape.is_trained(b))
        shape.blocks[static_cast<size_t>(b)].place = {has_weights ? Place::nvme : Place::host,
                                                      Place::nvme, Place::host};
    }
    return shape;
  }

  const ModelTable table_;
  const PlanRequest request_;
  const StepShape shape_;
  const Layout layout_ = make_layout(shape_);
  std::unique_ptr<WorkerPool> pool_ = make_tbb_pool(2);
  std::unique_ptr<Device> device_ = make_simulated_device({}, *pool_);
  RunMemory memory_{*device_, layout_, *pool_};
  std::unique_ptr<FileDisk> disk_;
  DriveStates drive_;
  std::optional<StateWindow> window_;
  std::optional<Segments> segments_;
};

class Pinned : public ::testing::TestWithParam<PinnedCase> {
 protected:
  /** A checkpoint of a model whose `which` blocks lie on a drive, and what it was made of. */
  struct Made {
    Made(const PinnedCase& its, OnDrive which) : model(its, which, directory / "run.states") {
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
        EXPECT_TRUE(bytes.at(of) == there) << of.first << " " << name_of(of.second);
    }
  }
}

TEST_P(Pinned, TheSameStoreGoesOnFromThere) {
  Made made(GetParam(), OnDrive::odd);
  ExtentStore& extents = made.model.store().extents();
  // A later step, which the run goes back from.
  for (int b = 0; b < made.model.shape().n_blocks(); ++b)
    for (Segment segment : {Segment::weights, Segment::master, Segment::adam_m})
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
    EXPECT_TRUE(bytes.at(of) == there) << of.first << " " << name_of(of.second);
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
    ::testing::Values(PinnedCase{"llama", DecoderFamily::llama, DType::f32},
                      PinnedCase{"llama_cut_frozen_bf16", DecoderFamily::llama, DType::bf16,
                                 simd::StateType::fp32, false, true, true},
                      PinnedCase{"gpt2_bf16_split", DecoderFamily::gpt2, DType::bf16,
                                 simd::StateType::bf16, true},
                      PinnedCase{"gpt2_cut_8bit_split", DecoderFamily::gpt2, DType::bf16,
                                 simd::StateType::block8, true, true},
                      PinnedCase{"llama_cut_8bit", DecoderFamily::llama, DType::f32,
                                 simd::StateType::block8, false, true}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace ferry
