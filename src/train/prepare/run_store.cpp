#include "src/train/prepare/run_store.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "src/plan/nvme.h"
#include "src/runs/store/store_room.h"
#include "src/train/prepare/job.h"

namespace ferry {

RunStore::RunStore(std::string id, std::optional<runs::StorePlace> place)
    : id_(std::move(id)), place_(std::move(place)) {}

DriveOptions RunStore::options(const Job& job) {
  return {.open = [this, &job](int64_t n_bytes, std::span<std::byte> window) -> Disk& {
            return open(job, n_bytes, window);
          },
          .n_kept = job.plan.shape.trains ? checkpoints_kept(job.config) : 0,
          .run = id_,
          .uuid = place_ ? place_->uuid : std::string()};
}

Disk& RunStore::open(const Job& job, int64_t n_bytes, std::span<std::byte> window) {
  const NvmeSettings settings = nvme_settings(job.config);
  const DiskOptions disk = {.window = window};
  if (place_)
    return files_.emplace(runs::StoreFiles::open(*place_, settings.directories, disk)).disk();
  runs::StoreNeed need = {.n_kept = options(job).n_kept, .n_bytes = n_bytes};
  for (const Region& region : job.plan.layout.regions)
    if (region.place == Place::nvme) need.state_bytes += region.n_bytes;
  return files_.emplace(runs::StoreFiles::make(settings, id_, need, disk)).disk();
}

void RunStore::keep(Session& session, runs::RunDirectory& run) {
  const StateStore* store = session.drive_store();
  if (!store) return;
  files_->keep(store->extents().identity().uuid);
  run.set(runs::kStoreKey, runs::to_json(files_->place()));
}

}  // namespace ferry
