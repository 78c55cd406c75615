#include "src/files/write/write_behind.h"

#include <fmt/format.h>

#include "src/base/error.h"

namespace ferry {

WriteBehind::WriteBehind(std::span<std::byte> memory) {
  // The first slots come first: small checkpoints touch little memory.
  for (int64_t at = static_cast<int64_t>(memory.size()) / kSlot_bytes - 1; at >= 0; --at)
    free_.push_back(memory.data() + at * kSlot_bytes);
  constexpr int kThreads = 4;  // one in the disk's hands is not enough for most
  for (int i = 0; i < kThreads; ++i)
    threads_.emplace_back([this](std::stop_token stop) { run(stop); });
}

WriteBehind::~WriteBehind() {
  for (std::jthread& thread : threads_)
    thread.request_stop();
}

std::byte* WriteBehind::take() {
  std::unique_lock lock(mutex_);
  slot_came_.wait(lock, [&] { return !free_.empty() || n_unwritten_ == 0; });
  FERRY_CHECK(!free_.empty(), "all slots are taken, and none is to be written");
  std::byte* slot = free_.back();
  free_.pop_back();
  return slot;
}

void WriteBehind::submit(std::vector<std::byte*> slots, std::function<void()> write) {
  std::lock_guard lock(mutex_);
  jobs_.push_back({std::move(slots), std::move(write)});
  ++n_unwritten_;
  job_came_.notify_one();
}

void WriteBehind::give_back(std::span<std::byte* const> slots) {
  std::lock_guard lock(mutex_);
  free_.insert(free_.end(), slots.begin(), slots.end());
  slot_came_.notify_all();
}

void WriteBehind::run(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (true) {
    job_came_.wait(lock, stop, [&] { return !jobs_.empty(); });
    if (jobs_.empty()) return;  // asked to stop, and all is written
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job.write();
    lock.lock();
    free_.insert(free_.end(), job.slots.begin(), job.slots.end());
    --n_unwritten_;
    slot_came_.notify_all();
  }
}

}  // namespace ferry
