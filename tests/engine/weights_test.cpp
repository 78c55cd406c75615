// Weights are made, written and read in pieces: a model never lies in memory twice, not even its
// largest tensor.

#include "src/engine/weights.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "models/bert/bert_table.h"
#include "src/base/bytes.h"
#include "src/base/host_memory.h"
#include "src/engine/state_files.h"
#include "src/files/crc32c.h"
#include "src/plan/plan.h"
#include "tests/files/test_files.h"

namespace ferry {
namespace {

/** Memory that the process may take beside the segments: pieces of 2 MiB, draws of random numbers,
 * stacks and arenas of threads. An eighth of the embedding below. */
constexpr int64_t kBeside_bytes = 20 * kMiB;

/** A BERT of one layer in bf16. */
ModelTable small_bert(int64_t vocab_size) {
  BertTableOptions options;
  options.compute = DType::bf16;
  return make_bert_table(parse_bert_config({{"model_type", "bert"},
                                            {"vocab_size", vocab_size},
                                            {"hidden_size", 64},
                                            {"num_hidden_layers", 1},
                                            {"num_attention_heads", 2},
                                            {"intermediate_size", 128},
                                            {"max_position_embeddings", 32},
                                            {"type_vocab_size", 2},
                                            {"hidden_act", "gelu"},
                                            {"initializer_range", 0.02}}),
                         options);
}

/** A model that is trained in host memory. */
class InHostMemory : public ::testing::Test {
 protected:
  explicit InHostMemory(ModelTable table) : table_(std::move(table)) {}

  StepShape make_shape() const {
    StepShape shape = make_step_shape(table_, {.tokens = 32, .n_seqs_max = 2, .max_length = 16},
                                      PlanRequest{}, 1);
    choose(shape, table_, {.place = Place::host});
    return shape;
  }

  const ModelTable table_;
  const StepShape shape_ = make_shape();
  const Layout layout_ = make_layout(shape_);
  std::unique_ptr<WorkerPool> pool_ = make_tbb_pool(2);
  std::unique_ptr<Device> device_ = make_simulated_device({}, *pool_);
  RunMemory memory_{*device_, layout_, *pool_};
  Segments segments_{shape_, *device_, memory_};
};

/** Most of the model is one embedding of 160 MiB in fp32. */
class WeightsInPieces : public InHostMemory {
 protected:
  WeightsInPieces() : InHostMemory(small_bert(40 << 14)) {
    for (int b = 0; b < shape_.n_blocks(); ++b)  // pages that nobody touched are no memory yet
      for (Segment segment : {Segment::weights, Segment::master})
        clear(b, segment);
  }

  void clear(int block, Segment segment) {
    segments_.set_bytes(block, segment, 0,
                        std::vector<std::byte>(segments_.bytes_of(block, segment).size()));
  }

  /** The most that the process takes while `work` runs, beside what it holds now. */
  template <class Work>
  static int64_t bytes_beside(Work work) {
#ifdef __SANITIZE_ADDRESS__  // it keeps what is freed, to find who still uses it
    work();
    return 0;
#else
    std::ofstream("/proc/self/clear_refs") << "5";  // the peak begins anew
    const int64_t before = process_status_bytes("VmHWM");
    work();
    return process_status_bytes("VmHWM") - before;
#endif
  }
  std::vector<std::byte> master_of(int block) const {
    return segments_.bytes_of(block, Segment::master);
  }
};

TEST_F(WeightsInPieces, AreMadeWrittenAndReadWithoutASecondCopy) {
#ifndef __SANITIZE_ADDRESS__
  {
    std::vector<char> held;
    if (bytes_beside([&] { held.assign(64 * kMiB, 1); }) < 64 * kMiB)
      GTEST_SKIP() << "/proc/self/clear_refs does not begin a new peak here";
  }
#endif
  EXPECT_LT(bytes_beside([&] { initialise_weights(table_, 3, segments_); }), kBeside_bytes);
  const std::vector<std::byte> made = master_of(0);
  ASSERT_GE(static_cast<int64_t>(made.size()), 160 * kMiB);

  const test::TempDir dir;
  const auto save = [&] { save_weights(table_, segments_, dir.path(), DType::f32, 64 * kMiB); };
  EXPECT_LT(bytes_beside(save), kBeside_bytes);

  clear(0, Segment::master);
  const auto load = [&] { load_weights(table_, CheckpointReader::open(dir.path()), 3, segments_); };
  EXPECT_LT(bytes_beside(load), kBeside_bytes);
  EXPECT_TRUE(made == master_of(0));
}

TEST_F(WeightsInPieces, SoIsWhatARunResumesFrom) {
  initialise_weights(table_, 3, segments_);
  const test::TempDir dir;
  std::map<std::string, TensorChecksums> checksums;
  for (const auto& [stem, in] : {std::pair("model", dir.path()), {"adam_m", dir / "state"}}) {
    CheckpointWriter writer(in, hf_tensors(table_, DType::f32), 64 * kMiB, stem);
    for (const HfEntry& entry : table_.hf_names) {
      const std::vector<std::byte> block = master_of(entry.block);
      const EntryExtent extent = extent_of(table_, entry);
      const auto bytes = std::span(block).subspan(static_cast<size_t>(4 * extent.begin),
                                                  static_cast<size_t>(4 * extent.n_elements));
      writer.write(entry.hf_name, bytes);
      checksums[stem][entry.hf_name] = crc32c(bytes);
    }
    writer.finish();
  }
  constexpr std::array kWhich = {Segment::master, Segment::adam_m};
  const std::vector<std::byte> made = master_of(0);
  for (Segment segment : kWhich)
    clear(0, segment);
  const auto load = [&] { load_states(table_, shape_, dir.path(), checksums, kWhich, segments_); };
  EXPECT_LT(bytes_beside(load), kBeside_bytes);
  EXPECT_TRUE(made == master_of(0));
  EXPECT_TRUE(made == segments_.bytes_of(0, Segment::adam_m));
}

/** The embeddings and biases are frozen; the model was loaded from a file. */
class FrozenParts : public InHostMemory {
 protected:
  static ModelTable make_table() {
    ModelTable table = small_bert(500);
    for (size_t b = 0; b < table.blocks.size(); ++b) {
      for (ParamSpec& param : table.blocks[b].params)
        param.trainable = b > 0 && param.shape.size() > 1;
      table.blocks[b].arrange();
    }
    return table;
  }

  FrozenParts() : InHostMemory(make_table()) {
    // The file holds fp32 values that bf16 does not have.
    CheckpointWriter writer(file_.path(), hf_tensors(table_, DType::f32), INT64_MAX);
    for (const HfEntry& entry : table_.hf_names) {
      auto& values = values_[entry.hf_name];
      for (int64_t i = 0; i < extent_of(table_, entry).n_elements; ++i)
        values.push_back(1.0f / static_cast<float>(3 + i % 1000));
      writer.write(entry.hf_name, std::as_bytes(std::span(values)));
    }
    writer.finish();
    load_weights(table_, CheckpointReader::open(file_.path()), 1, segments_);
  }

  /** The values of a tensor in a directory's files. */
  static std::vector<float> values_in(const std::filesystem::path& directory,
                                      const HfEntry& entry) {
    const CheckpointReader file = CheckpointReader::open(directory);
    std::vector<float> values;
    file.read_f32(file.get(entry.hf_name, entry.hf_shape),
                  [&](std::span<const float> part, int64_t) {
                    values.insert(values.end(), part.begin(), part.end());
                  });
    return values;
  }

  const test::TempDir file_;
  std::map<std::string, std::vector<float>> values_;
};

TEST_F(FrozenParts, TakeTheirWeightsOfMemoryAlone) {
  for (int b = 0; b < shape_.n_blocks(); ++b) {
    const BlockTable& block = table_.blocks[static_cast<size_t>(b)];
    int64_t n_trained = 0, end = 0;
    for (const ParamSpec& param : block.params) {
      if (param.trainable) n_trained += param.n_elements;
      if (param.trainable) end = std::max(end, param.offset + param.n_elements);
    }
    for (const ParamSpec& param : block.params)
      EXPECT_EQ(param.offset < end, param.trainable) << param.name;
    // A tensor of the head, of 2 x 64 elements, is padded to 256.
    const int64_t padded = b == shape_.n_blocks() - 1 ? n_trained + 128 : n_trained;
    for (const auto& [segment, bytes] : {std::pair{Segment::grads, 2},
                                         {Segment::master, 4},
                                         {Segment::adam_m, 4},
                                         {Segment::adam_v, 4}})
      EXPECT_EQ(segments_.bytes_of(b, segment).size(), static_cast<size_t>(bytes * padded))
          << block.name << " " << name_of(segment);
  }
}

TEST_F(FrozenParts, HaveTheirOwnValuesInTheModelThatIsSaved) {
  const test::TempDir saved;
  std::filesystem::remove_all(file_.path());  // the run goes on without its base model
  save_weights(table_, segments_, saved.path(), DType::f32, INT64_MAX);
  for (const HfEntry& entry : table_.hf_names)
    EXPECT_EQ(values_in(saved.path(), entry), values_.at(entry.hf_name)) << entry.hf_name;
}

TEST_F(FrozenParts, AreNotSavedFromAFileThatSomebodyHasWrittenTo) {
  const std::filesystem::path file = file_ / "model.safetensors";
  std::fstream writer(file, std::ios::in | std::ios::out | std::ios::binary);
  writer.seekp(static_cast<std::streamoff>(std::filesystem::file_size(file)) / 4);
  writer << "ferry";
  writer.close();
  const test::TempDir saved;
  const std::string said =
      test::error_of([&] { save_weights(table_, segments_, saved.path(), DType::f32, INT64_MAX); });
  EXPECT_NE(said.find("has other values of 'bert.embeddings."), std::string::npos) << said;
  EXPECT_NE(said.find("put the file back"), std::string::npos) << said;
}

}  // namespace
}  // namespace ferry
