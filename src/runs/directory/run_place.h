#pragma once
// A run's directory as something that its trainer holds on to: locked while it lives, and looked
// for at every line of metrics, so that a run whose directory was moved or removed ends with a word
// about it and not after hours with nothing to show.

#include <filesystem>
#include <optional>

#include "src/base/unique_fd.h"

namespace ferry::runs {

class RunPlace {
 public:
  /** Takes a directory that is there; of none every question is answered as if it were gone. */
  explicit RunPlace(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  enum class Lock { held, of_another, unsupported };
  /** Takes the lock of the only trainer, kept as long as this object. */
  Lock lock();
  /** True if a trainer has it; nothing where the file system cannot tell. */
  std::optional<bool> is_locked() const;
  /** Throws Error(machine) where another directory or none is at the path now, naming the last
   * complete checkpoint. */
  void check() const;

 private:
  std::filesystem::path path_;
  UniqueFd fd_;  // of the directory: a lock file would be one more thing to leave behind
};

}  // namespace ferry::runs
