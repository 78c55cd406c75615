#include "src/service/runs/delete_run.h"

#include <fmt/format.h>

#include "src/base/error.h"
#include "src/runs/directory/run_directory.h"
#include "src/runs/store/found_stores.h"

namespace ferry::service {

namespace fs = std::filesystem;

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
  auto [own, unproved] = runs::store_files_of(run);
  RunRemains remains{
      .run = run, .store_files = std::move(own), .unproved_files = std::move(unproved)};
  for (fs::recursive_directory_iterator it(run, error), end; !error && it != end;
       it.increment(error))
    remains.run_bytes += runs::bytes_on_disk(it->path());
  for (const fs::path& file : remains.store_files)
    remains.store_bytes += runs::bytes_on_disk(file);
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
