// Tensors that bitsandbytes has quantised, read with the values that they stand for.

#include "src/files/hf/bitsandbytes.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "src/files/hf/checkpoint_reader.h"
#include "src/files/hf/hf_config.h"
#include "src/files/safetensors/safetensors_writer.h"
#include "tests/files/test_files.h"

namespace ferry {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Raw {
  StoredType type;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;
};

template <class Value>
Raw raw(StoredType type, const std::vector<Value>& values, std::vector<int64_t> shape = {}) {
  if (shape.empty()) shape = {std::ssize(values)};
  std::vector<std::byte> bytes(values.size() * sizeof(Value));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return {type, std::move(shape), std::move(bytes)};
}
Raw text(std::string_view json) {
  return raw(StoredType::u8, std::vector<char>(json.begin(), json.end()));
}

class Bitsandbytes : public ::testing::Test {
 protected:
  /** A matrix of 2 x 64 values with 4 bits, of which the second half is the first one mirrored. */
  Bitsandbytes() {
    std::vector<float> map;
    for (int i = 0; i < 16; ++i)
      map.push_back(static_cast<float>(i - 8) / 8);
    std::vector<uint8_t> codes;
    for (int i = 0; i < 64; ++i)
      codes.push_back(static_cast<uint8_t>((i % 16) << 4 | (15 - i % 16)));
    tensors_["a.weight"] = raw(StoredType::u8, codes, {64, 1});
    tensors_["a.weight.quant_map"] = raw(StoredType::f32, map);
    tensors_["a.weight.absmax"] = raw(StoredType::f32, std::vector<float>{2, 0.5f});
    tensors_["a.weight.quant_state.bitsandbytes__nf4"] =
        text(R"({"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": [2, 64]})");
    tensors_["norm.weight"] = raw(StoredType::f32, std::vector<float>{1, 2});
  }

  CheckpointReader open() {
    std::vector<TensorSpec> specs;
    for (const auto& [name, tensor] : tensors_)
      specs.emplace_back(name, tensor.type, tensor.shape);
    SafetensorsWriter writer(dir_ / "model.safetensors", specs);
    for (const auto& [name, tensor] : tensors_)
      writer.write(name, tensor.bytes);
    writer.finish();
    return CheckpointReader::open(dir_.path());
  }
  static std::vector<float> values(const CheckpointReader& reader, const StoredTensor& tensor) {
    std::vector<float> all;
    reader.read_f32(tensor, [&](std::span<const float> piece, int64_t first) {
      EXPECT_EQ(first, std::ssize(all));
      all.insert(all.end(), piece.begin(), piece.end());
    });
    return all;
  }
  std::string error() {
    return test::error_of([&] { open(); });
  }

  test::TempDir dir_;
  std::map<std::string, Raw> tensors_;
};

TEST_F(Bitsandbytes, FourBitsAreIndicesTimesTheirScale) {
  const CheckpointReader reader = open();
  EXPECT_EQ(reader.tensors().size(), 2u);
  const int64_t shape[] = {2, 64};
  const StoredTensor& tensor = reader.get("a.weight", shape);
  EXPECT_EQ(tensor.type, StoredType::bf16);
  const auto all = values(reader, tensor);
  ASSERT_EQ(all.size(), 128u);
  EXPECT_EQ(all[0], -2);         // code 0, scale 2
  EXPECT_EQ(all[1], 1.75f);      // code 15
  EXPECT_EQ(all[66], -0.4375f);  // code 1, scale 0.5
  // From anywhere.
  std::vector<float> some(3);
  CheckpointReader::read_part(tensor, 65, some);
  EXPECT_THAT(some, ElementsAre(all[65], all[66], all[67]));
  // As bytes they have the type that they had.
  std::vector<uint16_t> words;
  reader.read(tensor, [&](std::span<const std::byte> bytes, size_t) {
    words.resize(bytes.size() / 2);
    std::memcpy(words.data(), bytes.data(), bytes.size());
  });
  ASSERT_EQ(words.size(), 128u);
  EXPECT_EQ(words[1], 0x3fe0);  // 1.75
  EXPECT_EQ(reader.total_bytes(), 2 * 128 + 2 * 4);
}

TEST_F(Bitsandbytes, ScalesMayBeQuantisedThemselves) {
  std::vector<float> map;
  for (int i = 0; i < 256; ++i)
    map.push_back(static_cast<float>(i) / 256);
  tensors_["a.weight.absmax"] = raw(StoredType::u8, std::vector<uint8_t>{128, 64});
  tensors_["a.weight.nested_quant_map"] = raw(StoredType::f32, map);
  tensors_["a.weight.nested_absmax"] = raw(StoredType::f32, std::vector<float>{4});
  tensors_["a.weight.quant_state.bitsandbytes__nf4"] =
      text(R"({"quant_type": "nf4", "blocksize": 64, "dtype": "float16", "shape": [2, 64],
               "nested_blocksize": 256, "nested_dtype": "float32", "nested_offset": 0.25})");
  const CheckpointReader reader = open();
  const auto all = values(reader, reader.get("a.weight"));
  EXPECT_EQ(all[0], -(0.5f * 4 + 0.25f));
  EXPECT_EQ(all[64], -(0.25f * 4 + 0.25f));
}

TEST_F(Bitsandbytes, EightBitsHaveAScaleForEachRow) {
  tensors_["b.weight"] = raw(StoredType::i8, std::vector<int8_t>{127, -127, 1, 64, 0, -1}, {2, 3});
  tensors_["b.SCB"] = raw(StoredType::f32, std::vector<float>{2, 127});
  tensors_["b.weight_format"] = raw(StoredType::u8, std::vector<uint8_t>{0});
  const CheckpointReader reader = open();
  const auto all = values(reader, reader.get("b.weight"));
  constexpr float kStep = 0.007874015718698502f;
  EXPECT_THAT(all, ElementsAre(127.0f * 2 * kStep, -127.0f * 2 * kStep, 2 * kStep,
                               64.0f * 127 * kStep, 0, -127 * kStep));
}

TEST_F(Bitsandbytes, DamagedTensorsAreNamed) {
  auto whole = tensors_;
  tensors_.erase("a.weight.absmax");
  EXPECT_THAT(error(), HasSubstr("'a.weight.absmax' is missing"));
  tensors_ = whole;
  tensors_["a.weight.absmax"] = raw(StoredType::f32, std::vector<float>{2});
  EXPECT_THAT(error(), HasSubstr("64 bytes and 1 scales for 128 values"));
  tensors_ = whole;
  tensors_["a.weight.quant_map"] = raw(StoredType::f32, std::vector<float>{2});
  EXPECT_THAT(error(), HasSubstr("has not 16 values"));
  for (const char* state :
       {"no json", "[]", R"({"blocksize": 64})", R"({"blocksize": 0, "shape": [2, 64]})",
        R"({"blocksize": 64, "shape": [-2, 64]})",
        R"({"blocksize": 64, "shape": [4611686018427387904, 4611686018427387904]})"}) {
    tensors_["a.weight.quant_state.bitsandbytes__nf4"] = text(state);
    EXPECT_THAT(error(), HasSubstr("bitsandbytes__nf4")) << state;
  }
  tensors_ = whole;
  tensors_["b.weight"] = raw(StoredType::i8, std::vector<int8_t>{1, 2}, {1, 2});
  tensors_["b.SCB"] = raw(StoredType::f32, std::vector<float>{2});
  tensors_["b.weight_format"] = raw(StoredType::u8, std::vector<uint8_t>{3});
  EXPECT_THAT(error(), HasSubstr("is not row by row"));
}

TEST(QuantisedConfig, SaysTheFormAndIsWrittenWithout) {
  const auto form = [](const std::string& settings) {
    const HfConfig config = HfConfig::parse(
        R"({"model_type": "llama", "quantization_config": )" + settings + "}", "config.json");
    if (!config.quantised.empty()) {
      EXPECT_FALSE(config.json().contains("quantization_config"));
    }
    return config.quantised;
  };
  EXPECT_EQ(form(R"({"quant_method": "bitsandbytes", "load_in_4bit": true,
                     "bnb_4bit_quant_type": "nf4"})"),
            "nf4");
  EXPECT_EQ(form(R"({"load_in_4bit": true})"), "fp4");
  EXPECT_EQ(form(R"({"quant_method": "bitsandbytes", "load_in_8bit": true})"), "int8");
  EXPECT_EQ(form(R"({"quant_method": "gptq", "bits": 4})"), "");
}

}  // namespace
}  // namespace ferry
