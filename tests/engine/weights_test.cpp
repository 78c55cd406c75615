// Weights are made, written and read in pieces: a model never lies in memory twice, not even its
// largest tensor.

#include "src/engine/state/weights.h"

#include <gtest/gtest.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "models/bert/bert_table.h"
#include "models/core/compile.h"
#include "models/core/nested_scales.h"
#include "models/decoder/decoder_table.h"
#include "offload/step/pager.h"
#include "simd/kernels.h"
#include "src/base/bytes.h"
#include "src/base/crc32c.h"
#include "src/base/process/host_memory.h"
#include "src/engine/state/state_files.h"
#include "src/plan/plan.h"
#include "tests/engine/written_checkpoint.h"
#include "tests/files/test_files.h"

namespace ferry {
namespace {

/** Memory that the process may take beside the segments: pieces of 2 MiB, draws of random numbers,
 * stacks and arenas of threads. An eighth of the embedding below. */
constexpr int64_t kBeside_bytes = 20 * kMiB;

/** A BERT of one layer in bf16. */
ModelTable small_bert(int64_t vocab_size) {
  TableOptions options;
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
  explicit InHostMemory(ModelTable table, PlanRequest request = {})
      : table_(std::move(table)), request_(request) {}

  StepShape make_shape() const {
    StepShape shape =
        make_step_shape(table_, {.tokens = 32, .n_seqs_max = 2, .max_length = 16}, request_, 1);
    choose(shape, table_, {.place = Place::host});
    return shape;
  }

  const ModelTable table_;
  const PlanRequest request_;
  const StepShape shape_ = make_shape();
  const Layout layout_ = make_layout(shape_);
  std::unique_ptr<WorkerPool> pool_ = make_tbb_pool(2);
  std::unique_ptr<Device> device_ = make_simulated_device({}, *pool_);
  RunMemory memory_{*device_, layout_, *pool_};
  Segments segments_{shape_, *device_, memory_, nullptr};
};

/** Memory is measured for which nothing else is the cause. */
class WeightsInPieces : public InHostMemory {
 protected:
  /** Most of the model is one embedding of 160 MiB in fp32. */
  WeightsInPieces() : WeightsInPieces(small_bert(40 << 14)) {}
  explicit WeightsInPieces(ModelTable table) : InHostMemory(std::move(table)) {
    for (int b = 0; b < shape_.n_blocks(); ++b)  // pages that nobody touched are no memory yet
      for (Segment segment : {Segment::weights, Segment::master})
        clear(b, segment);
  }

  void clear(int block, Segment segment) {
    segments_.set_bytes(block, segment, 0,
                        std::vector<std::byte>(segments_.bytes_of(block, segment).size()));
  }

  static bool measures() {
#ifdef __SANITIZE_ADDRESS__
    return true;
#else
    std::vector<char> held;
    return bytes_beside([&] { held.assign(64 * kMiB, 1); }) > 60 * kMiB;
#endif
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
  if (!measures()) GTEST_SKIP() << "/proc/self/clear_refs does not begin a new peak here";
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
  constexpr std::array kWhich = {Segment::master, Segment::state_0};
  const std::vector<std::byte> made = master_of(0);
  for (Segment segment : kWhich)
    clear(0, segment);
  const auto load = [&] { load_states(table_, shape_, dir.path(), checksums, kWhich, segments_); };
  EXPECT_LT(bytes_beside(load), kBeside_bytes);
  EXPECT_TRUE(made == master_of(0));
  EXPECT_TRUE(made == segments_.bytes_of(0, Segment::state_0));
}

/** An embedding is drawn in many pieces, by threads of any number. */
TEST_F(WeightsInPieces, ThoseThatAreDrawnDependOnSeedAndNameAlone) {
  initialise_weights(table_, 3, segments_);
  const std::vector<std::byte> made = master_of(0);
  clear(0, Segment::master);
  tbb::task_arena(1).execute([&] { initialise_weights(table_, 3, segments_); });
  EXPECT_TRUE(made == master_of(0));
  initialise_weights(table_, 4, segments_);
  EXPECT_FALSE(made == master_of(0));

  std::vector<float> values(made.size() / sizeof(float));
  std::memcpy(values.data(), made.data(), made.size());
  const ParamSpec& word = table_.blocks[0].params[0];
  const std::span words = std::span(values).subspan(static_cast<size_t>(word.offset),
                                                    static_cast<size_t>(word.n_elements));
  constexpr size_t kWidth = 64;
  EXPECT_TRUE(std::ranges::all_of(words.first(kWidth), [](float v) { return v == 0; }))
      << "padding";
  double sum = 0, square_sum = 0;
  size_t n_repeated = 0;
  constexpr size_t kPiece = 1 << 19;
  for (size_t i = kWidth; i < words.size(); ++i) {
    const double value = static_cast<double>(words[i]);
    sum += value, square_sum += value * value;
    n_repeated += i >= kPiece && words[i] == words[i - kPiece];
  }
  const auto n = static_cast<double>(words.size() - kWidth);
  EXPECT_LT(std::fabs(sum / n), 5 * 0.02 / std::sqrt(n));
  EXPECT_NEAR(std::sqrt(square_sum / n) / 0.02, 1, 5 / std::sqrt(2 * n));
  EXPECT_LT(n_repeated, words.size() / 100000);
}

/** Most of it are two matrices of 80 MiB in fp32, the other way round in the file. */
class TurnedInPieces : public WeightsInPieces {
 protected:
  TurnedInPieces()
      : WeightsInPieces(make_decoder_table({.family = DecoderFamily::gpt2,
                                            .vocab_size = 50,
                                            .hidden_size = 512,
                                            .num_hidden_layers = 1,
                                            .num_attention_heads = 8,
                                            .num_key_value_heads = 8,
                                            .intermediate_size = 40 << 10,
                                            .max_position_embeddings = 16},
                                           {.compute = DType::bf16})) {}
};

TEST_F(TurnedInPieces, AreWrittenAndReadWithoutASecondCopy) {
  if (!measures()) GTEST_SKIP() << "/proc/self/clear_refs does not begin a new peak here";
  initialise_weights(table_, 3, segments_);
  const std::vector<std::byte> made = master_of(1);
  const test::TempDir dir;
  const auto save = [&] { save_weights(table_, segments_, dir.path(), DType::f32, INT64_MAX); };
  EXPECT_LT(bytes_beside(save), kBeside_bytes);
  clear(1, Segment::master);
  const auto load = [&] { load_weights(table_, CheckpointReader::open(dir.path()), 3, segments_); };
  EXPECT_LT(bytes_beside(load), kBeside_bytes);
  EXPECT_TRUE(made == master_of(1));
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
    const BlockTable& block = table_.blocks[b];
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
                                         {Segment::state_0, 4},
                                         {Segment::state_1, 4}})
      EXPECT_EQ(segments_.bytes_of(b, segment).size(), static_cast<size_t>(bytes * padded))
          << block.name << " " << name_of(segment, shape_.optim);
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

struct Masters {
  const char* name;
  DType compute;
  bool are_split;
  std::vector<Storage> storages = {};  ///< of the frozen matrices
};

/** A GPT-2, whose matrices are the other way round in the file, of which more than one strip. The
 * rows of queries, keys and values lie by heads, as GPT-NeoX has them. */
class OtherOrders : public InHostMemory, public ::testing::WithParamInterface<Masters> {
 protected:
  static constexpr int64_t kWidth = 256, kHeads = 4;
  static ModelTable make_table(const Masters& its) {
    ModelTable table = make_decoder_table({.family = DecoderFamily::gpt2,
                                           .vocab_size = 50,
                                           .hidden_size = kWidth,
                                           .num_hidden_layers = 2,
                                           .num_attention_heads = kHeads,
                                           .num_key_value_heads = kHeads,
                                           .intermediate_size = 8192,
                                           .max_position_embeddings = 16},
                                          {.compute = its.compute});
    constexpr int64_t kHead_rows = kWidth / kHeads;
    for (HfEntry& entry : table.hf_names)
      if (entry.hf_name.find("c_attn") != entry.hf_name.npos)
        entry.groups = {kHeads, {kHead_rows, kHead_rows, kHead_rows}};
    for (ParamSpec& param : table.blocks[1].params)
      param.trainable = param.shape.size() == 1;
    for (BlockTable& block : table.blocks)
      block.arrange();
    for (size_t p = 0, n = 0; p < table.blocks[1].params.size() && !its.storages.empty(); ++p)
      if (table.blocks[1].params[p].shape.size() == 2)
        set_storage(table, 1, static_cast<int>(p), its.storages[n++ % its.storages.size()]);
    return table;
  }

  OtherOrders() : InHostMemory(make_table(GetParam()), {.split_master = GetParam().are_split}) {
    CheckpointWriter writer(file_.path(), hf_tensors(table_, DType::f32), INT64_MAX);
    for (const HfEntry& entry : table_.hf_names) {
      auto& values = values_[entry.hf_name];
      for (int64_t i = 0; i < extent_of(table_, entry).n_elements; ++i)
        values.push_back(1.0f / static_cast<float>(3 + i));
      writer.write(entry.hf_name, std::as_bytes(std::span(values)));
    }
    writer.finish();
    load_weights(table_, CheckpointReader::open(file_.path()), 1, segments_);
  }

  const HfEntry& entry(std::string_view name) const {
    return *std::ranges::find(table_.hf_names, name, &HfEntry::hf_name);
  }
  std::vector<float> ours(std::string_view name) const {
    const HfEntry& its = entry(name);
    const ParamSpec& param = table_.param_of(its);
    std::vector<float> values(static_cast<size_t>(its.rows * param.row_values()));
    segments_.get_values(its.block, param, its.row_begin * param.row_values(), values);
    return values;
  }
  void expect_file(const std::filesystem::path& directory) const {
    EXPECT_TRUE(test::read_file(directory / "model.safetensors") ==
                test::read_file(file_ / "model.safetensors"));
  }
  std::map<std::string, TensorChecksums> write_checkpoint(const std::filesystem::path& directory) {
    return test::write_checkpoint({table_, shape_, segments_.frozen(), *device_, *pool_, memory_},
                                  directory)
        .checksums;
  }

  const test::TempDir file_;
  std::map<std::string, std::vector<float>> values_;
};

TEST_P(OtherOrders, AreTurnedAsTheyAreLoaded) {
  const auto& up = values_.at("transformer.h.1.mlp.c_fc.weight");  // (kWidth, 8192)
  const std::vector<float> up_of_ours = ours("transformer.h.1.mlp.c_fc.weight");
  for (size_t row = 0; row < 8192; row += 7)
    for (size_t column = 0; column < kWidth; ++column)
      ASSERT_EQ(up_of_ours[row * kWidth + column], up[column * 8192 + row]) << row << " " << column;
  const auto& bias = values_.at("transformer.h.1.attn.c_attn.bias");
  const std::vector<float> bias_of_ours = ours("transformer.h.1.attn.c_attn.bias");
  // The first value of the second head's keys.
  EXPECT_EQ(bias_of_ours[kWidth + 64], bias[3 * 64 + 64]);
}

TEST_P(OtherOrders, AreThoseOfTheFileInTheModelThatIsSaved) {
  const test::TempDir saved;
  save_weights(table_, segments_, saved.path(), DType::f32, INT64_MAX);
  expect_file(saved.path());
}

TEST_P(OtherOrders, ComeBackFromACheckpoint) {
  constexpr std::array kStates = {Segment::master, Segment::state_0, Segment::state_1};
  std::map<std::pair<int, Segment>, std::vector<std::byte>> bytes;
  for (int b = 0; b < shape_.n_blocks(); ++b) {
    for (Segment segment : state_segments(shape_.optim)) {
      std::vector<std::byte> states(segments_.bytes_of(b, segment).size());
      for (size_t i = 0; i < states.size(); ++i)
        states[i] = static_cast<std::byte>(i * (segment == Segment::state_0 ? 7 : 5) % 113);
      segments_.set_bytes(b, segment, 0, states);
    }
    for (Segment segment : lasting_segments(shape_.optim))
      bytes[{b, segment}] = segments_.bytes_of(b, segment);
  }
  const test::TempDir checkpoint;
  const auto checksums = write_checkpoint(checkpoint.path());
  expect_file(checkpoint.path());
  for (const auto& [of, there] : bytes)
    segments_.set_bytes(of.first, of.second, 0, std::vector<std::byte>(there.size()));
  load_states(table_, shape_, checkpoint.path(), checksums, kStates, segments_);
  for (const auto& entry : table_.hf_names) {
    const ParamSpec& param = table_.param_of(entry);
    for (Segment segment : lasting_segments(shape_.optim)) {
      const auto& before = bytes.at({entry.block, segment});
      const std::vector<std::byte> after = segments_.bytes_of(entry.block, segment);
      const bool has = before.size() > 0 && (segment == Segment::weights || param.trainable);
      if (!has) continue;
      const ByteRange range =
          element_bytes(shape_, entry.block, segment, param.offset, param.n_elements);
      EXPECT_EQ(std::memcmp(before.data() + range.offset, after.data() + range.offset,
                            static_cast<size_t>(range.n_bytes)),
                0)
          << entry.hf_name << " " << name_of(segment, shape_.optim);
    }
  }
}

/** A stored matrix that was drawn is in no file: its values are those that it stands for. */
TEST_P(OtherOrders, AreThoseOfTheSegmentsWhereNoFileHasThem) {
  initialise_weights(table_, 3, segments_);
  segments_.set_frozen({});
  const std::vector<std::byte> before = segments_.bytes_of(1, Segment::weights);
  const test::TempDir checkpoint, saved;
  const auto checksums = write_checkpoint(checkpoint.path());
  save_weights(table_, segments_, saved.path(), DType::f32, INT64_MAX);
  EXPECT_TRUE(test::read_file(checkpoint / "model.safetensors") ==
              test::read_file(saved / "model.safetensors"));
  constexpr std::array kMaster = {Segment::master};
  load_states(table_, shape_, checkpoint.path(), checksums, kMaster, segments_);
  // The scale of int8 comes back through a product that is rounded, and those of a part that is
  // nested give another offset.
  const auto& storages = GetParam().storages;
  if (std::ranges::find(storages, Storage::int8) == storages.end() &&
      std::ranges::find(storages, Storage::nf4_nested) == storages.end()) {
    EXPECT_TRUE(before == segments_.bytes_of(1, Segment::weights));
  }
}

TEST_P(OtherOrders, AreStoredAsTheirStorageRoundsThem) {
  const BlockTable& block = table_.blocks[1];
  const auto name = "transformer.h.0.mlp.c_proj.weight";  // (8192, kWidth)
  const ParamSpec& param = table_.param_of(entry(name));
  const auto& in_file = values_.at(name);
  std::vector<float> expected(in_file.size());
  for (size_t row = 0; row < kWidth; ++row)
    for (size_t column = 0; column < 8192; ++column)
      expected[row * 8192 + column] = in_file[column * kWidth + row];
  const StoredMatrix matrix = param.stored(table_.compute).front();
  if (param.storage.is_quantised()) {
    std::vector<std::byte> codes(static_cast<size_t>(matrix.rows * matrix.row_bytes));
    std::vector<float> scales(static_cast<size_t>(matrix.rows * matrix.row_scales));
    quantise(matrix, expected, codes.data(), scales.data());
    const std::vector<std::byte> all = segments_.bytes_of(1, Segment::weights);
    const std::byte* its =
        all.data() + param.offset * static_cast<int64_t>(size_of(table_.compute));
    EXPECT_EQ(std::memcmp(its, codes.data(), codes.size()), 0);
    if (matrix.is_nested()) {
      std::vector<std::byte> nested_codes(scales.size());
      std::vector<float> nested(static_cast<size_t>(matrix.n_nested()));
      nest(scales, nested_codes, nested);
      EXPECT_EQ(std::memcmp(its + matrix.scales_begin, nested_codes.data(), nested_codes.size()),
                0);
      EXPECT_EQ(std::memcmp(its + matrix.nested_begin, nested.data(), 4 * nested.size()), 0);
      unnest(nested_codes.data(), nested.data(), 0, scales);
    } else {
      EXPECT_EQ(std::memcmp(its + matrix.scales_begin, scales.data(), 4 * scales.size()), 0);
    }
    for (int64_t row = 0; row < matrix.rows; ++row)
      dequantise(matrix, codes.data() + row * matrix.row_bytes,
                 scales.data() + row * matrix.row_scales, 0,
                 std::span(expected).subspan(static_cast<size_t>(row * matrix.columns),
                                             static_cast<size_t>(matrix.columns)));
  } else {
    std::vector<std::byte> rounded(expected.size() * size_of(matrix.type));
    simd::convert(rounded.data(), matrix.type, expected.data(), DType::f32, std::ssize(expected));
    simd::convert(expected.data(), DType::f32, rounded.data(), matrix.type, std::ssize(expected));
  }
  EXPECT_TRUE(ours(name) == expected) << block.name;
}

INSTANTIATE_TEST_SUITE_P(
    EngineWeights,
    OtherOrders,
    ::testing::Values(Masters{"fp32", DType::f32, false},
                      Masters{"bf16", DType::bf16, false},
                      Masters{"bf16_split", DType::bf16, true},
                      Masters{"fp32_nf4", DType::f32, false, {Storage::nf4}},
                      Masters{"bf16_nested", DType::bf16, false, {Storage::nf4_nested}},
                      Masters{"bf16_int8", DType::bf16, false, {Storage::int8}},
                      Masters{"bf16_split_others",
                              DType::bf16,
                              true,
                              {Storage::f16, Storage::f32, Storage::nf4}}),
    [](const auto& info) { return info.param.name; });

/** Bytes of a layer that a step with one micro-batch fetches to the GPU: for its forward, and for
 * its backward. The norms of the layer are trained. */
int64_t fetched_bytes(std::optional<Storage> storage, std::optional<Storage> of_mlp = {}) {
  ModelTable table = make_decoder_table({.family = DecoderFamily::llama,
                                         .vocab_size = 512,
                                         .hidden_size = 1024,
                                         .num_hidden_layers = 4,
                                         .num_attention_heads = 16,
                                         .num_key_value_heads = 4,
                                         .intermediate_size = 2816,
                                         .max_position_embeddings = 64},
                                        {.compute = DType::bf16});
  constexpr int kLayer = 2;
  for (size_t p = 0; p < table.blocks[kLayer].params.size() && storage; ++p) {
    ParamSpec& param = table.blocks[kLayer].params[p];
    if (param.shape.size() < 2) continue;
    param.trainable = false;
    const bool is_mlp = std::max(param.shape[0], param.shape[1]) > 2048;
    set_storage(table, kLayer, static_cast<int>(p), is_mlp ? of_mlp.value_or(*storage) : *storage);
  }
  StepShape shape =
      make_step_shape(table, {.tokens = 32, .n_seqs_max = 2, .max_length = 16}, {}, 1);
  choose(shape, table, {.place = Place::host});
  int64_t n_bytes = 0, n_fetches = 0;
  for (const Action& action : make_training_list(shape, make_layout(shape), 1)) {
    if (action.verb != Verb::fetch_weights || action.block != kLayer) continue;
    ++n_fetches;
    for (const Bytes& bytes : action.reads)
      n_bytes += bytes.n_bytes;
  }
  EXPECT_EQ(n_fetches, 2);
  return n_bytes;
}

TEST(StoredWeights, CrossPcieInTheirOwnBytes) {
  const int64_t whole = fetched_bytes(std::nullopt);
  constexpr int64_t kNorms = 2 * 1024, kMatrices = 1024 * (1024 + 512 + 1024 + 3 * 2816),
                    kMlp = 1024 * 3 * 2816;
  EXPECT_EQ(whole, 2 * 2 * (kNorms + kMatrices));
  EXPECT_EQ(fetched_bytes(Storage::compute), whole);
  // Half a byte a value, and fp32 scales: one for each 64 values, or one a row.
  const int64_t nf4 = fetched_bytes(Storage::nf4);
  EXPECT_EQ(nf4, 2 * (2 * kNorms + kMatrices / 2 + kMatrices / 64 * 4));
  EXPECT_NEAR(static_cast<double>(nf4) / static_cast<double>(whole), 0.281, 0.001);
  const int64_t mixed = fetched_bytes(Storage::int8, Storage::nf4);
  constexpr int64_t kRows = 1024 + 512 + 1024;
  EXPECT_EQ(mixed, 2 * (2 * kNorms + kMlp / 2 + kMlp / 64 * 4 + (kMatrices - kMlp) + 4 * kRows));
}

}  // namespace
}  // namespace ferry
