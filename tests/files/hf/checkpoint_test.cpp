#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <limits>
#include <memory>
#include <numeric>
#include <random>

#include "src/files/hf/checkpoint_reader.h"
#include "src/files/safetensors/safetensors_writer.h"
#include "src/files/write/atomic_file.h"
#include "tests/files/test_files.h"

namespace ferry {
namespace {

using test::error_of;
using test::FileSizeLimit;
using test::raw_safetensors;
using test::read_file;
using test::run_python;
using test::TempDir;
using test::venv_python;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<TensorSpec> kTensors = {
    {"w.b", DType::f32, {2, 3}}, {"w.a", DType::f32, {4}},      {"half", DType::f16, {3, 2}},
    {"brain", DType::bf16, {5}}, {"ids", DType::i64, {1, 2}},   {"small", DType::i32, {3}},
    {"byte", DType::u8, {3}},    {"empty", DType::f32, {0, 4}}, {"scalar", DType::f32, {}}};

/** Bytes that tell tensor and place: never twice the same in one tensor. */
std::vector<std::byte> bytes_for(const TensorSpec& tensor) {
  size_t n = static_cast<size_t>(bits_of(tensor.type)) / 8;
  for (int64_t size : tensor.shape)
    n *= static_cast<size_t>(size);
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i)
    bytes[i] = static_cast<std::byte>(i * 7 + tensor.name.size() * 31);
  return bytes;
}

std::vector<float> values_of(const CheckpointReader& reader, const std::string& name) {
  std::vector<float> all;
  reader.read_f32(reader.get(name), [&](std::span<const float> values, int64_t first_element) {
    EXPECT_EQ(first_element, static_cast<int64_t>(all.size()));
    all.insert(all.end(), values.begin(), values.end());
  });
  return all;
}

/** The part of this process's memory that is pages of files. */
int64_t mapped_file_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssFile:")) return std::stoll(line.substr(8)) * 1024;
  ADD_FAILURE() << "no RssFile";
  return 0;
}

template <typename Writer>
void write_all(Writer& writer, const std::vector<TensorSpec>& tensors) {
  for (const TensorSpec& tensor : tensors) {
    auto bytes = bytes_for(tensor);
    auto span = std::span<const std::byte>(bytes);
    writer.write(tensor.name, span.first(span.size() / 3));  // in pieces
    writer.write(tensor.name, span.subspan(span.size() / 3));
  }
  writer.finish();
}

void expect_all(const CheckpointReader& reader, const std::vector<TensorSpec>& tensors) {
  EXPECT_EQ(reader.tensors().size(), tensors.size());
  for (const TensorSpec& tensor : tensors) {
    const StoredTensor& stored = reader.get(tensor.name, tensor.shape);
    auto bytes = bytes_for(tensor);
    EXPECT_EQ(stored.type, tensor.type);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), stored.bytes.begin(), stored.bytes.end()))
        << tensor.name;
  }
}

TEST(SafetensorsWriter, WhatItWritesReadsBack) {
  TempDir dir;
  SafetensorsWriter writer(dir / "model.safetensors", kTensors);
  EXPECT_FALSE(std::filesystem::exists(dir / "model.safetensors"));
  write_all(writer, kTensors);
  expect_all(CheckpointReader::open(dir.path()), kTensors);
  EXPECT_EQ(dir.n_entries(), 1u);  // no temporary left
  const std::string text = read_file(dir / "model.safetensors");
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, text.data(), 8);
  EXPECT_EQ(header_bytes % 8, 0u);
}

TEST(SafetensorsWriter, AbandonedLeavesTheOldFileAlone) {
  TempDir dir;
  dir.write("model.safetensors", "old");
  {
    SafetensorsWriter writer(dir / "model.safetensors", {{"a", DType::f32, {1000}}});
    writer.write("a", std::vector<std::byte>(100));
  }
  EXPECT_EQ(read_file(dir / "model.safetensors"), "old");
  EXPECT_EQ(dir.n_entries(), 1u);
}

TEST(SafetensorsWriterDeathTest, MisuseIsOurBug) {
  TempDir dir;
  SafetensorsWriter writer(dir / "x", {{"a", DType::f32, {2}}});
  EXPECT_DEATH(writer.write("b", {}), "was not declared");
  EXPECT_DEATH(writer.write("a", std::vector<std::byte>(9)), "has room for 8 bytes, not 9");
  EXPECT_DEATH(writer.finish(), "lacks 8 bytes");
}

TEST(CheckpointWriter, ShardsByBytesAndNamesThem) {
  TempDir dir;
  // 24 + 16 bytes fill the first shard; "half" no longer fits.
  CheckpointWriter writer(dir.path(), kTensors, 40);
  EXPECT_THAT(writer.file_names(),
              ElementsAre("model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                          "model-00003-of-00003.safetensors"));
  write_all(writer, kTensors);
  EXPECT_EQ(dir.n_entries(), 4u);
  auto reader = CheckpointReader::open(dir.path());
  expect_all(reader, kTensors);
  EXPECT_EQ(reader.total_bytes(), 24 + 16 + 12 + 10 + 16 + 12 + 3 + 0 + 4);
  EXPECT_THAT(read_file(dir / "model.safetensors.index.json"), HasSubstr(R"("total_size": 97)"));
  EXPECT_THAT(read_file(dir / "model.safetensors.index.json"),
              HasSubstr(R"("half": "model-00002-of-00003.safetensors")"));
}

TEST(CheckpointWriter, ReplacesAnEarlierExportOfAnotherLayout) {
  TempDir dir;
  dir.write("config.json", "{}");
  CheckpointWriter sharded(dir.path(), kTensors, 40);
  write_all(sharded, kTensors);
  CheckpointWriter whole(dir.path(), kTensors, 1 << 20);
  write_all(whole, kTensors);
  EXPECT_EQ(dir.n_entries(), 2u);
  expect_all(CheckpointReader::open(dir.path()), kTensors);
  CheckpointWriter again(dir.path(), kTensors, 40);
  write_all(again, kTensors);
  EXPECT_FALSE(std::filesystem::exists(dir / "model.safetensors"));
  expect_all(CheckpointReader::open(dir.path()), kTensors);
}

// As a checkpoint leaves: three files beside each other, one buffer of the least size, tensors in
// any groups, shards that end anywhere.
TEST(CheckpointWriter, SeveralGoThroughOneSmallBuffer) {
  constexpr size_t kPage = 4096;
  constexpr auto kBuffer_bytes = WriteBehind::kPiece_slots * WriteBehind::kSlot_bytes;
  const std::unique_ptr<std::byte, decltype(&std::free)> memory(
      static_cast<std::byte*>(std::aligned_alloc(kPage, kBuffer_bytes)), &std::free);
  std::mt19937_64 random(7);
  std::vector<TensorSpec> tensors;
  for (int i = 0; i < 40; ++i) {
    const int64_t longest = i % 10 == 9 ? 3'000'000 : i % 3 == 0 ? 5 : 200'000;
    tensors.push_back({"layer." + std::to_string(i),
                       DType::f32,
                       {1 + static_cast<int64_t>(random() % static_cast<uint64_t>(longest))}});
  }
  const TempDir dir;
  WriteBehind behind({memory.get(), kBuffer_bytes});
  const std::vector<std::string> stems = {"model", "adam_m", "adam_v"};
  std::deque<CheckpointWriter> writers;
  for (const std::string& stem : stems)
    writers.emplace_back(dir.path(), tensors, 6'000'000, stem).write_directly(behind);
  ASSERT_GT(writers[0].file_names().size(), 3u);
  const auto fill = [&](CheckpointWriter& writer, std::span<const std::string> names) {
    std::vector<std::byte> bytes;
    std::vector<TensorPart> wholes;
    for (const std::string& name : names) {
      const auto more = bytes_for(*std::ranges::find(tensors, name, &TensorSpec::name));
      bytes.insert(bytes.end(), more.begin(), more.end());
      wholes.push_back({name, 0, std::ssize(more)});
    }
    size_t at = 0;
    writer.fill(wholes, [&](std::span<const std::span<std::byte>> parts) {
      for (const auto part : parts) {
        std::memcpy(part.data(), bytes.data() + at, part.size());
        at += part.size();
      }
    });
    writer.end_run();
    EXPECT_EQ(at, bytes.size());
  };
  std::vector<std::string> names;
  for (const TensorSpec& tensor : tensors)
    names.push_back(tensor.name);
  std::ranges::sort(names);
  for (std::span<const std::string> left = names; !left.empty();) {
    const auto n = std::min<size_t>(left.size(), 1 + random() % 6);
    for (CheckpointWriter& writer : writers)
      fill(writer, left.first(n));
    left = left.subspan(n);
  }
  for (size_t i = 0; i < stems.size(); ++i) {
    writers[i].finish();
    expect_all(CheckpointReader::open(dir.path(), stems[i]), tensors);
  }
}

TEST(CheckpointReader, NamesWhatIsWrongWithShards) {
  TempDir dir;
  const std::string one =
      raw_safetensors(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4);
  auto index = [&](std::string_view map) {
    dir.write("model.safetensors.index.json", fmt::format(R"({{"weight_map":{}}})", map));
  };
  auto open = [&] { return error_of([&] { CheckpointReader::open(dir.path()); }); };
  EXPECT_THAT(open(), HasSubstr("has neither model.safetensors nor"));
  dir.write("1.safetensors", one);
  index(R"({"a":"1.safetensors","b":"2.safetensors"})");
  EXPECT_THAT(open(), HasSubstr("names the shard '2.safetensors', which is missing"));
  index(R"({"a":"1.safetensors","b":"1.safetensors"})");
  EXPECT_THAT(open(), HasSubstr("tensor 'b' lies in '1.safetensors', which has no such tensor"));
  dir.write("2.safetensors", one);
  index(R"({"a":"1.safetensors","b":"2.safetensors"})");
  EXPECT_THAT(open(), HasSubstr("tensor 'a' is in"));
  index(R"({"a":"../1.safetensors"})");
  EXPECT_THAT(open(), HasSubstr("weight_map.a is '../1.safetensors', which is no file's name"));
  index(R"({"a":["1.safetensors"]})");
  EXPECT_THAT(open(), HasSubstr("weight_map.a is [\"1.safetensors\"], expected a text"));
  index("{}");
  EXPECT_THAT(open(), HasSubstr("lists no tensors"));
  dir.write("model.safetensors.index.json", "{}");
  EXPECT_THAT(open(), HasSubstr("weight_map is missing"));
  index("[");
  EXPECT_THAT(open(), HasSubstr("is not valid JSON: line 1"));
}

TEST(CheckpointReader, TellsShapeTypeAndAbsenceApart) {
  TempDir dir;
  auto path =
      dir.write("x.safetensors",
                raw_safetensors(R"({"bert.w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                                R"("old":{"dtype":"I16","shape":[4],"data_offsets":[24,32]},)"
                                R"("ids":{"dtype":"I64","shape":[1],"data_offsets":[32,40]}})",
                                40));
  auto reader = CheckpointReader::open(path);
  const int64_t other[] = {3, 2};
  EXPECT_THAT(error_of([&] { reader.get("bert.w", other); }),
              HasSubstr("'bert.w' has shape [2, 3], expected [3, 2]"));
  EXPECT_THAT(error_of([&] { reader.get("w"); }),
              HasSubstr("has no tensor 'w' among its 3 - it has 'bert.w'"));
  EXPECT_NE(reader.find("old"), nullptr);  // listed, refused only when asked for
  EXPECT_THAT(error_of([&] { reader.get("old"); }),
              HasSubstr("'old' is of type I16, expected F64, F32"));
  EXPECT_THAT(error_of([&] { values_of(reader, "ids"); }),
              HasSubstr("type I64, expected F64, F32, F16 or BF16"));
}

TEST(CheckpointReader, ReadsEachFloatType) {
  TempDir dir;
  const std::vector<TensorSpec> tensors = {
      {"f", DType::f32, {3, 2}}, {"h", DType::f16, {3, 2}}, {"b", DType::bf16, {3, 2}}};
  {
    SafetensorsWriter writer(dir / "model.safetensors", tensors);
    const float f[] = {0, 1, 2, 3, 4, 5};
    const uint16_t h[] = {0x0000, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500};  // 0..5 in fp16
    const uint16_t b[] = {0x0000, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0};  // 0..5 in bf16
    writer.write("f", std::as_bytes(std::span(f)));
    writer.write("h", std::as_bytes(std::span(h)));
    writer.write("b", std::as_bytes(std::span(b)));
    writer.finish();
  }
  auto reader = CheckpointReader::open(dir.path());
  for (const char* name : {"f", "h", "b"})
    EXPECT_THAT(values_of(reader, name), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(CheckpointReader, RoundsDoubles) {
  const TempDir dir;
  const double values[] = {0.1, -3, 1e-50, 1e300};
  std::string file =
      raw_safetensors(R"({"d":{"dtype":"F64","shape":[4],"data_offsets":[0,32]}})", 0);
  file.append(reinterpret_cast<const char*>(values), sizeof values);
  dir.write("model.safetensors", file);
  const auto reader = CheckpointReader::open(dir.path());
  EXPECT_THAT(values_of(reader, "d"),
              ElementsAre(0.1f, -3, 0, std::numeric_limits<float>::infinity()));
  EXPECT_EQ(reader.total_bytes(), 32);
}

TEST(CheckpointReader, ReadsPiecesInOrderAndKeepsNoneOfThem) {
  TempDir dir;
  constexpr int64_t kElements = (20 << 20) / 4 + 3;
  constexpr int64_t kHeld_bytes = 6 << 20;  // a piece, and what the kernel maps or counts late
  std::vector<float> written(kElements);
  std::iota(written.begin(), written.end(), 0.0f);
  const float before[] = {7};  // so that pages and pieces do not begin together
  {
    SafetensorsWriter writer(
        dir / "model.safetensors",
        std::vector<TensorSpec>{{"a", DType::f32, {1}}, {"b", DType::f32, {kElements}}});
    writer.write("a", std::as_bytes(std::span(before)));
    writer.write("b", std::as_bytes(std::span(written)));
    writer.finish();
  }
  auto reader = CheckpointReader::open(dir.path());
  const int64_t mapped_before = mapped_file_bytes();
  int64_t n_pieces = 0, next = 0;
  reader.read_f32(reader.get("b"), [&](std::span<const float> values, int64_t first_element) {
    ASSERT_EQ(first_element, next);
    ASSERT_TRUE(std::equal(values.begin(), values.end(), written.begin() + first_element));
    EXPECT_LT(mapped_file_bytes(), mapped_before + kHeld_bytes);
    next += static_cast<int64_t>(values.size());
    ++n_pieces;
  });
  EXPECT_EQ(next, kElements);
  EXPECT_EQ(n_pieces, 11);
  EXPECT_LT(mapped_file_bytes(), mapped_before + kHeld_bytes);
}

TEST(SafetensorsWriter, SameBytesAsTheReferenceBothWays) {
  if (!std::filesystem::exists(venv_python())) GTEST_SKIP() << "no .venv with python";
  TempDir dir;
  if (!run_python(dir, "import safetensors.torch").first) GTEST_SKIP() << "no safetensors in .venv";
  SafetensorsWriter writer(dir / "ours.safetensors", kTensors);
  write_all(writer, kTensors);
  // The reference reads ours, writes the same tensors, and both files are equal byte for byte.
  auto [ok, log] = run_python(dir, fmt::format(R"(
from safetensors.torch import load_file, save_file
d = {:?}
tensors = load_file(d + "/ours.safetensors")
assert len(tensors) == 9 and tuple(tensors["w.b"].shape) == (2, 3) and tensors["scalar"].dim() == 0
save_file(tensors, d + "/theirs.safetensors", metadata={{"format": "pt"}})
)",
                                               dir.path().string()));
  ASSERT_TRUE(ok) << log;
  EXPECT_EQ(read_file(dir / "ours.safetensors"), read_file(dir / "theirs.safetensors"));
  expect_all(CheckpointReader::open(dir / "theirs.safetensors"), kTensors);
}

TEST(AtomicFile, NoRoomIsAFaultOfTheMachineAndLeavesNothing) {
  TempDir dir;
  dir.write("a.txt", "old");
  {
    FileSizeLimit limit(1000);
    EXPECT_THAT(
        error_of([&] { write_text_file(dir / "a.txt", std::string(2000, 'x')); }, Fault::machine),
        HasSubstr("a.txt' could not be written"));
    EXPECT_THAT(error_of(
                    [&] {
                      SafetensorsWriter(dir / "b", {{"t", DType::f32, {1000}}});
                    },
                    Fault::machine),
                HasSubstr("b' could not be given its space"));
  }
  EXPECT_EQ(read_file(dir / "a.txt"), "old");
  EXPECT_EQ(dir.n_entries(), 1u);
}

TEST(AtomicFile, UnwritablePlacesAreNamed) {
  TempDir dir;
  EXPECT_THAT(error_of([&] { write_text_file(dir / "no/such/a.txt", "x"); }, Fault::machine),
              HasSubstr("the directory does not exist"));
  EXPECT_THAT(error_of([&] { write_text_file("/proc/ferry-test", "x"); }, Fault::machine),
              HasSubstr("'/proc/ferry-test' could not be created"));
  dir.write("file", "");
  EXPECT_THAT(error_of([&] { make_directories(dir / "file/below"); }, Fault::machine),
              HasSubstr("could not be created"));
  EXPECT_THAT(error_of([&] { CheckpointWriter(dir / "file", kTensors, 100); }, Fault::machine),
              HasSubstr("could not be created"));
  std::filesystem::create_directory(dir / "taken");
  EXPECT_THAT(error_of([&] { write_text_file(dir / "taken", "x"); }, Fault::machine),
              HasSubstr("renamed into place"));
  EXPECT_EQ(dir.n_entries(), 2u);
}

}  // namespace
}  // namespace ferry
