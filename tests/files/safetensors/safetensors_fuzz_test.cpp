// Mutated files: each either opens with every span inside the file, or throws Error. Crashes, reads
// out of bounds and other exceptions are what the sanitizer builds look for.

#include <numeric>

#include "src/files/hf/checkpoint_reader.h"
#include "src/files/safetensors/safetensors.h"
#include "tests/files/test_files.h"

namespace ferry {
namespace {

using test::raw_safetensors;
using test::TempDir;

/** SplitMix64: the same mutations everywhere. */
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  size_t below(size_t n) {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return static_cast<size_t>((z ^ (z >> 31)) % n);
  }

 private:
  uint64_t state_;
};

std::string mutate(std::string text, Random& random) {
  static constexpr std::string_view kPieces[] = {"{",
                                                 "}",
                                                 "[",
                                                 "]",
                                                 ",",
                                                 ":",
                                                 "\"",
                                                 "0",
                                                 "9",
                                                 "-1",
                                                 "1e9",
                                                 "18446744073709551615",
                                                 "9223372036854775807",
                                                 "null",
                                                 "\"F32\"",
                                                 "\"F16\"",
                                                 "\"BOOL\"",
                                                 "\"a\"",
                                                 "\"shape\"",
                                                 "\"data_offsets\":[0,0]",
                                                 "\\u0000",
                                                 "\xff",
                                                 " "};
  const size_t n_changes = 1 + random.below(4);
  for (size_t i = 0; i < n_changes && !text.empty(); ++i) {
    const size_t at = random.below(text.size());
    switch (random.below(6)) {
      case 0:
        text[at] = static_cast<char>(random.below(256));
        break;
      case 1:
        text.erase(at, 1 + random.below(16));
        break;
      case 2:
        text.insert(at, kPieces[random.below(std::size(kPieces))]);
        break;
      case 3:
        text.insert(at, text.substr(random.below(text.size()), random.below(40)));
        break;
      case 4:
        text.resize(at);
        break;
      default:
        text[at] ^= static_cast<char>(1 << random.below(8));
    }
  }
  return text;
}

/** True when the file opened; every span is then read in full and the spans tile the data. */
bool opens_consistently(const std::filesystem::path& path) {
  try {
    auto file = SafetensorsFile::open(path);
    size_t n_bytes = 0, sum = 0;
    for (const StoredTensor& tensor : file.tensors()) {
      EXPECT_EQ(file.find(tensor.name), &tensor);
      EXPECT_EQ(static_cast<int64_t>(tensor.bytes.size()) * 8,
                tensor.n_elements() * bits_of(tensor.type));
      for (std::byte b : tensor.bytes)
        sum += static_cast<size_t>(b);
      n_bytes += tensor.bytes.size();
    }
    EXPECT_LE(n_bytes + 8, std::filesystem::file_size(path));
    EXPECT_LE(sum, n_bytes * 255);
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::data) << error.what();
    return false;
  }
}

TEST(SafetensorsFuzz, MutatedFilesOpenConsistentlyOrThrowError) {
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("b":{"dtype":"F16","shape":[4],"data_offsets":[24,32]},"c":{"dtype":"U8","shape":[0],"data_offsets":[32,32]}})";
  TempDir dir;
  Random random(2024);
  size_t n_opened = 0;
  constexpr size_t kMutations = 4000;
  for (size_t i = 0; i < kMutations; ++i) {
    // Half change the header alone and keep its length true, so that the parser is reached; half
    // change anything.
    std::string text = random.below(2) ? raw_safetensors(mutate(header, random), 32)
                                       : mutate(raw_safetensors(header, 32), random);
    n_opened += opens_consistently(dir.write("x.safetensors", text));
  }
  EXPECT_GT(
      n_opened,
      kMutations / 100);  // some mutations are harmless; else the mutator tests nothing but JSON
  EXPECT_LT(n_opened, kMutations / 2);
}

TEST(SafetensorsFuzz, MutatedIndexesOpenOrThrowError) {
  TempDir dir;
  const std::string shard = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  dir.write("one.safetensors", raw_safetensors(shard, 4));
  const std::string index = R"({"metadata":{"total_size":4},"weight_map":{"a":"one.safetensors"}})";
  Random random(7);
  size_t n_opened = 0;
  for (int i = 0; i < 1000; ++i) {
    dir.write("model.safetensors.index.json", mutate(index, random));
    try {
      n_opened += CheckpointReader::open(dir.path()).find("a") != nullptr;
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::data) << error.what();
    }
  }
  EXPECT_GT(n_opened, 10u);
  EXPECT_LT(n_opened, 990u);
}

}  // namespace
}  // namespace ferry
