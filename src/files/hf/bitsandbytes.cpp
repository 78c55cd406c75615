#include "src/files/hf/bitsandbytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "src/base/error.h"

namespace ferry {
namespace {

/** Before the name of the kind, "nf4" or "fp4". */
constexpr std::string_view kState = ".quant_state.bitsandbytes__";
constexpr std::string_view kRowScales = ".SCB", kWeight = ".weight";
/** 1 / 127 as bitsandbytes has it: it multiplies, and does not divide. */
constexpr float kStep = 0.007874015718698502f;

class Quantised {
 public:
  Quantised(std::span<const StoredTensor* const> tensors, const std::string& file) : file_(file) {
    for (const StoredTensor* tensor : tensors)
      by_name_.emplace(tensor->name, tensor);
  }

  Dequantised run() {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : by_name_)
      names.emplace_back(name);
    std::ranges::sort(names);
    for (const std::string& name : names) {
      if (const size_t at = name.find(kState); at != name.npos)
        add_blocks(name.substr(0, at), name);
      if (name.ends_with(kRowScales))
        add_rows(name.substr(0, name.size() - kRowScales.size()) + std::string(kWeight), name);
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(const std::string& name, const std::string& what) const {
    throw Error(Fault::data, "checkpoint.read",
                fmt::format("'{}': tensor '{}' {}", file_, name, what),
                "the quantised model is damaged, or of a bitsandbytes that is not known: fetch it "
                "again, or take the model's weights as they were before");
  }

  const StoredTensor& take(const std::string& name) {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) refuse(name, "is missing");
    out_.used.insert(name);
    return *found->second;
  }
  std::vector<float> floats(const std::string& name) {
    const StoredTensor& tensor = take(name);
    if (tensor.type != StoredType::f32) refuse(name, "is not of F32");
    std::vector<float> values(tensor.bytes.size() / sizeof(float));
    std::memcpy(values.data(), tensor.bytes.data(), values.size() * sizeof(float));
    return values;
  }

  struct State {
    std::vector<int64_t> shape;
    int64_t block = 64, nested_block = 256;
    float nested_offset = 0;
    bool is_nested = false;
    StoredType type = StoredType::f32;
  };

  State state_of(const std::string& name) {
    const StoredTensor& tensor = take(name);
    const std::string_view text(reinterpret_cast<const char*>(tensor.bytes.data()),
                                tensor.bytes.size());
    const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    State state;
    try {
      if (!json.is_object()) refuse(name, "is no object of JSON");
      state.block = json.at("blocksize");
      for (const auto& size : json.at("shape"))
        state.shape.push_back(size);
      const std::string type = json.value("dtype", "float32");
      state.type = type == "bfloat16"  ? StoredType::bf16
                   : type == "float16" ? StoredType::f16
                                       : StoredType::f32;
      state.is_nested = json.contains("nested_blocksize");
      if (state.is_nested) {
        state.nested_block = json.at("nested_blocksize");
        state.nested_offset = json.value("nested_offset", 0.0f);
      }
    } catch (const nlohmann::json::exception&) {
      refuse(name, "has no blocksize and shape");
    }
    constexpr int64_t kMost = int64_t{1} << 40;
    int64_t n = 1;
    for (const int64_t size : state.shape) {
      if (size < 1 || size > kMost / n) refuse(name, "has a shape that cannot be");
      n *= size;
    }
    if (state.block < 1 || state.nested_block < 1) refuse(name, "has blocks without values");
    return state;
  }

  void add(const std::string& name,
           StoredType type,
           std::vector<int64_t> shape,
           std::span<const std::byte> bytes,
           std::shared_ptr<const QuantisedCodes> codes) {
    StoredTensor tensor;
    tensor.name = name;
    tensor.type = type;
    tensor.shape = std::move(shape);
    tensor.bytes = bytes;
    tensor.codes = std::move(codes);
    out_.used.insert(name);
    out_.tensors.push_back(std::move(tensor));
  }

  void add_blocks(const std::string& name, const std::string& state_name) {
    const State state = state_of(state_name);
    const StoredTensor& packed = take(name);
    auto codes = std::make_shared<QuantisedCodes>();
    const std::vector<float> map = floats(name + ".quant_map");
    if (map.size() != codes->map.size()) refuse(name + ".quant_map", "has not 16 values");
    std::ranges::copy(map, codes->map.begin());
    codes->values_per_scale = state.block;
    codes->columns = state.shape.empty() ? 1 : state.shape.back();
    take_scales(name, state, *codes);
    codes->codes = packed.bytes;
    int64_t n = 1;
    for (const int64_t size : state.shape)
      n *= size;
    const int64_t n_scales = (n + state.block - 1) / state.block;
    if (std::ssize(packed.bytes) != (n + 1) / 2 || codes->n_scales() != n_scales)
      refuse(name, fmt::format("has {} bytes and {} scales for {} values", packed.bytes.size(),
                               codes->n_scales(), n));
    add(name, state.type, state.shape, packed.bytes, std::move(codes));
  }

  std::span<const std::byte> bytes_of_floats(const std::string& name) {
    const StoredTensor& tensor = take(name);
    if (tensor.type != StoredType::f32) refuse(name, "is not of F32");
    return tensor.bytes;
  }

  void take_scales(const std::string& name, const State& state, QuantisedCodes& codes) {
    const std::string of_blocks = name + ".absmax";
    if (!state.is_nested) {
      codes.scales = bytes_of_floats(of_blocks);
      return;
    }
    const StoredTensor& indices = take(of_blocks);
    if (indices.type != StoredType::u8) refuse(of_blocks, "is not of U8");
    codes.scales = indices.bytes;
    codes.nested_map = floats(name + ".nested_quant_map");
    codes.nested_scales_ = floats(name + ".nested_absmax");
    codes.nested_block = state.nested_block;
    codes.nested_offset = state.nested_offset;
    constexpr size_t kMap = 256;
    const auto block = static_cast<size_t>(state.nested_block);
    if (codes.nested_map.size() != kMap ||
        codes.nested_scales_.size() != (indices.bytes.size() + block - 1) / block)
      refuse(of_blocks, "has nested scales of another number");
  }

  void add_rows(const std::string& name, const std::string& scales_name) {
    const StoredTensor& rows = take(name);
    const std::string format = name + "_format";
    if (by_name_.contains(format))
      if (const StoredTensor& form = take(format);
          std::ranges::any_of(form.bytes, [](std::byte b) { return b != std::byte{0}; }))
        refuse(format, "names an order that is not row by row");
    if (rows.type != StoredType::i8 || rows.shape.size() != 2)
      refuse(name, "is no matrix of 8 bits");
    auto codes = std::make_shared<QuantisedCodes>();
    codes->bits = 8;
    codes->values_per_scale = rows.shape[1];
    codes->scales = bytes_of_floats(scales_name);
    codes->codes = rows.bytes;
    if (codes->n_scales() != rows.shape[0])
      refuse(scales_name,
             fmt::format("has {} values for {} rows", codes->n_scales(), rows.shape[0]));
    add(name, StoredType::f16, rows.shape, rows.bytes, std::move(codes));
  }

  const std::string& file_;
  std::unordered_map<std::string_view, const StoredTensor*> by_name_;
  Dequantised out_;
};

}  // namespace

float QuantisedCodes::scale(size_t index) const {
  if (!nested_map.empty())
    return nested_map[std::to_integer<size_t>(scales[index])] *
               nested_scales_[index / static_cast<size_t>(nested_block)] +
           nested_offset;
  float value = 0;
  std::memcpy(&value, scales.data() + index * sizeof value, sizeof value);
  return value;
}

void QuantisedCodes::values(int64_t first, std::span<float> out) const {
  const auto block = static_cast<size_t>(values_per_scale);
  for (size_t i = 0; i < out.size();) {
    const size_t begin = static_cast<size_t>(first) + i;
    const float of_block = scale(begin / block);
    const size_t end = std::min(begin + out.size() - i, (begin / block + 1) * block);
    for (size_t at = begin; at < end; ++at, ++i) {
      if (bits == 8) {
        out[i] = static_cast<float>(static_cast<int8_t>(codes[at])) * of_block * kStep;
      } else {
        const auto byte = std::to_integer<unsigned>(codes[at / 2]);
        out[i] = map[at % 2 == 0 ? byte >> 4 : byte & 15] * of_block;
      }
    }
  }
}

std::span<const std::byte> QuantisedCodes::bytes_of(int64_t first, int64_t n) const {
  const auto byte_of = [&](int64_t element) { return static_cast<size_t>(element * bits / 8); };
  return codes.subspan(byte_of(first), byte_of(first + n) - byte_of(first));
}

std::string_view QuantisedCodes::storage() const {
  constexpr int64_t kBlock = 64, kNested_block = 256;
  const bool is_usual = bits == 4 && values_per_scale == kBlock && nested_block == kNested_block &&
                        !nested_map.empty() && columns % kBlock == 0;
  return is_usual ? "nf4_nested" : std::string_view();
}

void QuantisedCodes::read_rows(int64_t first, int64_t n, std::span<std::byte> out) const {
  const auto row_bytes = static_cast<size_t>(columns / 2);
  std::ranges::copy(
      codes.subspan(static_cast<size_t>(first) * row_bytes, static_cast<size_t>(n) * row_bytes),
      out.begin());
}

TensorCodes::NestedScales QuantisedCodes::nested_scales() const {
  if (nested_map.empty()) return {};
  return {.codes = scales,
          .offset = nested_offset,
          .scales = nested_scales_,
          .value_map = map,
          .scale_map = nested_map};
}

Dequantised dequantised(std::span<const StoredTensor* const> tensors, const std::string& file) {
  const bool has_any = std::ranges::any_of(tensors, [](const StoredTensor* tensor) {
    return tensor->name.find(kState) != std::string::npos || tensor->name.ends_with(kRowScales);
  });
  return has_any ? Quantised(tensors, file).run() : Dequantised();
}

}  // namespace ferry
