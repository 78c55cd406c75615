#include "src/service/runs/delete_run.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include "src/base/error.h"
#include "src/runs/directory/run_directory.h"
#include "src/runs/store/found_stores.h"

namespace ferry::service {
namespace {

namespace fs = std::filesystem;

int64_t bytes_on_disk(const fs::path& file) {
  constexpr int64_t kBlock_bytes = 512;
  struct stat found {};
  return ::lstat(file.c_str(), &found) == 0 ? found.st_blocks * kBlock_bytes : 0;
}

}  // namespace

RunRemains remains_of(const fs::path& run) {
  if (runs::has_trainer(run))
    throw Error(Fault::usage, "runs.delete", fmt::format("a process trains in '{}'", run.string()),
                fmt::format("stop it first: ferry runs stop {}", run.string()));
  std::error_code error;
  // Only the link would go, and its run would be without its stores.
  const fs::path named = run.has_filename() ? run : run.parent_path();
  if (fs::is_symlink(fs::symlink_status(named, error)))
    throw Error(Fault::usage, "runs.delete", fmt::format("'{}' is a link to a run", named.string()),
                fmt::format("name the run itself: ferry runs delete '{}'",
                            fs::weakly_canonical(named, error).string()));
  RunRemains remains{.run = run,
                     .store_files = runs::store_files_of(run),
                     .unproved_files = runs::unproved_files_of(run)};
  for (fs::recursive_directory_iterator it(run, error), end; !error && it != end;
       it.increment(error))
    remains.run_bytes += bytes_on_disk(it->path());
  for (const fs::path& file : remains.store_files)
    remains.store_bytes += bytes_on_disk(file);
  return remains;
}

void delete_run(const fs::path& run) {
  const RunRemains remains = remains_of(run);
  std::error_code error;
  fs::remove_all(run, error);
  if (error)
    throw Error(Fault::machine, "runs.delete",
                fmt::format("'{}' could not be removed: {}", run.string(), error.message()),
                "remove it yourself");
  runs::remove_store_files(remains.store_files);
}

}  // namespace ferry::service
