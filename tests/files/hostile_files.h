#pragma once
// Files that are no files, really made: what a reader must refuse at once instead of waiting for a
// writer or filling the memory.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace ferry::test {

/** More than any machine has as memory; a sparse file of it takes no disk. */
inline constexpr int64_t kHuge_bytes = int64_t{1} << 42;

struct HostileFile {
  std::string what;  // a part of the message that refuses it
  std::function<void(const std::filesystem::path&)> make;
};

inline void make_socket(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path.string().size(), sizeof address.sun_path);
  std::strcpy(address.sun_path, path.c_str());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::close(fd);
}

inline void make_sparse(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ASSERT_EQ(::ftruncate(fd, kHuge_bytes), 0);
  ::close(fd);
}

/** One of each kind, made at the path that `make` is given. */
inline std::vector<HostileFile> hostile_files() {
  return {
      {"is a pipe", [](const auto& path) { ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0); }},
      {"is a device", [](const auto& path) { std::filesystem::create_symlink("/dev/zero", path); }},
      {"is a socket", make_socket},
      {"is a directory", [](const auto& path) { std::filesystem::create_directory(path); }},
      {"4096.00 GiB", make_sparse},
  };
}

}  // namespace ferry::test
