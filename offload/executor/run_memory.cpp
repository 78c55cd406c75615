#include "offload/executor/run_memory.h"

#include <fmt/format.h>

#include <cstring>

#include "src/base/bytes.h"
#include "src/base/error.h"

namespace ferry {
namespace {

/** Weights and states; of the rest, what a library may keep from call to call. */
bool lasts(const Region& region) {
  return region.place == Place::device && (is_of_model(region.tag) || region.tag == Tag::library);
}

/** The host's queues go on. */
void await(Device& device, QueueId queue) {
  const EventId end = device.make_event(queue);
  device.record(end);
  device.await_host(end);
}

/** Touches segment by segment, so that each lies over the nodes as its update does; then the bytes
 * between segments and those that are too few to be shared out. */
void touch_regions(WorkerPool& pool, const Layout& layout, Place place, std::byte* data) {
  constexpr int64_t kShared_bytes = 4 * kMiB;
  if (pool.n_nodes() > 1)
    for (const Region& region : layout.regions)
      if (region.place == place && region.n_bytes >= kShared_bytes)
        touch_first(pool, data + region.offset, region.n_bytes);
  touch_first(pool, data, layout.n_bytes[place]);
}

}  // namespace

RunMemory::RunMemory(Device& device, const Layout& layout, WorkerPool& pool)
    : layout_(layout), pool_(pool) {
  for (Place place : {Place::device, Place::host})
    reservations_[place] = device.reserve(
        place, layout.n_bytes[place],
        [&](std::byte* data) { touch_regions(pool, layout, place, data); }, layout.copied_on_host);
}

int64_t RunMemory::lasting_gpu_bytes() const {
  int64_t n_bytes = 0;
  for (const Region& region : layout_.regions)
    if (lasts(region)) n_bytes += region.n_bytes;
  return n_bytes;
}

template <class Copy>
void RunMemory::for_lasting(Copy&& copy) {
  std::byte* kept = kept_->data();
  std::byte* gpu = reservations_[Place::device]->data();
  for (const Region& region : layout_.regions) {
    if (!lasts(region)) continue;
    copy(gpu + region.offset, kept, region.n_bytes);
    kept += region.n_bytes;
  }
}

bool RunMemory::leave_gpu(Device& device) {
  const int64_t kept_bytes = lasting_gpu_bytes();
  kept_ = device.reserve(Place::host, kept_bytes,
                         [&](std::byte* data) { touch_first(pool_, data, kept_bytes); });
  for_lasting([&](std::byte* gpu, std::byte* kept, int64_t n_bytes) {
    device.submit(QueueId::d2h, [=, &device] { device.copy(QueueId::d2h, kept, gpu, n_bytes); });
  });
  await(device, QueueId::d2h);
  std::lock_guard lock(leaving_);
  has_left_gpu_ = reservations_[Place::device]->release();
  if (!has_left_gpu_) kept_.reset();
  return has_left_gpu_;
}

void RunMemory::return_to_gpu(Device& device) {
  reservations_[Place::device]->acquire();
  for_lasting([&](std::byte* gpu, std::byte* kept, int64_t n_bytes) {
    device.submit(QueueId::h2d, [=, &device] { device.copy(QueueId::h2d, gpu, kept, n_bytes); });
  });
  await(device, QueueId::h2d);
  std::lock_guard lock(leaving_);
  has_left_gpu_ = false;
  kept_.reset();
}

void RunMemory::read_lasting(Device& device, std::span<const HostCopy> copies) const {
  if (copies.empty()) return;
  std::lock_guard lock(leaving_);
  for (const HostCopy& copy : copies)
    if (has_left_gpu_)
      std::memcpy(copy.to, kept_at(copy), static_cast<size_t>(copy.n_bytes));
    else
      device.copy(QueueId::save, copy.to, copy.from, copy.n_bytes);
  if (!has_left_gpu_) device.await_copies();
}

const std::byte* RunMemory::kept_at(const HostCopy& copy) const {
  const auto* gpu = reservations_[Place::device]->data();
  const std::byte* kept = kept_->data();
  for (const Region& region : layout_.regions) {
    if (!lasts(region)) continue;
    const int64_t at = copy.from - (gpu + region.offset);
    if (at >= 0 && at < region.n_bytes) return kept + at;
    kept += region.n_bytes;
  }
  FERRY_CHECK(false, "{} bytes that nobody kept", copy.n_bytes);
}

}  // namespace ferry
