#pragma once
// A directory in memory for readers that take files, one for the whole process.

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace ferry::fuzz {

inline const std::filesystem::path& scratch_directory() {
  static const std::filesystem::path directory = [] {
    std::string pattern = "/dev/shm/ferry-fuzz-XXXXXX";
    if (!mkdtemp(pattern.data())) std::abort();
    return std::filesystem::path(pattern);
  }();
  return directory;
}

inline std::filesystem::path write_scratch(std::string_view name, std::string_view bytes) {
  const std::filesystem::path file = scratch_directory() / name;
  std::ofstream(file, std::ios::binary).write(bytes.data(), std::ssize(bytes));
  return file;
}

}  // namespace ferry::fuzz
