#pragma once
// Memory between whoever fills files and the disk: slots that are taken, filled, and handed to
// threads that write them, several at once. While slots are free nobody who fills waits for the
// disk. The pieces of a checkpoint go through one.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace ferry {

/** One for many files.
 *
 *   std::byte* slot = behind.take();   // waits for the disk where all are in use
 *   ...                                // fill it
 *   behind.submit({slot}, [=] { pwrite(fd, slot, WriteBehind::kSlot_bytes, at); });
 */
class WriteBehind {
 public:
  static constexpr int64_t kSlot_bytes = 256 << 10;
  /** The most slots that one writer may hold before it hands them over. As much as a disk likes to
   * take in one write. */
  static constexpr size_t kPiece_slots = 16;

  /** `memory` starts on a page; what is no whole slot is left alone. */
  explicit WriteBehind(std::span<std::byte> memory);
  /** All that was submitted is written. */
  ~WriteBehind();
  WriteBehind(const WriteBehind&) = delete;
  WriteBehind& operator=(const WriteBehind&) = delete;

  /** Waits until one is free. That all are taken and none is submitted is our own bug. */
  std::byte* take();
  /** `write` runs on one of the threads, in the order of submission, and throws nothing; the slots
   * are free after it. */
  void submit(std::vector<std::byte*> slots, std::function<void()> write);
  void give_back(std::span<std::byte* const> slots);

 private:
  struct Job {
    std::vector<std::byte*> slots;
    std::function<void()> write;
  };
  void run(std::stop_token stop);

  std::mutex mutex_;
  std::condition_variable slot_came_;
  std::condition_variable_any job_came_;
  std::vector<std::byte*> free_;
  std::deque<Job> jobs_;
  int n_unwritten_ = 0;                // jobs in the queue or under way
  std::vector<std::jthread> threads_;  // last: they end before what they use
};

}  // namespace ferry
