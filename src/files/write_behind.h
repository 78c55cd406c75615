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

class WriteBehind {
 public:
  static constexpr int64_t kSlot_bytes = 256 << 10;
  /** What one writer may hold before it hands slots over. As much as a disk likes to take in one
   * write. */
  static constexpr size_t kPiece_slots = 16;

  /** `memory` starts on a page and has one slot at least; what is no whole slot is left alone. */
  explicit WriteBehind(std::span<std::byte> memory);
  /** All that was submitted is written. */
  ~WriteBehind();
  WriteBehind(const WriteBehind&) = delete;
  WriteBehind& operator=(const WriteBehind&) = delete;

  /** Waits until one is free. There must be more slots than those who take hold unsubmitted. */
  std::byte* take();
  /** `write` runs on one of the threads and throws nothing; the slots are free after it. */
  void submit(std::vector<std::byte*> slots, std::function<void()> write);
  void give_back(std::span<std::byte* const> slots);

 private:
  struct Job {
    std::vector<std::byte*> slots;
    std::function<void()> write;
  };
  void run(std::stop_token stop);

  std::mutex mutex_;
  std::condition_variable is_free_;
  std::condition_variable_any has_work_;
  std::vector<std::byte*> free_;
  std::deque<Job> jobs_;
  std::vector<std::jthread> threads_;  // last: they end before what they use
};

}  // namespace ferry
