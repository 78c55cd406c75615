#pragma once
// The element types of GGUF files: blocks of a fixed number of elements and bytes, which become
// fp32, and are made of it where a type is one that Ferry writes. The reader, the writer and the
// export stand on it. Formulas are llama.cpp's, with each operation rounded to fp32.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace ferry {

/** The numbers are the format's. */
enum class GgufType : uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  bf16 = 30,
  mxfp4 = 39,
};

/** "F16", "Q8_0". */
std::string_view name_of(GgufType type);
/** The type of that number; nothing where Ferry does not read it. */
std::optional<GgufType> gguf_type_of(uint32_t number);
/** Elements of a block, which lie in one row, and its bytes. */
int64_t block_elements(GgufType type);
int64_t block_bytes(GgufType type);
/** Bytes of so many elements, a multiple of block_elements(). */
int64_t bytes_of(GgufType type, int64_t n_elements);

/** Whole blocks as fp32. Sizes that do not go together are our bug. */
void decode_gguf(GgufType type, std::span<const std::byte> bytes, std::span<float> out);
/** Elements of whole blocks from one of them on. */
void decode_gguf(GgufType type,
                 std::span<const std::byte> bytes,
                 int64_t first,
                 std::span<float> out);

/** Whole blocks of F32, F16, BF16 or Q8_0, rounded to the nearest. A value that is too large for
 * F16, or for the scale of Q8_0, becomes infinite. Other types are our bug. Linked with the writer.
 */
void encode_gguf(GgufType type, std::span<const float> values, std::span<std::byte> out);

}  // namespace ferry
