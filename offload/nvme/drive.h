#pragma once
// The drive behind a directory: which one it is, and whether its file system will do.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace ferry {

/** The identity of the file system that holds `path`, the same after a restart and under another
 * mount point: its UUID and the number that statfs gives, in one word. Throws
 * Error(machine) where there is no such path. */
std::string drive_id_of(const std::filesystem::path& path);

/** "01234567-89ab-cdef-0123-456789abcdef" */
std::string uuid_text(std::span<const uint8_t, 16> bytes);

/** True where `path` lies on the drive of `id`. drive_id_of() gave that, maybe under another
 * kernel.
 */
bool is_on_drive(const std::filesystem::path& path, std::string_view id);

/** The name of the network's file system with this number of statfs; empty: it is none. */
std::string_view network_of(uint32_t magic);

/** Throws Error(usage) where the file system lies on another machine: it neither keeps what flush()
 * promises nor a drive's rate; and where the kernel makes it up (proc, sysfs). Says in the log
 * where it is not a drive's own: FUSE, memory. */
void check_file_system(const std::filesystem::path& directory);

}  // namespace ferry
