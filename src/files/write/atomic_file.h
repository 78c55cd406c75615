#pragma once
// Files that appear whole or not at all: written under a temporary name beside the target, fsynced,
// renamed, the directory fsynced. Every writer of whole files in src/files goes through here; a
// failure leaves the old file, or none.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "src/base/unique_fd.h"
#include "src/files/write/direct_writer.h"

namespace ferry {

/** Files as a user makes them; and those that hold texts, or names of what a user works on. */
inline constexpr unsigned kSharedMode = 0666, kPrivateMode = 0600;

/** One file being written. Without commit() the destructor removes what was written.
 *
 *   AtomicFile file("out/config.json");
 *   file.append(text);
 *   file.commit();
 *
 *  Every failure (no such directory, no permission, full disk) is Error(machine) that names the
 * target. */
class AtomicFile {
 public:
  /** `mode`: of the new file, where the umask lets it. */
  explicit AtomicFile(std::filesystem::path target, unsigned mode = kSharedMode);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  /** Sets the size and reserves the space where the file system can, so that a full disk shows
   * before the work. */
  void reserve(int64_t size_bytes);
  void write_at(int64_t offset_bytes, std::span<const std::byte> bytes);
  void append(std::span<const std::byte> bytes);
  void append(std::string_view text) { append(std::as_bytes(std::span(text))); }
  /** From now on bytes come through fill_at() alone, and go past the page cache behind the caller's
   * back: a failure shows at a later call, seal() at the latest. `behind` outlives the file. */
  void write_directly(WriteBehind& behind);
  /** See DirectWriter::fill. */
  void fill_at(int64_t offset_bytes, int64_t n_bytes, const FillParts& fill);
  void end_run() {
    if (direct_) direct_->end_run();
  }

  /** fsync and close; the content is safe, the name is still the temporary one. For several files
   * that appear together: seal all, then commit all. */
  void seal();
  /** seal() if need be, rename over the target, fsync the directory. */
  void commit();

  const std::filesystem::path& target() const { return target_; }

 private:
  std::filesystem::path target_, temporary_;  // temporary_ is empty once renamed or moved from
  UniqueFd fd_;
  std::unique_ptr<DirectWriter> direct_;
  int64_t end_bytes_ = 0;  // where append() goes on
};

/** A directory being filled beside its target, under the target's name with ".partial", which
 * may not exist yet (Error(usage)). Without commit() the destructor removes it; the target may be
 * absent or an empty directory. */
class AtomicDirectory {
 public:
  explicit AtomicDirectory(std::filesystem::path target);
  AtomicDirectory(const AtomicDirectory&) = delete;
  AtomicDirectory& operator=(const AtomicDirectory&) = delete;
  ~AtomicDirectory();

  /** Where to write until commit(). */
  const std::filesystem::path& path() const { return partial_; }
  /** Renames it to the target. Error(machine) where that fails. */
  void commit();

 private:
  std::filesystem::path target_, partial_;
  bool is_committed_ = false;
};

/** The name beside the target that a new content has until it is whole. `attempt` tells names of
 * one process apart. */
std::filesystem::path temporary_name(const std::filesystem::path& target, int attempt = 0);
/** True for a file's name that temporary_name() gives, which a killed process leaves. */
bool is_temporary_file(std::string_view name);
/** Removes what killed processes left in the directory, as far as it can. Nobody may write whole
 * files there meanwhile. */
void remove_temporary_files(const std::filesystem::path& directory) noexcept;

/** The whole of a small file at once. */
void write_text_file(const std::filesystem::path& target,
                     std::string_view text,
                     unsigned mode = kSharedMode);

/** Indented by two, closed with a newline, as Hugging Face writes its files. */
void write_json_file(const std::filesystem::path& target, const nlohmann::ordered_json& value);

/** Byte for byte. */
void copy_file_atomically(const std::filesystem::path& from, const std::filesystem::path& to);

/** Removes a file or a directory as far as it can, for destructors: without memory to read the
 * directory some of it stays. */
void remove_what_can_be(const std::filesystem::path& path) noexcept;

/** Makes renames and removals in the directory survive a power cut. */
void sync_directory(const std::filesystem::path& directory);

/** Makes the directory and its parents, safe from a power cut; Error(machine) when that cannot be.
 */
void make_directories(const std::filesystem::path& directory);
/** Throws Error(machine) where make_directories() would, or where no file could be made in the
 * directory. Makes nothing that stays. */
void check_can_make_files_in(const std::filesystem::path& directory);
/** The same; those that were not there are their owner's alone. */
void make_private_directories(const std::filesystem::path& directory);

}  // namespace ferry
