#pragma once
// The end of a run that is wanted no more: its directory, and the states that it left on drives.

#include <cstdint>
#include <filesystem>
#include <vector>

namespace ferry::service {

/** All that a run takes. */
struct RunRemains {
  std::filesystem::path run;
  int64_t run_bytes = 0;  ///< of its directory
  std::vector<std::filesystem::path> store_files;
  int64_t store_bytes = 0;
  /** Named by the run as its stores', and they do not prove to be: they stay. */
  std::vector<std::filesystem::path> unproved_files;
};

/** Throws Error(usage) where a process trains in it, or `run` is a link to a run. */
RunRemains remains_of(const std::filesystem::path& run);

/** Removes all of it, the directory first: files on drives that stay are listed as left over.
 * Throws Error(usage) where a process trains in it or uses its store, Error(machine) where the
 * system refuses. */
void delete_run(const std::filesystem::path& run);

}  // namespace ferry::service
