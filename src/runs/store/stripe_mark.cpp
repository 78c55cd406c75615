#include "src/runs/store/stripe_mark.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <type_traits>
#include <vector>

#include "src/base/crc32c.h"
#include "src/base/error.h"
#include "src/base/unique_fd.h"
#include "src/files/write/owned_file.h"

namespace ferry::runs {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kVersion = 1;
/** Far more than the drives of any machine. */
constexpr uint32_t kNumber_max = 4096;

/** Little-endian; the page's last four bytes are its checksum. */
struct MarkRecord {
  char magic[8] = {'F', 'E', 'R', 'R', 'Y', 'S', 'T', 'R'};
  uint32_t version = kVersion;
  uint32_t number = 0;
  char uuid[kUuid_length] = {};
  char run[kRunName_max + 1] = {};
};
static_assert(std::is_trivially_copyable_v<MarkRecord>);
constexpr size_t kSealed_bytes = kMark_bytes - sizeof(uint32_t);

uint32_t seal_of(const StorePage& page) {
  return crc32c(std::span(page.bytes).first(kSealed_bytes));
}

template <size_t n>
std::string text_of(const char (&field)[n]) {
  return {field, std::find(field, field + n, '\0')};
}

[[noreturn]] void refuse_to_read(const fs::path& file, int code) {
  throw Error(
      Fault::machine, "nvme.find",
      fmt::format("'{}' cannot be read: {}", file.string(), std::generic_category().message(code)),
      "see `dmesg` for the drive and its file system");
}

/** Fewer bytes where the file ends. */
size_t read_at(int fd, const fs::path& file, int64_t offset_bytes, std::span<std::byte> into) {
  size_t done = 0;
  while (done < into.size()) {
    const ssize_t count = ::pread(fd, into.data() + done, into.size() - done,
                                  offset_bytes + static_cast<int64_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse_to_read(file, errno);
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  return done;
}

std::optional<StoreIdentity> superblock_in(int fd, const fs::path& file) {
  constexpr int64_t kCopies = 2, kCopy_bytes = StoreLayout::superblock_bytes();
  std::vector<std::byte> area(kCopy_bytes);
  for (int64_t copy = 0; copy < kCopies; ++copy) {
    if (read_at(fd, file, copy * kCopy_bytes, area) < area.size()) return std::nullopt;
    try {
      return decode_superblock(area).identity;
    } catch (const StoreFormatError&) {  // the other copy may be whole
    }
  }
  return std::nullopt;
}

std::optional<StripeIdentity> mark_in(int fd, const fs::path& file, int64_t file_bytes) {
  StorePage page;
  if (file_bytes < kMark_bytes) return std::nullopt;
  if (read_at(fd, file, file_bytes - kMark_bytes, page.bytes) < sizeof page.bytes)
    return std::nullopt;
  try {
    return decode_mark(page);
  } catch (const StoreFormatError&) {
    return std::nullopt;
  }
}

}  // namespace

void encode_mark(const StripeIdentity& identity, StorePage& page) {
  MarkRecord record{.number = static_cast<uint32_t>(identity.number)};
  FERRY_CHECK(identity.number > 0 && identity.number <= kNumber_max &&
                  identity.store.uuid.size() == kUuid_length &&
                  identity.store.run.size() <= kRunName_max,
              "file {} of '{}' of '{}'", identity.number, identity.store.uuid, identity.store.run);
  std::ranges::copy(identity.store.uuid, record.uuid);
  std::ranges::copy(identity.store.run, record.run);
  std::ranges::fill(page.bytes, std::byte{0});
  std::memcpy(page.bytes, &record, sizeof record);
  const uint32_t seal = seal_of(page);
  std::memcpy(page.bytes + kSealed_bytes, &seal, sizeof seal);
}

StripeIdentity decode_mark(const StorePage& page) {
  MarkRecord record;
  std::memcpy(&record, page.bytes, sizeof record);
  if (std::memcmp(record.magic, MarkRecord{}.magic, sizeof record.magic) != 0)
    throw StoreFormatError("it does not begin as one of Ferry's does");
  uint32_t seal = 0;
  std::memcpy(&seal, page.bytes + kSealed_bytes, sizeof seal);
  if (seal != seal_of(page)) throw StoreFormatError("its checksum is wrong");
  if (record.version != kVersion)
    throw StoreFormatError(fmt::format("it was written as version {}", record.version));
  if (record.number == 0 || record.number > kNumber_max)
    throw StoreFormatError(fmt::format("it is of a file {}", record.number));
  return {.store = {text_of(record.run), text_of(record.uuid)}, .number = record.number};
}

std::optional<StripeIdentity> stripe_in(const fs::path& file) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  if (!fd && errno == ELOOP) return std::nullopt;
  if (!fd) refuse_to_read(file, errno);
  struct stat found {};
  if (::fstat(fd.get(), &found) != 0) refuse_to_read(file, errno);
  if (!S_ISREG(found.st_mode)) return std::nullopt;
  if (auto store = superblock_in(fd.get(), file))
    return StripeIdentity{.store = std::move(*store), .number = 0};
  return mark_in(fd.get(), file, found.st_size);
}

bool is_stripe_of(const std::string& uuid, size_t number, const fs::path& file) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(file, error))) return false;
  const auto found = stripe_in(file);
  return found && found->store.uuid == uuid && found->number == number;
}

void write_mark(const fs::path& file, int64_t stripe_bytes, const StripeIdentity& identity) {
  StorePage page;
  encode_mark(identity, page);
  write_owned_at(file, stripe_bytes, page.bytes);
}

}  // namespace ferry::runs
