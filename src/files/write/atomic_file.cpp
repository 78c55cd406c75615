#include "src/files/write/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "src/base/error.h"
#include "src/base/unique_fd.h"
#include "src/files/plain_file.h"
#include "src/files/write/write_error.h"

namespace ferry {
namespace {

/** The directory that holds the file; "." for a bare name. */
std::filesystem::path directory_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path target, unsigned mode) : target_(std::move(target)) {
  // The number skips what a killed process with the same id left behind.
  for (int attempt = 0; !fd_; ++attempt) {
    auto candidate = temporary_name(target_, attempt);
    fd_ = UniqueFd(::open(candidate.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (fd_)
      temporary_ = candidate;
    else if (errno != EEXIST || attempt == 1000)
      throw_write_error(target_, "created", errno);
  }
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::move(other.fd_)),
      direct_(std::move(other.direct_)),
      end_bytes_(other.end_bytes_) {}

AtomicFile::~AtomicFile() {
  direct_.reset();
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::reserve(int64_t size_bytes) {
  FERRY_CHECK(fd_, "'{}' is sealed", target_.string());
  if (size_bytes == 0) return;
  if (::fallocate(fd_.get(), 0, 0, size_bytes) == 0) return;
  if (errno != EOPNOTSUPP && errno != ENOSYS) throw_write_error(target_, "given its space", errno);
  if (::ftruncate(fd_.get(), size_bytes) != 0) throw_write_error(target_, "given its space", errno);
}

void AtomicFile::write_at(int64_t offset_bytes, std::span<const std::byte> bytes) {
  FERRY_CHECK(fd_ && !direct_, "'{}' is sealed, or written directly", target_.string());
  if (const int code = write_all(fd_.get(), offset_bytes, bytes))
    throw_write_error(target_, "written", code);
  end_bytes_ = std::max(end_bytes_, offset_bytes + static_cast<int64_t>(bytes.size()));
}

void AtomicFile::write_directly(WriteBehind& behind) {
  FERRY_CHECK(fd_, "'{}' is sealed", target_.string());
  direct_ = std::make_unique<DirectWriter>(temporary_, fd_.get(), behind);
}

void AtomicFile::fill_at(int64_t offset_bytes, int64_t n_bytes, const FillParts& fill) {
  FERRY_CHECK(direct_, "'{}' is not written directly", target_.string());
  if (const int code = direct_->fill(offset_bytes, n_bytes, fill))
    throw_write_error(target_, "written", code);
}

void AtomicFile::append(std::span<const std::byte> bytes) {
  write_at(end_bytes_, bytes);
}

void AtomicFile::seal() {
  if (!fd_) return;
  if (const int code = direct_ ? direct_->finish() : 0) throw_write_error(target_, "written", code);
  direct_.reset();
  if (::fsync(fd_.get()) != 0) throw_write_error(target_, "written", errno);
  if (fd_.close() != 0) throw_write_error(target_, "written", errno);
}

void AtomicFile::commit() {
  seal();
  FERRY_CHECK(!temporary_.empty(), "'{}' is committed twice", target_.string());
  if (::rename(temporary_.c_str(), target_.c_str()) != 0)
    throw_write_error(target_, "renamed into place", errno);
  temporary_.clear();
  sync_directory(directory_of(target_));
}

AtomicDirectory::AtomicDirectory(std::filesystem::path target)
    : target_(target.has_filename() ? std::move(target) : target.parent_path()),
      partial_(target_.string() + ".partial") {
  make_directories(directory_of(target_));
  // A directory that stands there may be the user's: it is not ours to remove.
  std::error_code error;
  if (std::filesystem::create_directory(partial_, error)) return;
  if (error) throw_write_error(target_, "created", error.value());
  throw Error(Fault::usage, "files.write", fmt::format("'{}' exists", partial_.string()),
              "it may be left of an interrupted save: remove it, or choose another directory");
}

AtomicDirectory::~AtomicDirectory() {
  if (!is_committed_) remove_what_can_be(partial_);
}

void AtomicDirectory::commit() {
  std::error_code error;
  std::filesystem::remove(target_, error);  // an empty directory may stand there
  std::filesystem::rename(partial_, target_, error);
  if (error) throw_write_error(target_, "put in place", error.value());
  is_committed_ = true;
  sync_directory(directory_of(target_));
}

std::filesystem::path temporary_name(const std::filesystem::path& target, int attempt) {
  // The name starts with a dot and ends in the process id, so that no reader takes it for a result
  // and two processes do not meet.
  return directory_of(target) /
         fmt::format(".{}.tmp-{}-{}", target.filename().string(), ::getpid(), attempt);
}

bool is_temporary_file(std::string_view name) {
  return name.starts_with('.') && name.find(".tmp-") != name.npos;
}

void remove_temporary_files(const std::filesystem::path& directory) noexcept {
  try {
    std::error_code error;
    for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end;
         it.increment(error)) {
      std::error_code stays;
      if (is_temporary_file(it->path().filename().string()))
        std::filesystem::remove(it->path(), stays);
    }
  } catch (const std::bad_alloc&) {  // without memory for its names the directory stays as it is
  }
}

void write_text_file(const std::filesystem::path& target, std::string_view text, unsigned mode) {
  AtomicFile file(target, mode);
  file.append(text);
  file.commit();
}

void write_json_file(const std::filesystem::path& target, const nlohmann::ordered_json& value) {
  // `replace`: text that is not UTF-8 becomes U+FFFD; the readers refuse it long before.
  write_text_file(
      target, value.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

void copy_file_atomically(const std::filesystem::path& from, const std::filesystem::path& to) {
  // Read, not mapped: the kernel calls a page that is gone "bad address" when it writes it.
  const PlainFile source = open_plain_file(from);
  AtomicFile file(to);
  std::vector<char> piece(std::min(source.size_bytes + 1, size_t{1} << 20));
  size_t n_copied = 0;
  while (const size_t count = read_some(source, from, piece)) {
    file.append(std::string_view(piece.data(), count));
    n_copied += count;
  }
  if (n_copied < source.size_bytes)
    throw Error(Fault::data, "files.read",
                fmt::format("'{}' became shorter while it was copied", from.string()),
                "wait until nobody writes to it any more");
  file.commit();
}

void remove_what_can_be(const std::filesystem::path& path) noexcept {
  try {
    std::error_code error;
    std::filesystem::remove_all(path, error);
  } catch (const std::bad_alloc&) {  // an error_code does not keep it from that
  }
}

void sync_directory(const std::filesystem::path& directory) {
  UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) throw_write_error(directory, "opened", errno);
  // Some file systems cannot sync a directory and say EINVAL; there is nothing more to do on those.
  if (::fsync(fd.get()) != 0 && errno != EINVAL) throw_write_error(directory, "synced", errno);
}

namespace {

void make_directories(const std::filesystem::path& directory, bool are_private) {
  std::error_code code;
  std::vector<std::filesystem::path> created_in;  // each holds a name that only memory has so far
  const auto whole = std::filesystem::absolute(directory, code).lexically_normal();
  std::vector<std::filesystem::path> created;
  for (auto at = whole; !code && !std::filesystem::exists(at, code) && at != at.parent_path();
       at = at.parent_path()) {
    created_in.push_back(at.parent_path());
    created.push_back(at);
  }
  code.clear();
  std::filesystem::create_directories(directory, code);
  for (const auto& path : created)
    if (std::error_code ignored; are_private && !code)
      std::filesystem::permissions(path, std::filesystem::perms::owner_all, ignored);
  if (!code && !std::filesystem::is_directory(directory, code))
    code = std::make_error_code(std::errc::not_a_directory);
  if (code) throw_write_error(directory, "created", code.value());
  for (const auto& parent : created_in)
    // One in which this user may make names but not read them cannot be opened.
    if (::access(parent.c_str(), R_OK) == 0) sync_directory(parent);
}

}  // namespace

void make_directories(const std::filesystem::path& directory) {
  make_directories(directory, /*are_private=*/false);
}

void make_private_directories(const std::filesystem::path& directory) {
  make_directories(directory, /*are_private=*/true);
}

void check_can_make_files_in(const std::filesystem::path& directory) {
  std::error_code ignored;
  auto nearest = std::filesystem::absolute(directory, ignored).lexically_normal();
  if (!nearest.has_filename()) nearest = nearest.parent_path();
  while (!std::filesystem::exists(std::filesystem::symlink_status(nearest, ignored)) &&
         nearest.has_relative_path())
    nearest = nearest.parent_path();
  // A file without a name is made and gone. Where the file system knows none, rights decide.
  const UniqueFd file(::open(nearest.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file) return;
  int code = errno;
  if (code == EOPNOTSUPP || code == EISDIR || code == EINVAL)
    code = ::faccessat(AT_FDCWD, nearest.c_str(), W_OK | X_OK, AT_EACCESS) == 0 ? 0 : errno;
  const bool is_there = std::filesystem::is_directory(directory, ignored);
  if (code != 0) throw_write_error(directory, is_there ? "written to" : "created", code);
}

}  // namespace ferry
