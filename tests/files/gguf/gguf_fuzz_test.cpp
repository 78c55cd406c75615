// Changed files: each either opens with every tensor inside the file, or throws Error. Crashes,
// reads out of bounds and other exceptions are what the sanitizer builds look for.

#include <cstring>
#include <numeric>

#include "src/files/gguf/gguf.h"
#include "src/files/gguf/gguf_writer.h"
#include "tests/files/test_files.h"

namespace ferry {
namespace {

using test::read_file;
using test::TempDir;

/** SplitMix64: the same changes everywhere. */
class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  size_t below(size_t n) { return static_cast<size_t>(next() % n); }

 private:
  uint64_t state_;
};

std::string changed(std::string bytes, Draws& draws) {
  static constexpr uint64_t kNumbers[] = {
      0, 1, 2, 3, 8, 9, 12, 31, 32, 33, 255, 65535, UINT32_MAX, 1ull << 31, 1ull << 62, UINT64_MAX};
  const size_t n_changes = 1 + draws.below(3);
  for (size_t i = 0; i < n_changes && bytes.size() > 16; ++i) {
    const size_t at = draws.below(bytes.size() - 8);
    switch (draws.below(6)) {
      case 0:
        bytes[at] = static_cast<char>(draws.below(256));
        break;
      case 1:
        bytes.erase(at, 1 + draws.below(16));
        break;
      case 2:
        std::memcpy(bytes.data() + at, &kNumbers[draws.below(std::size(kNumbers))], 8);
        break;
      case 3:
        std::memcpy(bytes.data() + at, &kNumbers[draws.below(std::size(kNumbers))], 4);
        break;
      case 4:
        bytes.resize(at);
        break;
      default:
        bytes[at] ^= static_cast<char>(1 << draws.below(8));
    }
  }
  return bytes;
}

/** True when the file opened; every value is then read. */
bool opens_gguf_consistently(const std::filesystem::path& path) {
  try {
    const GgufFile file = GgufFile::open(path);
    size_t n_bytes = 0;
    float sum = 0;
    for (const GgufTensor& tensor : file.tensors()) {
      EXPECT_EQ(file.find(tensor.name), &tensor);
      EXPECT_EQ(std::ssize(tensor.bytes), bytes_of(tensor.type, tensor.rows() * tensor.columns()));
      std::vector<float> row(static_cast<size_t>(tensor.columns()));
      for (int64_t r = 0; r < tensor.rows(); ++r) {
        tensor.read_row(r, row);
        sum += std::accumulate(row.begin(), row.end(), 0.0f);
      }
      n_bytes += tensor.bytes.size();
    }
    EXPECT_LE(n_bytes, std::filesystem::file_size(path));
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::data) << error.what();
    return false;
  }
}

TEST(GgufFuzz, ChangedFilesOpenConsistentlyOrThrowError) {
  TempDir dir;
  {
    GgufWriter writer(
        dir / "whole.gguf",
        {{"general.architecture", GgufValue::text("llama")},
         {"n", GgufValue::u32(7)},
         {"x", GgufValue::f32(0.5f)},
         {"tokens", GgufValue::texts({"a", "bc"})},
         {"types", GgufValue::i32s({1, 3})}},
        {{"a", GgufType::f32, {2, 3}}, {"b", GgufType::q8_0, {1, 32}}, {"c", GgufType::bf16, {4}}});
    writer.write("a", std::vector<float>{1, 2, 3, 4, 5, 6});
    writer.write("b", std::vector<float>(32, 2));
    writer.write("c", std::vector<float>(4, 3));
    writer.finish();
  }
  const std::string whole = read_file(dir / "whole.gguf");
  Draws draws(2026);
  size_t n_opened = 0;
  constexpr size_t kFiles = 4000;
  for (size_t i = 0; i < kFiles; ++i)
    n_opened += opens_gguf_consistently(dir.write("x.gguf", changed(whole, draws)));
  EXPECT_GT(n_opened, kFiles / 100);
  EXPECT_LT(n_opened, kFiles * 2 / 3);
}

}  // namespace
}  // namespace ferry
