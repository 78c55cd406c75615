#include "src/files/pickle/zip_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace ferry {
namespace {

constexpr std::string_view kLocal = "PK\x03\x04", kCentral = "PK\x01\x02", kEnd = "PK\x05\x06",
                           kEnd64 = "PK\x06\x06", kLocator64 = "PK\x06\x07";
constexpr size_t kLocal_bytes = 30, kCentral_bytes = 46, kEnd_bytes = 22, kEnd64_bytes = 56,
                 kLocator64_bytes = 20;
constexpr size_t kComment_bytes_max = 65535;
constexpr const char* kIncomplete = "is the download complete?";
constexpr uint32_t kIn64 = 0xffffffff;  // the value is in the extra field

/** A record of the archive; little-endian in the file, as is every machine Ferry runs on. */
class Record {
 public:
  Record(std::span<const std::byte> file,
         uint64_t at,
         size_t n_bytes,
         std::string_view magic,
         const char* what) {
    if (at > file.size() || n_bytes > file.size() - at)
      refuse_torch_file(fmt::format("its {} lies beyond its end", what), kIncomplete);
    bytes_ = file.subspan(at, n_bytes);
    if (std::memcmp(bytes_.data(), magic.data(), magic.size()) != 0)
      refuse_torch_file(fmt::format("its {} is not where the archive says", what), kIncomplete);
  }
  template <typename Word>
  Word at(size_t offset) const {
    Word word;
    std::memcpy(&word, bytes_.data() + offset, sizeof word);
    return word;
  }

 private:
  std::span<const std::byte> bytes_;
};

struct Directory {
  uint64_t begin = 0, n_entries = 0;
};

Directory find_directory(std::span<const std::byte> file) {
  if (file.size() < kEnd_bytes) refuse_torch_file("it is no whole archive", kIncomplete);
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  // Nothing but a comment may follow: a sparse file of terabytes is not searched.
  const size_t begin = file.size() - std::min(file.size(), kEnd_bytes + kComment_bytes_max);
  const size_t found =
      text.substr(begin, file.size() - kEnd_bytes - begin + kEnd.size()).rfind(kEnd);
  if (found == text.npos)
    refuse_torch_file("it ends without the list of what it holds", kIncomplete);
  const size_t end_at = begin + found;
  const Record end(file, end_at, kEnd_bytes, kEnd, "end");
  if (end_at >= kLocator64_bytes &&
      text.substr(end_at - kLocator64_bytes, kLocator64.size()) == kLocator64) {
    const Record locator(file, end_at - kLocator64_bytes, kLocator64_bytes, kLocator64, "locator");
    const Record end64(file, locator.at<uint64_t>(8), kEnd64_bytes, kEnd64, "end");
    return {end64.at<uint64_t>(48), end64.at<uint64_t>(32)};
  }
  return {end.at<uint32_t>(16), end.at<uint16_t>(10)};
}

/** Sizes and place of an entry; of those that do not fit 32 bits the extra field has 64. */
struct Place {
  uint64_t n_bytes, stored_bytes, local_at;
};

Place place_of(const Record& central, std::span<const std::byte> extra, std::string_view name) {
  Place place = {central.at<uint32_t>(24), central.at<uint32_t>(20), central.at<uint32_t>(42)};
  while (extra.size() >= 4) {
    uint16_t id = 0, n_bytes = 0;
    std::memcpy(&id, extra.data(), 2);
    std::memcpy(&n_bytes, extra.data() + 2, 2);
    if (n_bytes > extra.size() - 4) break;
    auto field = extra.subspan(4, n_bytes);
    extra = extra.subspan(4 + size_t{n_bytes});
    if (id != 1) continue;
    for (uint64_t* value : {&place.n_bytes, &place.stored_bytes, &place.local_at}) {
      if (*value != kIn64) continue;
      if (field.size() < 8)
        refuse_torch_file(fmt::format("the size of its entry '{}' is missing", name), kIncomplete);
      std::memcpy(value, field.data(), 8);
      field = field.subspan(8);
    }
  }
  return place;
}

}  // namespace

void refuse_torch_file(std::string what, std::string hint) {
  throw TorchFormatError{std::move(what), std::move(hint)};
}

ZipIndex index_zip(std::span<const std::byte> file) {
  const Directory directory = find_directory(file);
  ZipIndex index;
  uint64_t at = directory.begin;
  for (uint64_t i = 0; i < directory.n_entries; ++i) {
    const Record central(file, at, kCentral_bytes, kCentral, "list of entries");
    const size_t name_bytes = central.at<uint16_t>(28), extra_bytes = central.at<uint16_t>(30);
    const size_t rest = name_bytes + extra_bytes + central.at<uint16_t>(32);
    if (rest > file.size() - at - kCentral_bytes)
      refuse_torch_file("its list of entries is cut off", kIncomplete);
    const auto name_at = file.subspan(at + kCentral_bytes);
    const std::string_view name(reinterpret_cast<const char*>(name_at.data()), name_bytes);
    const Place place = place_of(central, name_at.subspan(name_bytes, extra_bytes), name);
    at += kCentral_bytes + rest;

    constexpr uint16_t kEncrypted = 1;
    if (central.at<uint16_t>(8) & kEncrypted)
      refuse_torch_file(fmt::format("its entry '{}' is encrypted", name));
    if (central.at<uint16_t>(10) != 0 || place.n_bytes != place.stored_bytes)
      refuse_torch_file(
          fmt::format("its entry '{}' is compressed, which torch.save never does", name),
          "load it with torch and save it again");
    const Record local(file, place.local_at, kLocal_bytes, kLocal, "entry");
    const uint64_t header_bytes =
        kLocal_bytes + uint64_t{local.at<uint16_t>(26)} + local.at<uint16_t>(28);
    const uint64_t left = file.size() - place.local_at;  // at least the record
    if (header_bytes > left || place.n_bytes > left - header_bytes)
      refuse_torch_file(fmt::format("its entry '{}' of {} bytes is cut off", name, place.n_bytes),
                        kIncomplete);
    if (!index.emplace(name, file.subspan(place.local_at + header_bytes, place.n_bytes)).second)
      refuse_torch_file(fmt::format("it has two entries '{}'", name));
  }
  return index;
}

}  // namespace ferry
