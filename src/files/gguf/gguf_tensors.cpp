#include "src/files/gguf/gguf_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "src/base/bytes.h"
#include "src/files/gguf/gguf_keys.h"
#include "src/files/gguf/gguf_names.h"
#include "src/files/tensor_codes.h"

namespace ferry {
namespace {

/** The rows of a tensor beside those of Hugging Face's. */
enum class RowOrder : uint8_t {
  same,
  neighbours,  ///< the file turns neighbours of each head against each other, the model halves
  parts,       ///< the file has all queries, all keys, all values, the model those of each head
  columns,     ///< the model's tensor is the other way round
};

/** A tensor in the model's order. A vector has rows of one element. */
class GgufCodes final : public TensorCodes {
 public:
  GgufCodes(const GgufTensor& tensor, RowOrder order, int64_t head_rows, float offset)
      : tensor_(tensor), order_(order), head_rows_(head_rows), offset_(offset) {
    const bool is_vector = tensor.shape.size() == 1;
    columns_ = is_vector ? 1 : tensor.columns();
    rows_ = is_vector ? tensor.shape.front() : tensor.rows();
  }

  void values(int64_t first, std::span<float> out) const override {
    const int64_t width = order_ == RowOrder::columns ? rows_ : columns_;
    for (size_t done = 0; done < out.size();) {
      const int64_t at = first + static_cast<int64_t>(done), row = at / width, column = at % width;
      const auto n = static_cast<size_t>(
          std::min<int64_t>(width - column, static_cast<int64_t>(out.size() - done)));
      const auto to = out.subspan(done, n);
      if (order_ == RowOrder::columns)
        for (size_t i = 0; i < n; ++i)
          read(column + static_cast<int64_t>(i), row, to.subspan(i, 1));
      else
        read(row_in_file(row), column, to);
      done += n;
    }
    if (offset_ != 0)
      for (float& value : out)
        value -= offset_;
  }

  std::span<const std::byte> bytes_of(int64_t first, int64_t n) const override {
    if (order_ != RowOrder::same) return tensor_.bytes;
    const auto begin = static_cast<size_t>(first / columns_ * row_bytes()),
               end = static_cast<size_t>((first + n) / columns_ * row_bytes());
    return columns_ == 1 ? tensor_.bytes : tensor_.bytes.subspan(begin, end - begin);
  }

  std::string_view storage() const override { return gguf_storage(tensor_.type); }

  void read_rows(int64_t first, int64_t n, std::span<std::byte> out) const override {
    const auto n_bytes = static_cast<size_t>(row_bytes());
    for (int64_t i = 0; i < n; ++i) {
      // Parts of heads, and rows of a matrix that lies the other way round, are as a linear map has
      // them.
      const int64_t row = order_ == RowOrder::neighbours ? row_in_file(first + i) : first + i;
      const auto to = out.subspan(static_cast<size_t>(i) * n_bytes, n_bytes);
      std::memcpy(to.data(), tensor_.bytes.data() + static_cast<size_t>(row) * n_bytes, n_bytes);
      if (tensor_.type == GgufType::mxfp4) drop_negative_zeros(to);
    }
  }

 private:
  int64_t row_bytes() const { return ferry::bytes_of(tensor_.type, columns_); }

  /** Element `column` of the file's row and those behind it. */
  void read(int64_t row, int64_t column, std::span<float> to) const {
    if (columns_ == 1) return decode_gguf(tensor_.type, tensor_.bytes, row, to);
    const auto n_bytes = static_cast<size_t>(row_bytes());
    decode_gguf(tensor_.type, tensor_.bytes.subspan(static_cast<size_t>(row) * n_bytes, n_bytes),
                column, to);
  }

  int64_t row_in_file(int64_t row) const {
    const int64_t n = head_rows_;
    if (order_ == RowOrder::neighbours) {
      const int64_t in_head = row % n, half = n / 2;
      return row - in_head + (in_head < half ? 2 * in_head : 2 * (in_head - half) + 1);
    }
    if (order_ == RowOrder::parts) {
      const int64_t n_heads = rows_ / (3 * n), block = row / n;
      return (block % 3 * n_heads + block / 3) * n + row % n;
    }
    return row;
  }

  /** The code 8 is 0 in GGUF files, and -0 in Ferry's memory. */
  static void drop_negative_zeros(std::span<std::byte> row) {
    constexpr size_t kBlock_bytes = 17;
    for (size_t i = 0; i < row.size(); ++i) {
      if (i % kBlock_bytes == 0) continue;  // the scale
      auto pair = std::to_integer<unsigned>(row[i]);
      if ((pair & 15) == 8) pair &= 0xF0;
      if (pair >> 4 == 8) pair &= 0x0F;
      row[i] = static_cast<std::byte>(pair);
    }
  }

  const GgufTensor& tensor_;
  RowOrder order_;
  int64_t head_rows_;
  float offset_;
  int64_t rows_ = 0, columns_ = 0;
};

/** Tensors by which a file says rotary positions. */
bool is_of_configuration(const std::string& name) {
  return name == "rope_freqs.weight" || name.starts_with("rope_factors_");
}

StoredType type_of_values(GgufType type) {
  return type == GgufType::f16    ? StoredType::f16
         : type == GgufType::bf16 ? StoredType::bf16
                                  : StoredType::f32;
}

const GgufNames& names_of(const std::string& architecture) {
  return *std::ranges::find(gguf_names(), architecture, &GgufNames::architecture);
}

}  // namespace

std::string_view gguf_storage(GgufType type) {
  switch (type) {
    case GgufType::q8_0:
      return "q8_0";
    case GgufType::q4_0:
      return "q4_0";
    case GgufType::q4_1:
      return "q4_1";
    case GgufType::q4_k:
      return "q4_k";
    case GgufType::q6_k:
      return "q6_k";
    case GgufType::mxfp4:
      return "mxfp4";
    default:
      return {};
  }
}

std::string gguf_architecture(const GgufFile& file) {
  const GgufKeyReader keys(file);
  if (const std::string type = keys.text("general.type", "model"); type != "model")
    keys.refuse(fmt::format("holds no model: its general.type is {}", type));
  if (const int64_t n = keys.integer("split.count", 1); n > 1)
    keys.refuse(fmt::format("is one of {} parts of a model", n),
                "join them with llama.cpp's llama-gguf-split --merge");
  std::string name = keys.text("general.architecture");
  const auto is_known = [&](const GgufNames& names) { return names.architecture == name; };
  if (std::ranges::any_of(gguf_names(), is_known)) return name;
  std::vector<std::string_view> known;
  for (const GgufNames& names : gguf_names())
    if (known.empty() || known.back() != names.architecture) known.push_back(names.architecture);
  keys.refuse(fmt::format("is of the architecture {}, which Ferry does not read from GGUF", name),
              fmt::format("take the model's Hugging Face directory; GGUF is read of {}",
                          fmt::join(known, ", ")));
}

std::deque<StoredTensor> gguf_tensors(const GgufFile& file) {
  const std::string architecture = gguf_architecture(file);
  const GgufNames& names = names_of(architecture);
  const GgufKeyReader keys(file);
  const auto own = [&](std::string_view key) { return fmt::format("{}.{}", architecture, key); };
  const int64_t width = keys.integer(own("embedding_length")),
                n_heads = keys.integer(own("attention.head_count"));
  if (width < 1 || n_heads < 1 || width > INT32_MAX || n_heads > width)
    keys.refuse(fmt::format("says {} heads of a width of {}", n_heads, width));
  const int64_t head_rows = keys.integer(own("attention.key_length"), width / n_heads);
  const bool is_gemma = architecture.starts_with("gemma");
  std::deque<StoredTensor> tensors;
  for (const GgufTensor& tensor : file.tensors()) {
    if (is_of_configuration(tensor.name)) continue;
    const std::string name = names.hf_name(tensor.name);
    if (name.empty() || tensor.shape.size() > 2)
      keys.refuse(fmt::format("has the tensor '{}', which a model of {} does not have", tensor.name,
                              architecture));
    const auto has = [&](std::string_view part) { return name.find(part) != name.npos; };
    RowOrder order = RowOrder::same;
    if (architecture == "llama" && (has(".q_proj.") || has(".k_proj.")))
      order = RowOrder::neighbours;
    if (architecture == "gptneox" && has(".query_key_value.")) order = RowOrder::parts;
    const bool is_conv =
        architecture == "gpt2" && tensor.shape.size() == 2 && (has(".attn.c_") || has(".mlp.c_"));
    if (is_conv) order = RowOrder::columns;
    const int64_t multiple = order == RowOrder::parts ? 3 * head_rows : head_rows;
    if ((order == RowOrder::neighbours || order == RowOrder::parts) &&
        (head_rows < 2 || head_rows % 2 != 0 || tensor.shape.front() % multiple != 0))
      keys.refuse(fmt::format("has the tensor '{}' of {} rows, and heads of {}", tensor.name,
                              tensor.shape.front(), head_rows));
    const float offset = is_gemma && name.ends_with("norm.weight") ? 1.0f : 0.0f;
    StoredTensor& made = tensors.emplace_back();
    made.name = name;
    made.type = type_of_values(tensor.type);
    made.shape = tensor.shape;
    made.bytes = tensor.bytes;
    if (order == RowOrder::columns) std::ranges::reverse(made.shape);
    if (order == RowOrder::columns && block_elements(tensor.type) == 1)
      made.strides = {1, tensor.columns()};
    else if (order != RowOrder::same || offset != 0 || block_elements(tensor.type) > 1)
      made.codes = std::make_shared<GgufCodes>(tensor, order, head_rows, offset);
  }
  return tensors;
}

}  // namespace ferry
