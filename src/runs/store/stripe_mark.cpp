#include "src/runs/store/stripe_mark.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <system_error>
#include <vector>

#include "src/base/error.h"
#include "src/base/unique_fd.h"

namespace ferry::runs {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_to_read(const fs::path& file, int code) {
  throw Error(
      Fault::machine, "nvme.find",
      fmt::format("'{}' cannot be read: {}", file.string(), std::generic_category().message(code)),
      "see `dmesg` for the drive and its file system");
}

/** False where the file has no such bytes. */
bool read_at(int fd, const fs::path& file, int64_t offset_bytes, std::span<std::byte> into) {
  while (offset_bytes >= 0 && !into.empty()) {
    const ssize_t count = ::pread(fd, into.data(), into.size(), offset_bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse_to_read(file, errno);
    if (count == 0) return false;
    into = into.subspan(static_cast<size_t>(count));
    offset_bytes += count;
  }
  return into.empty();
}

/** Nothing where the bytes are damaged, or of something else. */
std::optional<StripeIdentity> decoded(auto&& decode) {
  try {
    return decode();
  } catch (const StoreFormatError&) {
    return std::nullopt;
  }
}

}  // namespace

bool is_there(const fs::path& file) {
  std::error_code error;
  return fs::exists(fs::symlink_status(file, error));
}

std::optional<StripeIdentity> stripe_in(const fs::path& file) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  if (!fd && errno == ELOOP) return std::nullopt;
  struct stat found {};
  if (!fd || ::fstat(fd.get(), &found) != 0) refuse_to_read(file, errno);
  if (!S_ISREG(found.st_mode)) return std::nullopt;
  constexpr int64_t kCopy_bytes = StoreLayout::superblock_bytes();
  std::vector<std::byte> area(kCopy_bytes);
  for (const int64_t copy : {0, 1}) {
    if (!read_at(fd.get(), file, copy * kCopy_bytes, area)) break;
    if (auto first = decoded([&] { return StripeIdentity{decode_superblock(area).identity}; }))
      return first;
  }
  StorePage page;
  if (!read_at(fd.get(), file, found.st_size - kMark_bytes, page.bytes)) return std::nullopt;
  return decoded([&] { return decode_mark(page); });
}

bool is_stripe_of(const std::string& uuid, size_t number, const fs::path& file) {
  if (!is_there(file)) return false;
  const auto found = stripe_in(file);
  return found && found->store.uuid == uuid && found->number == number;
}

}  // namespace ferry::runs
