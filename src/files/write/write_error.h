#pragma once
// The one message for a file that could not be made or written. Private to src/files.

#include <filesystem>
#include <string_view>

namespace ferry {

/** "'target' could not be <doing>: <what errno `code` says>", and what to do about it: throws
 * Error(does_not_fit) where memory ran out, DiskFull where the disk did, else Error(machine). */
[[noreturn]] void throw_write_error(const std::filesystem::path& target,
                                    std::string_view doing,
                                    int code);

}  // namespace ferry
