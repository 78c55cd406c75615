#pragma once
// The third place where bytes live: space of a fixed size on a drive, read and written past the
// page cache. open_disk() (open_disk.h) makes one of files; the store of blocks works on any.
//
//   const DiskTicket ticket = disk.read(offset, buffer);
//   ...                       // the bytes arrive meanwhile
//   disk.wait(ticket);        // they are there, or Error says why not

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ferry {

/** Names one request of one Disk; never 0, and never given out twice. */
using DiskTicket = uint64_t;

/** A file, or several that share the bytes in stripes. Requests run at once and in any order, also
 * where they overlap: nothing orders two but wait() and flush(). Any thread may call any function.
 *
 * Offsets, sizes and addresses are multiples of alignment(), and requests end within n_bytes():
 * anything else is the caller's bug and aborts. */
class Disk {
 public:
  virtual ~Disk() = default;
  virtual int64_t n_bytes() const = 0;
  /** Bytes; a power of two, 512 or 4096 on the drives in use. */
  virtual int64_t alignment() const = 0;
  /** The path, or the paths, for messages. */
  virtual std::string name() const = 0;

  /** Starts a read of to.size() bytes and returns. The memory stays valid until wait() has ended;
   * where it threw because the drive did not answer, to the end of the process: the drive may still
   * write to it. */
  virtual DiskTicket read(int64_t offset_bytes, std::span<std::byte> to) = 0;
  /** The same for a write. The bytes must not change before wait() has returned. */
  virtual DiskTicket write(int64_t offset_bytes, std::span<const std::byte> from) = 0;
  /** Blocks until the request has ended. Every ticket is waited for once, by any thread. Throws
   * Error(machine) that names file, offset and cause: EIO, no space, or no answer before the
   * deadline. The bytes that a failed request was to move are undefined. */
  virtual void wait(DiskTicket ticket) = 0;
  /** Blocks until all writes that were waited for before the call are durable: they survive a power
   * cut. Throws as wait() does; after a throw none of them may be relied on. */
  virtual void flush() = 0;
};

}  // namespace ferry
