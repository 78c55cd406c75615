#include "src/train/prepare/run_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "src/base/error.h"
#include "src/base/print.h"
#include "src/base/process/movement.h"
#include "src/files/write/atomic_file.h"
#include "src/request/nvme.h"
#include "src/runs/store/drive_rates.h"
#include "src/runs/store/store_room.h"
#include "src/train/prepare/job.h"
#include "src/train/prepare/run_state.h"
#include "src/train/ranks/rank_team.h"

namespace ferry {

namespace fs = std::filesystem;

namespace {

bool has_all(const StepShape& shape) {
  for (int b = 0; b < shape.n_blocks(); ++b)
    if (shape.is_trained(b) && shape.n_state_pieces(b) == 0) return false;
  return true;
}

DiskOptions disk_options(const Machine& machine,
                         const NvmeSettings& settings,
                         std::span<std::byte> window) {
  const auto& profile = machine.plan.profile;
  DiskOptions disk = disk_options_of(profile ? find_nvme(*profile, settings.directories) : nullptr);
  disk.window = window;
  disk.deadline = std::min(disk.deadline, hang_patience());
  return disk;
}

runs::StoreNeed need_of(const Layout& layout, int n_kept, int64_t n_bytes) {
  runs::StoreNeed need = {.n_kept = n_kept, .n_bytes = n_bytes};
  for (const Region& region : layout.regions)
    if (region.place == Place::nvme)
      (region.tag == Tag::grads ? need.grad_bytes : need.state_bytes) += region.n_bytes;
  return need;
}

}  // namespace

DriveOptions PassingStore::options(const config::Config& config,
                                   const Machine& machine,
                                   const Layout& layout,
                                   const std::string& id,
                                   const Process& process) {
  const auto open = [this, &config, &machine, &layout, id, process](
                        int64_t n_bytes, std::span<std::byte> window) -> Disk& {
    NvmeSettings settings = nvme_settings(config);
    if (settings.memory_bytes) *settings.memory_bytes /= process.n_processes;
    const std::string own_id =
        process.n_processes > 1 ? fmt::format("{}-part-{}", id, process.number) : id;
    files_.emplace(runs::StoreFiles::make(settings, own_id, need_of(layout, 0, n_bytes),
                                          disk_options(machine, settings, window),
                                          /*locks=*/process.number == 0));
    files_->drop_names();
    return files_->disk();
  };
  return {.open = open, .n_kept = 0, .run = id, .uuid = {}};
}

RunStore::RunStore(const fs::path& run,
                   const std::optional<runs::Checkpoint>& checkpoint,
                   const std::optional<runs::LastStep>& last)
    : id_(std::filesystem::absolute(run).lexically_normal().filename().string()) {
  const auto record = last         ? std::optional(last->record)
                      : checkpoint ? runs::pin_record_of(checkpoint->path)
                                   : std::nullopt;
  is_needed_ = record.has_value();
  if (record)
    place_ = record->store;
  else if (std::error_code error; std::filesystem::exists(run / "run.json", error))
    place_ = runs::store_place_of(run);
}

std::optional<int> RunStore::room_in_store(const Job& job) const {
  const Directories directories = nvme_settings(job.config).directories;
  const runs::StorePlace here = runs::find_store(*place_, directories);
  for (const runs::StorePlace::File& file : here.files) {
    std::error_code error;
    if (std::ranges::none_of(directories, [&](const fs::path& directory) {
          return fs::equivalent(file.path.parent_path(), directory, error);
        }))
      return std::nullopt;
  }
  const auto disk = open_disk(here.paths(), here.n_bytes, {.must_exist = true, .reads_only = true});
  const ExtentStore extents(*disk, {.run = here.run, .uuid = here.uuid},
                            ExtentStore::Access::read_only);
  if (!StateStore::is_store_of(job.plan.shape, extents.layout())) return std::nullopt;
  return extents.layout().n_kept();
}

DriveOptions RunStore::options(const Job& job) {
  if (!job.plan.shape.trains || job.team) {
    PassingStore::Process process;
    if (job.team) process.n_processes = job.team->ranks().local_world;
    return passing_.options(job.config, job.machine, job.plan.layout, id_, process);
  }
  const bool has_any = !StateStore::segments_of(job.plan.shape).empty();
  n_kept_ = has_any ? checkpoints_kept(job.config) : 0;
  std::optional<int> room;
  try {
    if (place_ && has_any) room = room_in_store(job);
  } catch (const Error& error) {
    if (is_needed_) throw;
    log_line(fmt::format("the states of the run begin anew on the drive: {}", error.what()));
  }
  if (room)
    n_kept_ = *room;
  else
    place_.reset();
  return {.open = [this, &job](int64_t n_bytes, std::span<std::byte> window) -> Disk& {
            return open(job, n_bytes, window);
          },
          .n_kept = n_kept_,
          .run = place_ ? place_->run : id_,
          .uuid = place_ ? place_->uuid : std::string()};
}

Disk& RunStore::open(const Job& job, int64_t n_bytes, std::span<std::byte> window) {
  const NvmeSettings settings = nvme_settings(job.config);
  const DiskOptions disk = disk_options(job.machine, settings, window);
  if (place_) return files_.emplace(runs::StoreFiles::open(*place_, settings, disk)).disk();
  files_.emplace(
      runs::StoreFiles::make(settings, id_, need_of(job.plan.layout, n_kept_, n_bytes), disk));
  return files_->disk();
}

void RunStore::keep_last_step(const fs::path& run, const Job& job, bool goes_on_from_last) {
  if (files_ && has_all(job.plan.shape)) {
    make_directories(run / "state");
    runs::write_pin_record(run, pin_record_of(job, {}, 0));
  } else if (!goes_on_from_last) {
    std::error_code error;
    fs::remove(run / kPinRecordName, error);
  }
}

void RunStore::keep(Session& session, runs::RunDirectory& run, Job& job) {
  StateStore* store = session.drive_store();
  if (!store || !files_) return;
  files_->keep(store->extents().identity().uuid);
  job.store = files_->place();
  run.set(runs::kStoreKey, runs::to_json(job.store));
  runs::unpin_unused(run.path(), store->extents());
}

}  // namespace ferry
