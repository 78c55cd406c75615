#pragma once
// Helpers that the tests of files and data share: a directory that goes away, a disk that is nearly
// full, raw safetensors text, errors as text.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "src/base/error.h"

namespace ferry::test {

class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ferry-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() {
    std::error_code code;
    std::filesystem::remove_all(path_, code);
  }

  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

  /** Writes a file (and the directories above it) and gives its path. */
  std::filesystem::path write(std::string_view name, std::string_view text) const {
    auto path = path_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary)
        .write(text.data(), static_cast<std::streamsize>(text.size()));
    return path;
  }

  /** Entries in the directory, also hidden ones. */
  size_t n_entries() const {
    size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path_))
      ++count;
    return count;
  }

 private:
  std::filesystem::path path_;
};

/** Lowers the limit on file sizes for its lifetime: the nearest to a full disk that a test can have
 * anywhere. */
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t n_bytes) {
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = n_bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/** The message of the Error that `run` throws; empty (and a failure) when it throws none. */
template <typename Run>
std::string error_of(Run run, Fault fault = Fault::data) {
  try {
    run();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), fault) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return {};
}

/** A safetensors file as text: header length, header, n_data zero bytes. */
inline std::string raw_safetensors(std::string_view header, size_t n_data) {
  std::string text;
  for (int shift = 0; shift < 64; shift += 8)
    text.push_back(static_cast<char>(header.size() >> shift & 0xff));
  text.append(header).append(n_data, '\0');
  return text;
}

/** The shared test data: FERRY_SHARED, or ../shared beside the source tree. May not exist. */
inline std::filesystem::path shared_dir() {
  if (const char* place = std::getenv("FERRY_SHARED")) return place;
  return std::filesystem::path(FERRY_SOURCE_ROOT) / ".." / "shared";
}

inline std::filesystem::path venv_python() {
  return std::filesystem::path(FERRY_SOURCE_ROOT) / ".venv" / "bin" / "python";
}

/** Runs a Python program with the tree's .venv; its output and whether it ended with 0. */
inline std::pair<bool, std::string> run_python(const TempDir& dir, std::string_view program) {
  auto script = dir.write("script.py", program);
  auto log = dir / "script.log";
  int status = std::system(
      fmt::format("'{}' '{}' >'{}' 2>&1", venv_python().string(), script.string(), log.string())
          .c_str());
  return {status == 0, read_file(log)};
}

}  // namespace ferry::test
