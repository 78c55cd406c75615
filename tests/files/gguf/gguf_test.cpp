// The reader and the writer of GGUF files: what is written is read, hand-made bytes of other
// writers are read, and files that are wrong are refused with what is wrong about them.

#include "src/files/gguf/gguf.h"

#include <gmock/gmock.h>

#include <functional>

#include "src/files/gguf/gguf_writer.h"
#include "tests/files/hostile_files.h"
#include "tests/files/test_files.h"

namespace ferry {
namespace {

using test::error_of;
using test::read_file;
using test::TempDir;
using testing::ElementsAre;
using testing::HasSubstr;

/** The bytes of a file, put together by hand. */
class Bytes {
 public:
  template <typename Number>
  Bytes& put(Number number) {
    text_.append(reinterpret_cast<const char*>(&number), sizeof number);
    return *this;
  }
  Bytes& text(std::string_view value) {
    put<uint64_t>(value.size());
    text_ += value;
    return *this;
  }
  Bytes& raw(std::string_view value) {
    text_ += value;
    return *this;
  }
  Bytes& pad(size_t alignment = 32) {
    text_.resize((text_.size() + alignment - 1) / alignment * alignment);
    return *this;
  }
  Bytes& begin(uint64_t n_tensors, uint64_t n_keys, uint32_t version = 3) {
    return raw("GGUF").put(version).put(n_tensors).put(n_keys);
  }
  /** `sizes`: the fastest first. */
  Bytes& tensor(std::string_view name,
                const std::vector<int64_t>& sizes,
                uint32_t type,
                uint64_t offset) {
    text(name).put(static_cast<uint32_t>(sizes.size()));
    for (const int64_t size : sizes)
      put(size);
    return put(type).put(offset);
  }
  const std::string& str() const { return text_; }

 private:
  std::string text_;
};

std::string error_of_bytes(const std::string& bytes) {
  TempDir dir;
  const auto path = dir.write("x.gguf", bytes);
  return error_of([&] { GgufFile::open(path); });
}

GgufKeys some_keys() {
  return {{"general.architecture", GgufValue::text("llama")},
          {"llama.block_count", GgufValue::u32(4'000'000'000)},
          {"llama.rope.freq_base", GgufValue::f32(1e4f)},
          {"flag", GgufValue::flag(true)},
          {"tokens", GgufValue::texts({"a", "", "\u2581b"})},
          {"scores", GgufValue::f32s({-1, 0.5})},
          {"types", GgufValue::i32s({1, -2, 6})},
          {"nothing", GgufValue::texts({})},
          {"large", {GgufKind::i64, GgufKind::u32, int64_t{-1} << 40}},
          {"double", {GgufKind::f64, GgufKind::u32, 0.1}},
          {"short", {GgufKind::u16, GgufKind::u32, int64_t{65535}}}};
}

TEST(Gguf, ReadsWhatItWrote) {
  TempDir dir;
  const GgufKeys keys = some_keys();
  {
    GgufWriter writer(dir / "x.gguf", keys,
                      {{"a.weight", GgufType::f32, {2, 3}},
                       {"b.bias", GgufType::f32, {5}},
                       {"c.weight", GgufType::f16, {1, 2, 2}}});
    writer.write("a.weight", std::vector<float>{1, 2, 3});
    writer.write("c.weight", std::vector<float>{0.5, -1, 2, 65504});
    writer.write("a.weight", std::vector<float>{4, 5, 6});
    writer.write("b.bias", std::vector<float>{1, 1, 2, 3, 5});
    EXPECT_FALSE(std::filesystem::exists(dir / "x.gguf"));
    writer.finish();
  }
  const GgufFile file = GgufFile::open(dir / "x.gguf");
  EXPECT_EQ(file.keys(), keys);
  ASSERT_EQ(file.tensors().size(), 3u);
  const GgufTensor* a = file.find("a.weight");
  ASSERT_TRUE(a);
  EXPECT_THAT(a->shape, ElementsAre(2, 3));
  std::vector<float> row(3);
  a->read_row(1, row);
  EXPECT_THAT(row, ElementsAre(4, 5, 6));
  const GgufTensor* c = file.find("c.weight");
  EXPECT_EQ(c->rows(), 2);
  row.resize(2);
  c->read_row(1, row);
  EXPECT_THAT(row, ElementsAre(2, 65504));
  EXPECT_FALSE(file.find("d"));
  for (const GgufTensor& tensor : file.tensors())
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.bytes.data()) % 32, 0u) << tensor.name;
}

TEST(Gguf, NothingIsLeftOfAFileThatWasNotFinished) {
  TempDir dir;
  { GgufWriter writer(dir / "x.gguf", {}, {{"a", GgufType::f32, {4}}}); }
  EXPECT_EQ(dir.n_entries(), 0u);
}

TEST(Gguf, ReadsBytesOfOtherWriters) {
  TempDir dir;
  Bytes bytes;
  bytes.begin(1, 2, 2);
  bytes.text("general.alignment").put<uint32_t>(4).put<uint32_t>(64);
  bytes.text("list").put<uint32_t>(9).put<uint32_t>(0).put<uint64_t>(2).raw("\x07\xff");
  bytes.tensor("t", {3, 2}, 0, 0).pad(64);
  for (float value = 1; value <= 6; ++value)
    bytes.put(value);
  const GgufFile file = GgufFile::open(dir.write("x.gguf", bytes.str()));
  EXPECT_EQ(find_key(file.keys(), "list")->content,
            GgufValue::Content(std::vector<int64_t>{7, 255}));
  std::vector<float> row(3);
  file.find("t")->read_row(1, row);
  EXPECT_THAT(row, ElementsAre(4, 5, 6));
}

TEST(Gguf, RefusesEveryCut) {
  TempDir dir;
  GgufWriter writer(dir / "x.gguf", some_keys(), {{"a", GgufType::f32, {2, 8}}});
  writer.write("a", std::vector<float>(16));
  writer.finish();
  const std::string whole = read_file(dir / "x.gguf");
  for (size_t n = 0; n < whole.size(); ++n)
    EXPECT_THAT(error_of_bytes(whole.substr(0, n)), HasSubstr("x.gguf")) << n;
  EXPECT_EQ(GgufFile::open(dir / "x.gguf").tensors().size(), 1u);
}

struct WrongFile {
  const char* what;
  std::function<void(Bytes&)> make;
};

TEST(Gguf, SaysWhatIsWrong) {
  const auto one_tensor = [](std::vector<int64_t> sizes, uint32_t type, uint64_t offset) {
    return [=](Bytes& bytes) {
      bytes.begin(1, 0).tensor("t", sizes, type, offset).pad();
      for (int i = 0; i < 64; ++i)
        bytes.put(1.0f);
    };
  };
  constexpr int64_t kHuge = int64_t{1} << 62;
  const WrongFile wrong[] = {
      {"does not begin with GGUF", [](Bytes& b) { b.raw("GGML").begin(0, 0); }},
      {"version 1 of the format", [](Bytes& b) { b.begin(0, 0, 1); }},
      {"other byte order", [](Bytes& b) { b.begin(0, 0, 3 << 24); }},
      {"18446744073709551615 keys", [](Bytes& b) { b.begin(0, UINT64_MAX); }},
      {"18446744073709551615 tensors", [](Bytes& b) { b.begin(UINT64_MAX, 0); }},
      {"unknown kind 13",
       [](Bytes& b) { b.begin(0, 1).text("k").put<uint32_t>(13).put<uint64_t>(0); }},
      {"the key 'k' twice",
       [](Bytes& b) {
         b.begin(0, 2);
         for (int i = 0; i < 2; ++i)
           b.text("k").put<uint32_t>(4).put<uint32_t>(0);
       }},
      {"a list of lists",
       [](Bytes& b) {
         b.begin(0, 1).text("k").put<uint32_t>(9).put<uint32_t>(9).put<uint64_t>(0);
       }},
      {"list 'k' has 9223372036854775808 elements",
       [](Bytes& b) {
         b.begin(0, 1).text("k").put<uint32_t>(9).put<uint32_t>(0).put<uint64_t>(1ull << 63);
       }},
      {"a text of 1000000000000 bytes",
       [](Bytes& b) { b.begin(0, 1).text("k").put<uint32_t>(8).put<uint64_t>(1'000'000'000'000); }},
      {"as the flag of 'k'",
       [](Bytes& b) { b.begin(0, 1).text("k").put<uint32_t>(7).put<uint8_t>(2).pad(); }},
      {"no power of two",
       [](Bytes& b) { b.begin(0, 1).text(kGgufAlignmentKey).put<uint32_t>(4).put<uint32_t>(24); }},
      {"no power of two",
       [](Bytes& b) { b.begin(0, 1).text(kGgufAlignmentKey).put<uint32_t>(4).put<uint32_t>(0); }},
      {"of type 24", one_tensor({32}, 24, 0)},
      {"Ferry does not read", one_tensor({32}, 4'000'000'000, 0)},
      {"no multiple of 32", one_tensor({33}, 8, 0)},
      {"impossible shape [0]", one_tensor({0}, 0, 0)},
      {"impossible shape [-1]", one_tensor({-1}, 0, 0)},
      {"impossible shape", one_tensor({kHuge, kHuge}, 0, 0)},
      {"impossible shape", one_tensor({kHuge}, 0, 0)},
      {"beyond its end", one_tensor({1 << 20}, 0, 0)},
      {"at byte 32 of its tensors, expected 0", one_tensor({8}, 0, 32)},
      {"at byte 18446744073709551584", one_tensor({8}, 0, UINT64_MAX - 31)},
      {"5 dimensions", one_tensor({1, 1, 1, 1, 1}, 0, 0)},
      {"0 dimensions", one_tensor({}, 0, 0)},
      {"224 bytes that belong to no tensor", one_tensor({8}, 0, 0)},
      {"name of 64 bytes",
       [](Bytes& b) { b.begin(1, 0).tensor(std::string(64, 'n'), {1}, 0, 0).pad().put(1.0f); }},
      {"the tensor 't' twice",
       [](Bytes& b) {
         b.begin(2, 0)
             .tensor("t", {1}, 0, 0)
             .tensor("t", {1}, 0, 32)
             .pad()
             .put(1.0f)
             .pad()
             .put(1.f);
       }},
      {"'u' at byte 0 of its tensors",  // over the other one
       [](Bytes& b) {
         b.begin(2, 0).tensor("t", {1}, 0, 0).tensor("u", {1}, 0, 0).pad().put(1.0f).pad().put(1.f);
       }},
  };
  for (const WrongFile& file : wrong) {
    Bytes bytes;
    file.make(bytes);
    EXPECT_THAT(error_of_bytes(bytes.str()), HasSubstr(file.what));
  }
}

TEST(Gguf, RefusesWhatIsNoFile) {
  for (const auto& [what, make] : test::hostile_files()) {
    TempDir dir;
    make(dir / "x.gguf");
    EXPECT_THAT(error_of([&] { GgufFile::open(dir / "x.gguf"); }), HasSubstr("x.gguf")) << what;
  }
}

}  // namespace
}  // namespace ferry
