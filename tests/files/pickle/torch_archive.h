#pragma once
// Files as torch.save writes them, and as attackers do: operations of a pickle as text, and a zip
// archive of stored entries.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ferry::test {

template <typename Word>
std::string little_endian(Word value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// Each leaves one value on the stack.

inline std::string pickled(std::string_view text) {
  return "X" + little_endian(static_cast<uint32_t>(text.size())) + std::string(text);
}
inline std::string pickled(int64_t value) {
  return std::string("\x8a\x08") + little_endian(value);
}
inline std::string pickled(const std::vector<int64_t>& tuple) {
  std::string text = "(";
  for (int64_t value : tuple)
    text += pickled(value);
  return text + "t";
}
inline std::string global(std::string_view module, std::string_view name) {
  return "c" + std::string(module) + "\n" + std::string(name) + "\n";
}
inline std::string storage(std::string_view type, std::string_view key, int64_t n) {
  return "(" + pickled("storage") + global("torch", type) + pickled(key) + pickled("cpu") +
         pickled(n) + "tQ";
}

struct TensorView {
  std::string_view type = "FloatStorage";
  std::string_view key = "0";
  int64_t n_stored = 6, offset = 0;
  std::vector<int64_t> shape = {2, 3}, strides = {3, 1};
};
inline std::string tensor(const TensorView& view) {
  return global("torch._utils", "_rebuild_tensor_v2") + "(" +
         storage(view.type, view.key, view.n_stored) + pickled(view.offset) + pickled(view.shape) +
         pickled(view.strides) + "\x89" + global("collections", "OrderedDict") + ")RtR";
}

/** A dictionary of values, each the text that makes it. */
inline std::string dictionary(const std::vector<std::pair<std::string, std::string>>& values) {
  std::string text = "}(";
  for (const auto& [name, value] : values)
    text += pickled(name) + value;
  return text + "u";
}
inline std::string pickle_of(std::string_view value) {
  return "\x80\x02" + std::string(value) + ".";
}

struct ArchiveEntry {
  std::string name, bytes;
  uint16_t method = 0, flags = 0;
};

/** A zip archive; `zip64`: its sizes and places in 64 bits, as of a file above 4 GiB. */
inline std::string archive(const std::vector<ArchiveEntry>& entries, bool zip64 = false) {
  const auto word16 = [](size_t value) { return little_endian(static_cast<uint16_t>(value)); };
  const auto word32 = [](size_t value) { return little_endian(static_cast<uint32_t>(value)); };
  const auto word64 = [](size_t value) { return little_endian(static_cast<uint64_t>(value)); };
  constexpr size_t kIn64 = 0xffffffff;
  std::string file, central;
  for (const ArchiveEntry& entry : entries) {
    const size_t n = entry.bytes.size(), local_at = file.size();
    const std::string extra =
        zip64 ? word16(1) + word16(24) + word64(n) + word64(n) + word64(local_at) : "";
    const std::string head = word16(entry.flags) + word16(entry.method) + word32(0) + word32(0) +
                             word32(zip64 ? kIn64 : n) + word32(zip64 ? kIn64 : n) +
                             word16(entry.name.size());
    file += "PK\x03\x04" + word16(45) + head + word16(5) + entry.name + "padds" + entry.bytes;
    central += "PK\x01\x02" + word16(45) + word16(45) + head + word16(extra.size()) + word16(0) +
               word16(0) + word16(0) + word32(0) + word32(zip64 ? kIn64 : local_at) + entry.name +
               extra;
  }
  const size_t central_at = file.size();
  file += central;
  if (zip64) {
    const size_t end_at = file.size();
    file += "PK\x06\x06" + word64(44) + word16(45) + word16(45) + word32(0) + word32(0) +
            word64(entries.size()) + word64(entries.size()) + word64(central.size()) +
            word64(central_at);
    file += "PK\x06\x07" + word32(0) + word64(end_at) + word32(1);
  }
  return file + "PK\x05\x06" + word16(0) + word16(0) + word16(zip64 ? 0xffff : entries.size()) +
         word16(zip64 ? 0xffff : entries.size()) + word32(central.size()) +
         word32(zip64 ? kIn64 : central_at) + word16(0);
}

/** A file of torch.save with this pickle and the floats 0, 1, 2, ... as storage "0". */
inline std::string torch_file(std::string_view pickle, int n_floats = 6) {
  std::string floats;
  for (int i = 0; i < n_floats; ++i)
    floats += little_endian(static_cast<float>(i));
  return archive({{"model/data.pkl", std::string(pickle)},
                  {"model/byteorder", "little"},
                  {"model/data/0", floats},
                  {"model/version", "3\n"}});
}

}  // namespace ferry::test
