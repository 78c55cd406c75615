// Matrices of int8 and nf4 beside those that bitsandbytes makes (storage/make_golden.py), and where
// they lie in a block.

#include "models/core/storage.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "models/core/compile.h"
#include "models/core/nested_scales.h"
#include "models/decoder/decoder_table.h"
#include "simd/kernels.h"

namespace ferry {
namespace {

std::vector<std::byte> bytes_of(const nlohmann::json& hex) {
  const auto text = hex.get<std::string>();
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < text.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(text.substr(i, 2), nullptr, 16)));
  return bytes;
}
template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

TEST(Storage, IsBitsandbytes) {
  std::ifstream file(FERRY_SOURCE_ROOT "/tests/models/storage/golden.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  EXPECT_EQ(golden["bitsandbytes"], "0.50.2");
  for (const nlohmann::json& its : golden["cases"]) {
    SCOPED_TRACE(
        fmt::format("{} {}", its["storage"].get<std::string>(), its["name"].get<std::string>()));
    const Storage storage = its["storage"] == name_of(Storage::nf4) ? Storage::nf4 : Storage::int8;
    const StoredMatrix matrix = stored_matrix(storage, its["rows"], its["columns"], DType::f32);
    const std::vector<std::byte> in_file = bytes_of(its["values"]);
    std::vector<float> values(in_file.size() / sizeof(float));
    std::memcpy(values.data(), in_file.data(), in_file.size());
    std::vector<std::byte> codes(static_cast<size_t>(matrix.rows * matrix.row_bytes));
    std::vector<float> scales(static_cast<size_t>(matrix.rows * matrix.row_scales));
    quantise(matrix, values, codes.data(), scales.data());
    EXPECT_EQ(codes, bytes_of(its["codes"]));
    EXPECT_EQ(bytes_of(scales), bytes_of(its["scales"]));
    std::vector<float> back(values.size());
    for (int64_t row = 0; row < matrix.rows; ++row)
      for (const auto& [first, n] : {std::pair{int64_t{0}, int64_t{3}}, {3, matrix.columns - 3}})
        dequantise(matrix, codes.data() + row * matrix.row_bytes,
                   scales.data() + row * matrix.row_scales, first,
                   std::span(back).subspan(static_cast<size_t>(row * matrix.columns + first),
                                           static_cast<size_t>(n)));
    EXPECT_EQ(bytes_of(back), bytes_of(its["fp32"]));
    for (const DType type : {DType::bf16, DType::f16}) {
      std::vector<uint16_t> rounded(back.size());
      simd::convert(rounded.data(), type, back.data(), DType::f32, std::ssize(back));
      EXPECT_EQ(bytes_of(rounded), bytes_of(its[std::string(name_of(type))])) << name_of(type);
    }
  }
}

/** Double quantisation. Its offset is a mean, whose bits are those of one order of the sum. */
TEST(Storage, OfNestedScalesIsBitsandbytes) {
  std::ifstream file(FERRY_SOURCE_ROOT "/tests/models/storage/golden.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  const auto floats = [](const nlohmann::json& hex) {
    const std::vector<std::byte> bytes = bytes_of(hex);
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  };
  EXPECT_EQ(bytes_of(std::vector<float>(nested_map().begin(), nested_map().end())),
            bytes_of(golden["nested_map"]));
  int n_cases = 0;
  for (const nlohmann::json& its : golden["nested"]) {
    SCOPED_TRACE(its["name"].get<std::string>());
    ++n_cases;
    const std::vector<float> scales = floats(its["scales"]);
    const int64_t n = std::ssize(scales);
    std::vector<std::byte> codes(scales.size());
    std::vector<float> nested(1 + static_cast<size_t>((n + 255) / 256));
    nest(scales, codes, nested);
    EXPECT_EQ(bytes_of(nested), bytes_of(its["nested"]));
    EXPECT_EQ(codes, bytes_of(its["codes"]));
    std::vector<float> back(scales.size());
    unnest(codes.data(), nested.data(), 0, back);
    EXPECT_EQ(bytes_of(back), bytes_of(its["back"]));
    if (n <= 300) continue;
    unnest(codes.data() + 300, nested.data(), 300, std::span(back).first(1));
    EXPECT_EQ(back[0], back[300]) << "of the second block of scales";
  }
  EXPECT_GE(n_cases, 4);
}

/** Blocks of random codes, and what gguf 0.19 and transformers read from them. */
TEST(Storage, OfBlocksIsGguf) {
  std::ifstream file(FERRY_SOURCE_ROOT "/tests/models/storage/golden_blocks.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  std::set<std::string> seen;
  for (const nlohmann::json& its : golden["cases"]) {
    const auto name = its["storage"].get<std::string>();
    SCOPED_TRACE(name);
    seen.insert(name);
    Storage storage = Storage::q8_0;
    while (name_of(storage) != name)
      storage = static_cast<Storage>(static_cast<int>(storage) + 1);
    const std::vector<std::byte> blocks = bytes_of(its["blocks"]);
    const int64_t columns = its["columns"];
    const StoredMatrix matrix = stored_matrix(storage, its["rows"], columns, DType::f32);
    ASSERT_EQ(std::ssize(blocks), matrix.rows * matrix.row_bytes);
    std::vector<float> back(static_cast<size_t>(matrix.rows * columns));
    for (int64_t row = 0; row < matrix.rows; ++row)
      for (const auto& [first, n] : {std::pair{int64_t{0}, int64_t{3}}, {3, columns - 3}})
        dequantise(matrix, blocks.data() + row * matrix.row_bytes, nullptr, first,
                   std::span(back).subspan(static_cast<size_t>(row * columns + first),
                                           static_cast<size_t>(n)));
    EXPECT_EQ(bytes_of(back), bytes_of(its["fp32"]));
  }
  EXPECT_EQ(seen.size(), 6U);
}

TEST(Storage, OfAFrozenMatrixIsBytesBehindWhatIsTrained) {
  ModelTable model = make_decoder_table({.family = DecoderFamily::llama,
                                         .vocab_size = 64,
                                         .hidden_size = 128,
                                         .num_hidden_layers = 2,
                                         .num_attention_heads = 4,
                                         .num_key_value_heads = 4,
                                         .intermediate_size = 192,
                                         .max_position_embeddings = 16},
                                        {.compute = DType::bf16});
  const int64_t n_params = model.n_params(), n_trained = model.n_trainable_params();
  BlockTable& block = model.blocks[1];
  const int64_t n_whole = block.n_segment_elements;
  int64_t n_frozen = 0, n_bytes = 0;
  for (size_t p = 0; p < block.params.size(); ++p) {
    ParamSpec& param = block.params[p];
    if (param.shape.size() < 2) continue;
    param.trainable = false;
    set_storage(model, 1, static_cast<int>(p), p % 2 == 0 ? Storage::nf4 : Storage::int8);
    n_frozen += param.n_values();
    n_bytes += stored_bytes(param.storage, param.shape[0], param.shape[1], DType::bf16);
  }
  EXPECT_EQ(model.n_params(), n_params);
  EXPECT_EQ(model.n_trainable_params(), n_trained - n_frozen);
  EXPECT_EQ(n_whole - block.n_segment_elements, n_frozen - n_bytes / 2);
  for (const ParamSpec& param : block.params) {
    EXPECT_EQ(param.offset >= block.n_trained_elements, !param.trainable) << param.name;
    EXPECT_EQ(block.compiled->target.storage_of(static_cast<int>(&param - block.params.data())),
              param.storage);
  }
  EXPECT_EQ(stored_bytes(Storage::nf4_nested, 192, 128, DType::bf16), 192 * 64 + 512 + (1 + 2) * 4);
  EXPECT_EQ(stored_bytes(Storage::q4_k, 3, 512, DType::bf16), 3 * 2 * 144);
  EXPECT_EQ(
      stored_bytes(MatrixStorage({{Storage::q4_k, 2}, {Storage::q6_k, 1}}), 3, 256, DType::f32),
      512 + 210);
  EXPECT_EQ(stored_bytes(Storage::nf4, 192, 128, DType::bf16), 192 * 64 + 192 * 2 * 4);
  EXPECT_EQ(stored_bytes(Storage::int8, 3, 5, DType::bf16), 512 + 3 * 4);
  EXPECT_EQ(stored_bytes(Storage::f32, 3, 5, DType::bf16), 60);
}

}  // namespace
}  // namespace ferry
