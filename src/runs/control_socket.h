#pragma once
// The common part of both ends of a control socket. Private to src/runs.

#include <sys/un.h>

#include <cstddef>
#include <filesystem>
#include <string_view>

#include "src/base/unique_fd.h"

namespace ferry::runs {

/** The most that a question or an answer has. */
inline constexpr size_t kMessage_bytes_max = 1 << 16;

/** Throws Error(machine): the path could not be made, opened, ... for this errno. */
[[noreturn]] void fail_at_socket(const std::filesystem::path& path,
                                 std::string_view doing,
                                 int code);

/** Throws Error(machine) for a path that is too long. */
sockaddr_un address_of(const std::filesystem::path& path);

/** `flags`: beside SOCK_CLOEXEC. Throws Error(machine). */
UniqueFd make_socket(const std::filesystem::path& path, int flags = 0);

}  // namespace ferry::runs
