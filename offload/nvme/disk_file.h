#pragma once
// One file of a disk: opened for direct transfers, locked, and with all of its space reserved, or a
// reason in words before a byte is written. Private to offload/nvme.

#include <cstdint>
#include <filesystem>

#include "src/base/unique_fd.h"

namespace ferry {

/** A file that was made here goes again with the object, unless keep() or take() was called. */
class DiskFile {
 public:
  enum class Use : uint8_t {
    making,   ///< it is made where it is not there
    writing,  ///< it is there
    reading   ///< the same, and others may write to it: no lock
  };
  /** Opens the file, or makes it; what it holds stays. Throws Error(usage) where
   * the directory or its file system will not do, Error(does_not_fit) where there is no room,
   * Error(machine) where another process has it, or the system refuses; Error(data) where what is
   * read has fewer bytes. */
  DiskFile(std::filesystem::path file, int64_t n_bytes, Use use);
  DiskFile(DiskFile&& other) noexcept;
  DiskFile& operator=(DiskFile&&) = delete;
  ~DiskFile();

  /** The file and its space survive a power cut from here on, where it may be written; gives the
   * descriptor away, which holds the lock. */
  UniqueFd keep();

 private:
  void open();
  void make();
  void lock();
  void reserve(int64_t n_bytes);
  void check_size(int64_t n_bytes);
  void check_direct();

  std::filesystem::path file_;
  Use use_;
  UniqueFd fd_;
  bool is_new_ = false;
};

}  // namespace ferry
