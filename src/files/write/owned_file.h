#pragma once
// Files that belong to a run or a cache, opened to be written. A run's directory may come from
// somebody else: a link in it could lead to any file of the user, so that no such file is opened
// through a link, and no link stands where a directory is expected.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "src/base/unique_fd.h"

namespace ferry {

/** open(2) with O_CLOEXEC; it never follows a link as the last name and never waits. A file that it
 * makes is its owner's alone. Throws Error(data) for a link and for what is no plain file,
 * Error(machine) or DiskFull where the system refuses; all name the file. */
UniqueFd open_owned_file(const std::filesystem::path& file, int flags);

/** Writes bytes into a file that is there, until they are safe on disk. Throws the same. */
void write_owned_at(const std::filesystem::path& file,
                    int64_t offset_bytes,
                    std::span<const std::byte> bytes);

/** From here on no file or directory that this process makes may be written by all: a umask of 0,
 * as some services have, would let them. */
void keep_others_out();

/** Throws Error(data) that names the path where it is a link. */
void refuse_link(const std::filesystem::path& path);

/** refuse_link() of each entry of the directory, which may be absent, and of each entry of its
 * directories. */
void refuse_links_in(const std::filesystem::path& directory);

}  // namespace ferry
