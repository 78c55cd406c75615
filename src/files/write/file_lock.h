#pragma once
// A lock between processes on the name of a file, which need not be there otherwise.

#include <filesystem>

#include "src/base/unique_fd.h"

namespace ferry {

/** Held until the object goes, and the file with it, or the process ends in whatever way. */
class FileLock {
 public:
  enum class State { held, of_another, unsupported };

  /** Makes the file where there is none; throws Error(machine) where that cannot be. */
  explicit FileLock(std::filesystem::path file);
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

  State try_lock();
  /** Waits for whoever holds it. */
  State lock();

 private:
  void open();
  State lock_as(int operation);
  bool is_current() const;

  std::filesystem::path file_;
  UniqueFd fd_;
  bool is_held_ = false;
};

}  // namespace ferry
