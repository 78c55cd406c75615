#include "src/files/hf/mxfp4.h"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <string_view>
#include <unordered_map>

#include "simd/block_formats.h"
#include "src/base/error.h"

namespace ferry {
namespace {

constexpr std::string_view kBlocksEnd = "_blocks", kScalesEnd = "_scales", kWeightEnd = ".weight";
constexpr int64_t kMxfp4_values = simd::BlockMxfp4::kValues,
                  kMxfp4_bytes = simd::BlockMxfp4::kBytes;
constexpr int64_t kMxfp4Code_bytes = kMxfp4_values / 2;

class Mxfp4Codes final : public TensorCodes {
 public:
  Mxfp4Codes(std::span<const std::byte> blocks, std::span<const std::byte> scales, int64_t columns)
      : blocks_(blocks), scales_(scales), columns_(columns) {}

  void values(int64_t first, std::span<float> out) const override {
    std::array<uint8_t, kMxfp4_bytes> block{};
    const int64_t end = first + std::ssize(out);
    for (int64_t at = first; at < end;) {
      const int64_t in_block = at % kMxfp4_values, n = std::min(kMxfp4_values - in_block, end - at);
      pack(at / kMxfp4_values, block.data());
      simd::row_values<simd::BlockMxfp4>(block.data(), in_block, n, out.data() + (at - first));
      at += n;
    }
  }
  std::span<const std::byte> bytes_of(int64_t first, int64_t n) const override {
    const auto begin = static_cast<size_t>(first / kMxfp4_values * kMxfp4Code_bytes),
               end = static_cast<size_t>((first + n) / kMxfp4_values * kMxfp4Code_bytes);
    return blocks_.subspan(begin, end - begin);
  }
  std::string_view storage() const override { return "mxfp4"; }
  void read_rows(int64_t first, int64_t n, std::span<std::byte> out) const override {
    const int64_t row_blocks = columns_ / kMxfp4_values;
    auto* to = reinterpret_cast<uint8_t*>(out.data());
    for (int64_t i = 0; i < n * row_blocks; ++i)
      pack(first * row_blocks + i, to + i * kMxfp4_bytes);
  }

 private:
  /** A block as memory has it: neighbours in the file are 16 values apart there. */
  void pack(int64_t block, uint8_t* to) const {
    const auto at = static_cast<size_t>(block * kMxfp4Code_bytes);
    const auto code = [&](size_t i) {
      const auto pair = std::to_integer<unsigned>(blocks_[at + i / 2]);
      return i % 2 == 0 ? pair & 15 : pair >> 4;
    };
    *to++ = std::to_integer<uint8_t>(scales_[static_cast<size_t>(block)]);
    for (size_t i = 0; i < 16; ++i)
      *to++ = static_cast<uint8_t>(code(i) | code(i + 16) << 4);
  }

  std::span<const std::byte> blocks_, scales_;
  int64_t columns_;
};

}  // namespace

void add_mxfp4(std::span<const StoredTensor* const> tensors,
               const std::string& file,
               Dequantised& out) {
  std::unordered_map<std::string_view, const StoredTensor*> by_name;
  for (const StoredTensor* tensor : tensors)
    by_name.emplace(tensor->name, tensor);
  for (const StoredTensor* blocks : tensors) {
    if (!blocks->name.ends_with(kBlocksEnd) || blocks->type != StoredType::u8 ||
        blocks->shape.size() != 3)
      continue;
    const std::string stem = blocks->name.substr(0, blocks->name.size() - kBlocksEnd.size());
    const auto refuse = [&](const std::string& what) {
      throw Error(Fault::data, "checkpoint.read",
                  fmt::format("'{}': tensor '{}' {}", file, blocks->name, what),
                  "the quantised model is damaged: fetch it again");
    };
    const std::string scales_name = stem + std::string(kScalesEnd);
    const auto scales = by_name.find(scales_name);
    if (scales == by_name.end()) refuse(fmt::format("is there without '{}'", scales_name));
    const std::vector<int64_t>& shape = blocks->shape;
    if (shape[2] != kMxfp4Code_bytes || scales->second->type != StoredType::u8 ||
        scales->second->shape != std::vector<int64_t>{shape[0], shape[1]})
      refuse(fmt::format("has the shape {} beside scales of {}", format_shape(shape),
                         format_shape(scales->second->shape)));
    const int64_t columns = shape[1] * kMxfp4_values;
    StoredTensor& made = out.tensors.emplace_back();
    made.name = stem.ends_with(kWeightEnd) ? stem : stem + std::string(kWeightEnd);
    made.type = StoredType::bf16;
    made.shape = {shape[0], columns};
    made.bytes = blocks->bytes;
    made.codes = std::make_shared<Mxfp4Codes>(blocks->bytes, scales->second->bytes, columns);
    out.used.insert({blocks->name, scales_name});
  }
}

}  // namespace ferry
