// Matrices of int8 and nf4 beside those that bitsandbytes makes (storage/make_golden.py), and where
// they lie in a block.

#include "models/core/storage.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "models/core/compile.h"
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
  EXPECT_EQ(stored_bytes(Storage::nf4, 192, 128, DType::bf16), 192 * 64 + 192 * 2 * 4);
  EXPECT_EQ(stored_bytes(Storage::int8, 3, 5, DType::bf16), 512 + 3 * 4);
  EXPECT_EQ(stored_bytes(Storage::f32, 3, 5, DType::bf16), 60);
}

}  // namespace
}  // namespace ferry
