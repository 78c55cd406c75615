#include "tests/offload/store/virtual_disk.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "src/base/error.h"

namespace ferry::test {

VirtualDisk::VirtualDisk(int64_t n_bytes, uint64_t seed) : dice_(seed) {
  durable_.resize(static_cast<size_t>(n_bytes));
  // A new file may hold anything.
  for (size_t i = 0; i < durable_.size(); i += 8)
    durable_[i] = static_cast<std::byte>(dice_());
  seen_ = durable_;
}

void VirtualDisk::count_call() {
  if (!is_alive_) throw LifeEnded();
  const int64_t call = n_calls_++;
  if (call == last_call_) {
    end_life(end_);
    throw LifeEnded();
  }
  if (call == failing_call_) throw Error(Fault::machine, "disk.test", "a planted EIO");
}

DiskTicket VirtualDisk::read(int64_t offset, std::span<std::byte> to) {
  std::lock_guard lock(mutex_);
  FERRY_CHECK(offset >= 0 && offset % kSector_bytes == 0 && std::ssize(to) % kSector_bytes == 0 &&
                  offset + std::ssize(to) <= n_bytes(),
              "{} bytes at {}", to.size(), offset);
  count_call();
  Request request{.offset = offset, .to = to, .is_done = coin()};
  if (request.is_done) std::copy_n(seen_.begin() + offset, to.size(), to.begin());
  requests_[++last_ticket_] = std::move(request);
  return last_ticket_;
}

DiskTicket VirtualDisk::write(int64_t offset, std::span<const std::byte> from) {
  std::lock_guard lock(mutex_);
  FERRY_CHECK(offset >= 0 && offset % kSector_bytes == 0 && std::ssize(from) % kSector_bytes == 0 &&
                  offset + std::ssize(from) <= n_bytes(),
              "{} bytes at {}", from.size(), offset);
  count_call();
  Request request{.offset = offset, .from = from};
  if (coin()) request.early.assign(from.begin(), from.end());
  requests_[++last_ticket_] = std::move(request);
  return last_ticket_;
}

void VirtualDisk::wait(DiskTicket ticket) {
  std::lock_guard lock(mutex_);
  const auto node = requests_.extract(ticket);
  FERRY_CHECK(!node.empty() || !is_alive_, "ticket {} is unknown or was waited for", ticket);
  // The memory of a request is the disk's until here: what is under way at the end still has it.
  if (is_alive_ && n_calls_ == last_call_) requests_[ticket] = node.mapped();
  count_call();
  const Request& request = node.mapped();
  if (!request.to.empty()) {
    if (!request.is_done)
      std::copy_n(seen_.begin() + request.offset, request.to.size(), request.to.begin());
    return;
  }
  const auto bytes = bytes_of(request);
  n_written_bytes_ += std::ssize(bytes);
  write_seen(request.offset, bytes);
}

void VirtualDisk::flush() {
  if (in_flush) std::exchange(in_flush, nullptr)();
  std::lock_guard lock(mutex_);
  count_call();
  if (n_flushes_++ == skipped_flush_) return;
  for (const Written& written : unsafe_)
    std::ranges::copy(written.bytes, durable_.begin() + written.offset);
  unsafe_.clear();
}

void VirtualDisk::end_life_in(int64_t n_calls, End end) {
  last_call_ = n_calls_ + n_calls;
  end_ = end;
}

void VirtualDisk::start_again() {
  is_alive_ = true;
  last_call_ = -1;
  skipped_flush_ = -1;
}

/** Each sector of a write that was under way is written or not; each that was written is kept or
 * not when the power goes, so that any of its contents since the last flush may be left. */
void VirtualDisk::end_life(End end) {
  is_alive_ = false;
  for (const auto& [ticket, request] : requests_) {
    if (!request.to.empty()) continue;
    const auto bytes = bytes_of(request);
    for (int64_t at = 0; at < std::ssize(bytes); at += kSector_bytes) {
      if (coin())
        write_seen(request.offset + at, bytes.subspan(static_cast<size_t>(at), kSector_bytes));
    }
  }
  requests_.clear();
  if (end == End::kill) return;
  for (const auto& [offset, bytes] : unsafe_) {
    for (int64_t at = 0; at < std::ssize(bytes); at += kSector_bytes) {
      if (coin()) continue;
      // Most drives write a sector whole; who relies on it is found out.
      const size_t n = dice_() % 16 == 0 ? dice_() % kSector_bytes : kSector_bytes;
      std::copy_n(bytes.begin() + at, n, durable_.begin() + offset + at);
    }
  }
  unsafe_.clear();
  seen_ = durable_;
}

void VirtualDisk::write_seen(int64_t offset, std::span<const std::byte> bytes) {
  unsafe_.push_back({offset, {bytes.begin(), bytes.end()}});
  std::ranges::copy(bytes, seen_.begin() + offset);
}

void VirtualDisk::flip_bit(int64_t offset, int bit) {
  flush();
  durable_[static_cast<size_t>(offset)] ^= std::byte{1} << bit;
  seen_[static_cast<size_t>(offset)] = durable_[static_cast<size_t>(offset)];
}

}  // namespace ferry::test
