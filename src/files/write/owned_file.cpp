#include "src/files/write/owned_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include "src/base/error.h"
#include "src/files/plain_file.h"
#include "src/files/write/direct_writer.h"
#include "src/files/write/write_error.h"

namespace ferry {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_as_link(const fs::path& path) {
  std::error_code error;
  throw Error(Fault::data, "files.write",
              fmt::format("'{}' is a link to '{}', and Ferry writes only to what lies there itself",
                          path.string(), fs::read_symlink(path, error).string()),
              "remove the link; who gave you this directory may have meant that other file");
}

/** An entry may go while the directory is read: what is no longer there is no link. */
template <class Visit>
void visit_entries(const fs::path& directory, Visit visit) {
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error))
    visit(it->path());
}

}  // namespace

UniqueFd open_owned_file(const fs::path& file, int flags) {
  UniqueFd fd(::open(file.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600));
  const int code = fd ? 0 : errno;
  if (code == ELOOP) refuse_link(file);
  struct stat found {};
  const bool is_there = fd ? ::fstat(fd.get(), &found) == 0 : ::lstat(file.c_str(), &found) == 0;
  if (is_there && !S_ISREG(found.st_mode))
    throw Error(
        Fault::data, "files.write",
        fmt::format("'{}' is {}, expected a file", file.string(), kind_of_file(found.st_mode)),
        "move it away");
  if (!fd) throw_write_error(file, "opened", code);
  return fd;
}

void write_owned_at(const fs::path& file, int64_t offset_bytes, std::span<const std::byte> bytes) {
  const UniqueFd fd = open_owned_file(file, O_WRONLY);
  if (const int code = write_all(fd.get(), offset_bytes, bytes))
    throw_write_error(file, "written", code);
  if (::fsync(fd.get()) != 0) throw_write_error(file, "written", errno);
}

void keep_others_out() {
  const mode_t before = ::umask(0);
  ::umask(before | S_IWOTH);
}

void refuse_link(const fs::path& path) {
  std::error_code error;
  if (fs::is_symlink(fs::symlink_status(path, error))) refuse_as_link(path);
}

void refuse_links_in(const fs::path& directory) {
  visit_entries(directory, [](const fs::path& path) {
    refuse_link(path);
    if (path_is_directory(path)) visit_entries(path, refuse_link);
  });
}

}  // namespace ferry
