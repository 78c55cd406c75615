#include "src/files/gguf/gguf_writer.h"

#include <fmt/format.h>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/files/safetensors/safetensors.h"

namespace ferry {
namespace {

/** The bytes before the tensors. */
class Header {
 public:
  template <typename Number>
  void put(Number number) {
    const auto bytes = std::as_bytes(std::span(&number, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void put_text(std::string_view text) {
    put<uint64_t>(text.size());
    const auto bytes = std::as_bytes(std::span(text));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void put_value(const GgufValue& value) {
    put(value.kind);
    std::visit([&](const auto& content) { put_content(value, content); }, value.content);
  }
  void pad() { bytes_.resize(static_cast<size_t>(round_up(n_bytes(), kGgufAlignment_bytes))); }

  int64_t n_bytes() const { return std::ssize(bytes_); }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  void put_content(const GgufValue& value, int64_t number) { put_one(value.kind, number); }
  void put_content(const GgufValue& value, double number) { put_one(value.kind, number); }
  void put_content(const GgufValue&, bool flag) { put<uint8_t>(flag); }
  void put_content(const GgufValue&, const std::string& text) { put_text(text); }
  template <typename Element>
  void put_content(const GgufValue& value, const std::vector<Element>& list) {
    put(value.element);
    put<uint64_t>(list.size());
    for (const Element& element : list)
      put_one(value.element, element);
  }

  void put_one(GgufKind, const std::string& text) { put_text(text); }
  void put_one(GgufKind kind, double number) {
    if (kind == GgufKind::f32) return put(static_cast<float>(number));
    FERRY_CHECK(kind == GgufKind::f64, "a number as {}", name_of(kind));
    put(number);
  }
  void put_one(GgufKind kind, int64_t number) {
    switch (kind) {
      case GgufKind::u8:
      case GgufKind::i8:
      case GgufKind::boolean:
        return put(static_cast<uint8_t>(number));
      case GgufKind::u16:
      case GgufKind::i16:
        return put(static_cast<uint16_t>(number));
      case GgufKind::u32:
      case GgufKind::i32:
        return put(static_cast<uint32_t>(number));
      default:
        FERRY_CHECK(kind == GgufKind::u64 || kind == GgufKind::i64, "a number as {}",
                    name_of(kind));
        return put(number);
    }
  }

  std::vector<std::byte> bytes_;
};

int64_t elements_of(const GgufTensorSpec& tensor) {
  int64_t n = 1;
  for (const int64_t size : tensor.shape)
    n *= size;
  return n;
}

}  // namespace

GgufWriter::GgufWriter(const std::filesystem::path& path,
                       const GgufKeys& keys,
                       const std::vector<GgufTensorSpec>& tensors)
    : file_(path) {
  Header header;
  for (const char letter : std::string_view("GGUF"))
    header.put(letter);
  header.put(kGgufVersion);
  header.put<uint64_t>(tensors.size());
  header.put<uint64_t>(keys.size());
  for (const auto& [key, value] : keys) {
    header.put_text(key);
    header.put_value(value);
  }
  int64_t offset_bytes = 0;
  for (const GgufTensorSpec& tensor : tensors) {
    FERRY_CHECK(!tensor.shape.empty() && tensor.shape.size() <= kGgufDims_max &&
                    tensor.name.size() <= kGgufName_bytes_max,
                "tensor '{}' of shape {}", tensor.name, format_shape(tensor.shape));
    header.put_text(tensor.name);
    header.put(static_cast<uint32_t>(tensor.shape.size()));
    for (size_t i = tensor.shape.size(); i-- > 0;)
      header.put(tensor.shape[i]);
    header.put(tensor.type);
    header.put(offset_bytes);
    const int64_t n_bytes = bytes_of(tensor.type, elements_of(tensor));
    const bool is_new =
        progress_.emplace(tensor.name, Progress{tensor.type, offset_bytes, offset_bytes + n_bytes})
            .second;
    FERRY_CHECK(is_new, "tensor '{}' is declared twice", tensor.name);
    offset_bytes = round_up(offset_bytes + n_bytes, kGgufAlignment_bytes);
  }
  header.pad();
  for (auto& [name, progress] : progress_) {
    progress.next_bytes += header.n_bytes();
    progress.end_bytes += header.n_bytes();
  }
  file_.reserve(header.n_bytes() + offset_bytes);
  file_.append(header.bytes());
}

GgufWriter::Progress& GgufWriter::progress_of(std::string_view name, int64_t n_bytes) {
  const auto found = progress_.find(std::string(name));
  FERRY_CHECK(found != progress_.end(), "tensor '{}' was not declared", name);
  Progress& progress = found->second;
  FERRY_CHECK(n_bytes <= progress.end_bytes - progress.next_bytes,
              "tensor '{}' has room for {} bytes, not {}", name,
              progress.end_bytes - progress.next_bytes, n_bytes);
  return progress;
}

void GgufWriter::write(std::string_view name, std::span<const float> values) {
  const GgufType type = progress_of(name, 0).type;
  encoded_.resize(static_cast<size_t>(bytes_of(type, std::ssize(values))));
  encode_gguf(type, values, encoded_);
  write_blocks(name, encoded_);
}

void GgufWriter::write_blocks(std::string_view name, std::span<const std::byte> blocks) {
  Progress& progress = progress_of(name, std::ssize(blocks));
  file_.write_at(progress.next_bytes, blocks);
  progress.next_bytes += std::ssize(blocks);
}

void GgufWriter::finish() {
  for (const auto& [name, progress] : progress_)
    FERRY_CHECK(progress.next_bytes == progress.end_bytes, "tensor '{}' lacks {} bytes", name,
                progress.end_bytes - progress.next_bytes);
  file_.commit();
}

}  // namespace ferry
