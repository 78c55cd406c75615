#pragma once
// The one way to open a file for reading. A path comes in; a plain file, or its whole text, goes
// out. Pipes, devices, sockets and directories are refused by name and at once, so that no reader
// waits for a writer that never comes or fills the memory from a device that never ends.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "src/base/unique_fd.h"

namespace ferry {

struct PlainFile {
  UniqueFd fd;
  size_t size_bytes = 0;
};

/** Opens a plain file for reading, never waiting. Throws Error(data) when the file is missing, may
 * not be read or is no plain file. */
PlainFile open_plain_file(const std::filesystem::path& path);

/** The most that a configuration or an index may hold. */
inline constexpr size_t kTextLimit_bytes = size_t{1} << 30;

/** The whole of a file as text. Errors as open_plain_file; also Error(data) when it holds more than
 * max_bytes or more than the memory that is free, or becomes shorter while it is read, and
 * Error(machine) when the disk fails. */
std::string read_text_file(const std::filesystem::path& path, size_t max_bytes = kTextLimit_bytes);

/** The next bytes of the file, at most as many as `into` holds; 0 at its end. Throws Error(machine)
 * when the disk fails. */
size_t read_some(const PlainFile& file, const std::filesystem::path& path, std::span<char> into);

/** All that comes out of an open pipe, socket, terminal or file until its end, waiting where it has
 * to. `name` is for errors: Error(data) when more comes than memory is free, or a byte that is 0,
 * which no text has and which devices have without end. */
std::string read_stream(int descriptor, std::string_view name);

/** The descriptor that a path such as /dev/stdin or /dev/fd/63 names, which a shell makes for
 * <(command); nullopt for other paths. */
std::optional<int> descriptor_of(const std::filesystem::path& path);

/** "a directory", "a pipe", ... of a file's mode (stat's st_mode) that is no plain file. */
std::string_view kind_of_file(uint32_t mode);

/** Without exceptions: what may not be looked into counts as absent, and opening it says why. */
bool path_exists(const std::filesystem::path& path);
bool path_is_directory(const std::filesystem::path& path);

}  // namespace ferry
