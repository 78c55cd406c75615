// The files of a model whose table of words is in pieces: byte for byte those of the same model
// with the whole table, whichever of both writes or reads them. Torch-free.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "models/decoder/decoder_table.h"
#include "src/engine/state/state_files.h"
#include "src/engine/state/weights.h"
#include "src/plan/plan.h"
#include "tests/engine/written_checkpoint.h"
#include "tests/files/test_files.h"

namespace ferry {
namespace {

constexpr int64_t kPadding_row = 5000;  // of the second piece

struct WordsCase {
  const char* name;
  DecoderFamily family;  ///< GPT-2's head is tied
  DType compute;
  simd::Optim optim = simd::Optim::adamw;
  bool is_split = false;
  bool freezes_words = false;
};

/** A model in memory, its words whole or in pieces. */
class ModelInMemory {
 public:
  ModelInMemory(const WordsCase& its, bool is_cut)
      : table_(make_table(its, is_cut)), request_(request_of(its)) {}

  static ModelTable make_table(const WordsCase& its, bool is_cut) {
    TableOptions options = {.compute = its.compute};
    if (is_cut) options.piece_elements_max = 1;
    ModelTable table = make_decoder_table({.family = its.family,
                                           .vocab_size = 2 * 4096 + 61,
                                           .padding_row = kPadding_row,
                                           .hidden_size = 24,
                                           .num_hidden_layers = 1,
                                           .num_attention_heads = 3,
                                           .num_key_value_heads = 3,
                                           .intermediate_size = 40,
                                           .max_position_embeddings = 16},
                                          options);
    for (const HfEntry& entry : table.hf_names)
      if (its.freezes_words && entry.file_rows() > 4096)
        table.blocks[entry.block].params[entry.param].trainable = false;
    for (BlockTable& block : table.blocks)
      block.arrange();
    return table;
  }
  static PlanRequest request_of(const WordsCase& its) {
    PlanRequest request;
    request.optim = its.optim;
    request.split_master = its.is_split;
    return request;
  }
  StepShape make_shape() const {
    StepShape shape =
        make_step_shape(table_, {.tokens = 32, .n_seqs_max = 2, .max_length = 16}, request_, 1);
    choose(shape, table_, {.place = Place::host});
    return shape;
  }

  /** Numbers that depend on a state's place in its parameter of the whole model alone. */
  void set_states() {
    for (const HfEntry& entry : table_.hf_names) {
      if (!table_.param_of(entry).trainable) continue;
      const EntryExtent extent = extent_of(table_, entry);
      const int64_t first = first_element_of(table_, entry);
      for (Segment segment : state_segments(shape_.optim)) {
        const ByteRange range =
            element_bytes(shape_, entry.block, segment, extent.begin, extent.n_elements);
        const int64_t width = range.n_bytes / extent.n_elements;
        set(entry.block, segment, range, first * width);
        if (shape_.optim == simd::Optim::adamw_8bit) {
          const ParamSpec& param = table_.param_of(entry);
          set(entry.block, segment,
              exponent_bytes(shape_, entry.block,
                             {.offset = param.offset, .n_elements = param.n_elements}),
              first / simd::kStateBlock);
        }
      }
    }
  }

  std::map<std::string, TensorChecksums> write_checkpoint(const std::filesystem::path& directory,
                                                          bool last_first) {
    return test::write_checkpoint({table_, shape_, segments_.frozen(), *device_, *pool_, memory_},
                                  directory, last_first)
        .checksums;
  }
  void save(const std::filesystem::path& directory) {
    save_weights(table_, segments_, directory, DType::f32, INT64_MAX);
  }

  const ModelTable& table() const { return table_; }
  const StepShape& shape() const { return shape_; }
  Segments& segments() { return segments_; }

 private:
  void set(int block, Segment segment, const ByteRange& range, int64_t first) {
    std::vector<std::byte> bytes(static_cast<size_t>(range.n_bytes));
    for (size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<std::byte>((first + static_cast<int64_t>(i)) %
                                        (segment == Segment::state_0 ? 113 : 109));
    segments_.set_bytes(block, segment, range.offset, bytes);
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

class WordsInPieces : public ::testing::TestWithParam<WordsCase> {
 protected:
  ModelInMemory whole_{GetParam(), false}, cut_{GetParam(), true};
};

void expect_same_file(const std::filesystem::path& a,
                      const std::filesystem::path& b,
                      const char* name) {
  EXPECT_TRUE(test::read_file(a / name) == test::read_file(b / name)) << name;
}
void expect_same_files(const std::filesystem::path& a, const std::filesystem::path& b) {
  for (const char* name :
       {"model.safetensors", "state/adam_m.safetensors", "state/adam_v.safetensors"})
    expect_same_file(a, b, name);
}

TEST_P(WordsInPieces, AreDrawnAsTheWholeTable) {
  ASSERT_GT(cut_.table().blocks.size(), whole_.table().blocks.size() + 3);
  for (ModelInMemory* run : {&whole_, &cut_})
    initialise_weights(run->table(), 3, run->segments());
  const test::TempDir of_whole, of_cut;
  whole_.save(of_whole.path());
  cut_.save(of_cut.path());
  expect_same_file(of_whole.path(), of_cut.path(), "model.safetensors");
  const CheckpointReader file = CheckpointReader::open(of_cut.path());
  std::vector<float> row(24, 1);
  CheckpointReader::read_part(file.get(cut_.table().hf_names.front().hf_name), kPadding_row * 24,
                              row);
  EXPECT_EQ(row, std::vector<float>(24));
}

TEST_P(WordsInPieces, HaveTheFilesOfTheWholeTable) {
  // The base model has values that 16 bits do not have: frozen ones are saved as they were there.
  const test::TempDir base;
  {
    const std::vector<TensorSpec> tensors = hf_tensors(whole_.table(), DType::f32);
    CheckpointWriter writer(base.path(), tensors, INT64_MAX);
    for (const TensorSpec& tensor : tensors) {
      int64_t n = 1;
      for (int64_t size : tensor.shape)
        n *= size;
      std::vector<float> values(static_cast<size_t>(n));
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = 1.0f / static_cast<float>(3 + i % 10007);
      writer.write(tensor.name, std::as_bytes(std::span(values)));
    }
    writer.finish();
  }
  for (ModelInMemory* run : {&whole_, &cut_}) {
    const LoadReport report =
        load_weights(run->table(), CheckpointReader::open(base.path()), 1, run->segments());
    EXPECT_TRUE(report.initialised.empty() && report.redrawn.empty() && report.unused.empty());
    run->set_states();
  }
  const test::TempDir of_whole, of_cut;
  const auto sums = whole_.write_checkpoint(of_whole.path(), false);
  EXPECT_EQ(cut_.write_checkpoint(of_cut.path(), true), sums);
  expect_same_files(of_whole.path(), of_cut.path());

  // Each reads what the other wrote.
  constexpr std::array kStates = {Segment::master, Segment::state_0, Segment::state_1};
  const test::TempDir again_whole, again_cut;
  ModelInMemory other_whole(GetParam(), false), other_cut(GetParam(), true);
  load_states(other_whole.table(), other_whole.shape(), of_cut.path(), sums, kStates,
              other_whole.segments());
  load_states(other_cut.table(), other_cut.shape(), of_whole.path(), sums, kStates,
              other_cut.segments());
  EXPECT_EQ(other_whole.write_checkpoint(again_whole.path(), true), sums);
  EXPECT_EQ(other_cut.write_checkpoint(again_cut.path(), false), sums);
  expect_same_files(again_whole.path(), of_whole.path());
  expect_same_files(again_cut.path(), of_whole.path());
  for (int b = 0; b < cut_.shape().n_blocks(); ++b)
    EXPECT_TRUE(other_cut.segments().bytes_of(b, Segment::weights) ==
                cut_.segments().bytes_of(b, Segment::weights))
        << cut_.table().blocks[b].name;

  const test::TempDir model;
  other_cut.save(model.path());
  expect_same_file(model.path(), of_whole.path(), "model.safetensors");
}

/** Somebody writes to the base model while its frozen words are in use. */
TEST_P(WordsInPieces, AreNotSavedFromAFileThatSomebodyHasWrittenTo) {
  if (!GetParam().freezes_words) GTEST_SKIP() << "nothing is frozen";
  const test::TempDir base, saved;
  initialise_weights(whole_.table(), 3, whole_.segments());
  whole_.save(base.path());
  load_weights(cut_.table(), CheckpointReader::open(base.path()), 1, cut_.segments());
  const std::filesystem::path file = base / "model.safetensors";
  std::fstream writer(file, std::ios::in | std::ios::out | std::ios::binary);
  const CheckpointReader reader = CheckpointReader::open(base.path());
  writer.seekp(static_cast<std::streamoff>(std::filesystem::file_size(file)) / 3);
  writer << "ferry";
  writer.close();
  const std::string said = test::error_of([&] { cut_.save(saved.path()); });
  EXPECT_NE(said.find("has other values of '"), std::string::npos) << said;
}

INSTANTIATE_TEST_SUITE_P(
    EngineWords,
    WordsInPieces,
    ::testing::Values(
        WordsCase{"llama_fp32", DecoderFamily::llama, DType::f32},
        WordsCase{"gpt2_bf16", DecoderFamily::gpt2, DType::bf16},
        WordsCase{"llama_8bit", DecoderFamily::llama, DType::bf16, simd::Optim::adamw_8bit,
                  /*is_split=*/true},
        WordsCase{"gpt2_bf16_states", DecoderFamily::gpt2, DType::bf16, simd::Optim::adamw_bf16},
        WordsCase{"llama_frozen", DecoderFamily::llama, DType::bf16, simd::Optim::adamw, false,
                  /*freezes_words=*/true}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ferry
