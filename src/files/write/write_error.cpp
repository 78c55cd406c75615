#include "src/files/write/write_error.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

#include "src/base/process/out_of_memory.h"
#include "src/files/write/disk_full.h"

namespace ferry {

void throw_write_error(const std::filesystem::path& target, std::string_view doing, int code) {
  std::string_view hint = "check the disk and its file system";
  if (code == ENOSPC || code == EDQUOT)
    hint = "the disk is full: free some space or choose another directory";
  else if (code == EACCES || code == EPERM || code == EROFS)
    hint = "choose a directory you may write to";
  else if (code == ENOENT || code == ENOTDIR)
    hint = "the directory does not exist: make it first";
  else if (code == ELOOP)
    hint = "it is a link, and Ferry writes through none: remove it";
  else if (code == ENOMEM)
    hint = kNoMemoryHint;
  else if (code == EMFILE || code == ENFILE)
    hint = "this process may open too few files: raise the limit (ulimit -n)";
  else if (code == EFBIG)
    hint = "the file would exceed the limit on file sizes (ulimit -f)";
  if (code == ENOSPC || code == EDQUOT)
    throw DiskFull(Fault::machine, "files.write",
                   fmt::format("'{}' could not be {}: {}", target.string(), doing,
                               std::generic_category().message(code)),
                   hint);
  throw Error(code == ENOMEM ? Fault::does_not_fit : Fault::machine, "files.write",
              fmt::format("'{}' could not be {}: {}", target.string(), doing,
                          std::generic_category().message(code)),
              hint);
}

}  // namespace ferry
