#include "src/files/safetensors/safetensors.h"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "src/files/hf/checkpoint_reader.h"
#include "tests/files/test_files.h"

namespace ferry {
namespace {

using test::error_of;
using test::raw_safetensors;
using test::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kGood =
    R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
    R"("b":{"dtype":"F64","shape":[],"data_offsets":[24,32]},)"
    R"("none":{"dtype":"BF16","shape":[0,7],"data_offsets":[32,32]}}  )";

TEST(SafetensorsFile, ReadsTypesShapesAndBytes) {
  TempDir dir;
  std::string text = raw_safetensors(kGood, 32);
  const float value = 1.5f;
  std::memcpy(text.data() + text.size() - 32 + 20, &value, 4);  // a[1][2]
  auto file = SafetensorsFile::open(dir.write("x.safetensors", text));
  EXPECT_EQ(file.metadata().at("format"), "pt");
  ASSERT_EQ(file.tensors().size(), 3u);
  const StoredTensor* a = file.find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->type, StoredType::f32);
  EXPECT_THAT(a->shape, ElementsAre(2, 3));
  float read = 0;
  std::memcpy(&read, a->bytes.data() + 20, 4);
  EXPECT_EQ(read, 1.5f);
  EXPECT_EQ(file.find("b")->n_elements(), 1);
  EXPECT_EQ(file.find("none")->n_elements(), 0);
  EXPECT_EQ(file.find("none")->bytes.size(), 0u);
  EXPECT_EQ(file.find("c"), nullptr);
}

TEST(SafetensorsFile, MetadataMayBeNull) {
  TempDir dir;
  const char* header =
      R"({"__metadata__":null,"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  const auto file = SafetensorsFile::open(dir.write("x", raw_safetensors(header, 4)));
  EXPECT_EQ(file.tensors().size(), 1u);
  EXPECT_TRUE(file.metadata().empty());
}

TEST(SafetensorsFile, EmptyHeaderIsAFileWithoutTensors) {
  TempDir dir;
  EXPECT_TRUE(SafetensorsFile::open(dir.write("x", raw_safetensors("{}", 0))).tensors().empty());
}

TEST(SafetensorsFile, RefusesHostileHeadersInPlainWords) {
  struct Case {
    const char* header;
    size_t n_data;
    const char* message;
  };
  // One header each, wrong in one thing.
  const Case cases[] = {
      {R"([])", 0, "does not start with '{'"},
      {R"( {})", 0, "does not start with '{'"},
      {R"({"a")", 0, "not valid JSON"},
      {R"({} x)", 0, "not valid JSON"},
      {"{\"\xff\":1}", 0, "not valid JSON"},
      {R"({"a":1})", 0, "'a' holds the number 1"},
      {R"({"a":null})", 0, "holds null"},
      {R"({"a":[]})", 0, "holds a list"},
      {R"({"__metadata__":{"a":1}})", 0, "'__metadata__' holds the number 1"},
      {R"({"__metadata__":{"a":{"b":"c"}}})", 0, "holds an object"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
       8, "'a' appears twice"},
      {R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4,
       "'dtype' appears twice"},
      {R"({"__metadata__":{"x":"1","x":"2"}})", 0, "'x' appears twice"},
      {R"({"a":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}})", 4, "unknown type 'F33'"},
      {R"({"a":{"dtype":["F32"],"shape":[1],"data_offsets":[0,4]}})", 4, "holds a list"},
      {R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", 4, "has no shape"},
      {R"({"a":{"shape":[1],"data_offsets":[0,4]}})", 4, "has no dtype"},
      {R"({"a":{"dtype":"F32","shape":[1]}})", 4, "has no data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"more":1}})", 4,
       "unknown key 'more'"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4, "1 data_offsets, expected 2"},
      {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "the number -1"},
      {R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4, "the number 1.0"},
      {R"({"a":{"dtype":"F32","shape":["1"],"data_offsets":[0,4]}})", 4, "holds a string"},
      {R"({"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})", 4, "holds a list"},
      {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0,
       "not a possible size"},
      {R"({"a":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]}})", 0,
       "not a possible size"},
      {R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]}})", 4,
       "is too large"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,99999999999999999999999]}})", 4,
       "the number 999"},
      {R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", 2, "not a possible size"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4,
       "takes 8 bytes, but its data_offsets are [0, 4]"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, "data_offsets are [4, 0]"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, "belong to no tensor"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
       12, "belong to no tensor"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
       12, "overlap"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
       8, "overlap"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 5, "belong to no tensor"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 3,
       "header says 4 B of tensors but the file has 3 B - is the download complete?"},
  };
  TempDir dir;
  for (const Case& hostile : cases) {
    auto path = dir.write("x.safetensors", raw_safetensors(hostile.header, hostile.n_data));
    std::string message = error_of([&] { SafetensorsFile::open(path); });
    EXPECT_THAT(message, HasSubstr(hostile.message)) << hostile.header;
    EXPECT_THAT(message, HasSubstr("x.safetensors"));
  }
}

TEST(SafetensorsFile, RefusesFilesThatAreCutOrNotTensorsAtAll) {
  TempDir dir;
  auto open = [&](std::string_view text) {
    return error_of([&, path = dir.write("x", text)] { SafetensorsFile::open(path); });
  };
  EXPECT_THAT(open(""), HasSubstr("has 0 bytes, expected at least 8"));
  EXPECT_THAT(open("1234567"), HasSubstr("has 7 bytes"));
  EXPECT_THAT(open("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
              HasSubstr("git lfs pull"));
  EXPECT_THAT(open(std::string(64, '\xff')),
              HasSubstr("says that its header has 18446744073709551615 bytes"));
  std::string good = raw_safetensors(kGood, 32);
  EXPECT_THAT(open(good.substr(0, 50)), HasSubstr("is the download complete?"));
  EXPECT_THAT(open(good.substr(0, good.size() - 1)), HasSubstr("is the download complete?"));
  // A header at the limit that the file does not hold, and one above it.
  EXPECT_THAT(open(std::string("\x00\xe1\xf5\x05\0\0\0\0{", 9)),
              HasSubstr("header has 95.4 MiB but the file has 9 B"));
  EXPECT_THAT(open(std::string("\x01\xe1\xf5\x05\0\0\0\0{", 9)),
              HasSubstr("expected at most 100000000"));
  EXPECT_THAT(error_of([&] { SafetensorsFile::open(dir / "absent"); }),
              HasSubstr("does not exist"));
  EXPECT_THAT(error_of([&] { SafetensorsFile::open(dir.path()); }), HasSubstr("is a directory"));
}

TEST(SafetensorsFile, DeepNestingAndManyTensorsAreCheap) {
  TempDir dir;
  auto deep = dir.write("deep", raw_safetensors("{\"a\":" + std::string(5'000'000, '['), 0));
  EXPECT_THAT(error_of([&] { SafetensorsFile::open(deep); }), HasSubstr("holds a list"));
  std::string header = "{";
  for (int i = 0; i < 20'000; ++i)
    header += fmt::format(R"({}"t{}":{{"dtype":"U8","shape":[1],"data_offsets":[{},{}]}})",
                          i ? "," : "", i, i, i + 1);
  auto many = dir.write("many", raw_safetensors(header + "}", 20'000));
  EXPECT_EQ(SafetensorsFile::open(many).tensors().size(), 20'000u);
}

TEST(ConvertToF32, IsExactForEveryHalfWord) {
  std::vector<uint16_t> words(65536);
  for (size_t i = 0; i < words.size(); ++i)
    words[i] = static_cast<uint16_t>(i);
  std::vector<float> out(words.size());
  convert_to_f32(StoredType::f16, std::as_bytes(std::span(words)), out);
  for (size_t i = 0; i < words.size(); ++i) {
    const int exponent = static_cast<int>(i >> 10 & 31);
    const double fraction = static_cast<double>(i & 1023) / 1024;
    const double sign = i & 0x8000 ? -1 : 1;
    if (exponent == 31 && (i & 1023)) {
      EXPECT_TRUE(std::isnan(out[i])) << i;
    } else {
      const double value = exponent == 31  ? INFINITY
                           : exponent == 0 ? std::ldexp(fraction, -14)
                                           : std::ldexp(1 + fraction, exponent - 15);
      EXPECT_EQ(static_cast<double>(out[i]), sign * value) << i;
      EXPECT_EQ(std::signbit(out[i]), sign < 0) << i;
    }
  }
  convert_to_f32(StoredType::bf16, std::as_bytes(std::span(words)), out);
  for (size_t i = 0; i < words.size(); ++i)
    ASSERT_EQ(std::bit_cast<uint32_t>(out[i]), i << 16);
}

}  // namespace
}  // namespace ferry
