#include "offload/run_memory.h"

namespace ferry {
namespace {

/** Weights and states; of the rest, what a library may keep from call to call. */
bool lasts(const Region& region) {
  switch (region.tag) {
    case Tag::weights:
    case Tag::master:
    case Tag::adam_m:
    case Tag::adam_v:
    case Tag::library:
      return region.place == Place::gpu;
    default:
      return false;
  }
}

/** The host's queues go on. */
void await(Device& device, QueueId queue) {
  const EventId end = device.make_event();
  device.record(queue, end);
  while (!device.wait_host(end, std::chrono::seconds(10))) {
  }
}

}  // namespace

int64_t RunMemory::lasting_gpu_bytes() const {
  int64_t n_bytes = 0;
  for (const Region& region : layout_.regions)
    if (lasts(region)) n_bytes += region.n_bytes;
  return n_bytes;
}

template <class Copy>
void RunMemory::for_lasting(Copy&& copy) {
  std::byte* kept = kept_.data();
  std::byte* gpu = reservations_[static_cast<size_t>(Place::gpu)]->data();
  for (const Region& region : layout_.regions) {
    if (!lasts(region)) continue;
    copy(gpu + region.offset, kept, region.n_bytes);
    kept += region.n_bytes;
  }
}

bool RunMemory::leave_gpu(Device& device) {
  kept_.resize(static_cast<size_t>(lasting_gpu_bytes()));
  for_lasting([&](std::byte* gpu, std::byte* kept, int64_t n_bytes) {
    device.submit(QueueId::d2h, [=, &device] { device.copy(QueueId::d2h, kept, gpu, n_bytes); });
  });
  await(device, QueueId::d2h);
  if (reservations_[static_cast<size_t>(Place::gpu)]->release()) return true;
  kept_ = {};
  return false;
}

void RunMemory::return_to_gpu(Device& device) {
  reservations_[static_cast<size_t>(Place::gpu)]->acquire();
  for_lasting([&](std::byte* gpu, std::byte* kept, int64_t n_bytes) {
    device.submit(QueueId::h2d, [=, &device] { device.copy(QueueId::h2d, gpu, kept, n_bytes); });
  });
  await(device, QueueId::h2d);
  kept_ = {};
}

}  // namespace ferry
