#pragma once
// The states of a run on a drive, safe from kill -9, a cut of power and flipped bits (store.md).
// Segments of blocks are cut into extents. A step writes each extent to a place that no generation
// names which is kept; commit() makes what was written the newest generation, at once or not at
// all. pin() keeps a generation as a checkpoint and moves no bytes of it. The optimizer's pipeline
// and the pager read and write; the trainer commits, pins and resumes.
//
//   ExtentStore::create(disk, segments, n_kept, "run-1");   // once
//   ExtentStore store(disk, {.run = "run-1"});              // at each start
//
//   const PendingRead read = store.start_read(store.newest(), segment, extent, window);
//   store.wait(read);                                       // the bytes are there, and right
//   ...
//   const PendingWrite write = store.start_write(segment, extent, window);
//   store.wait(write);
//   ...
//   store.commit(metadata);                                 // once a step
//   store.pin("checkpoint-100");
//
// Any thread may call any function, except that nobody reads an extent of newest() while it is
// written. Reads and writes of extents allocate nothing.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "offload/nvme/disk.h"
#include "offload/store/store_format.h"
#include "offload/store/store_layout.h"

namespace ferry {

/** A read under way. Wait for each once. */
struct PendingRead {
  DiskTicket ticket = 0;
  const Generation* from = nullptr;
  SegmentId segment = 0;
  int64_t extent = 0;
  std::span<std::byte> to;
};
/** A write under way. Wait for each once. */
struct PendingWrite {
  DiskTicket ticket = 0;
  int64_t index = 0;  ///< of the extent, among all
};

/** Bytes on the drive that are not what was written. */
struct StoreDamage {
  int64_t generation = 0;  ///< 0: no generation's, but the whole store's
  std::string checkpoint;  ///< the name under which it is pinned; empty: it was committed last
  int block = -1;          ///< -1: a table, map or superblock
  std::string segment;
  int64_t offset = 0;  ///< in the store
  std::string what;    ///< the whole as a sentence, with the file's name
};

class ExtentStore {
 public:
  enum class Access { read_and_write, read_only };

  /** Makes a store without a generation and returns its uuid; an older one of the same run is gone.
   * Throws Error(usage) for segments that cannot be stored, or where another run's store lies,
   * Error(does_not_fit) where the disk is smaller than store_bytes(), Error(machine) from the
   * drive. */
  static std::string create(Disk& disk,
                            std::vector<StoredSegment> segments,
                            int n_kept,
                            std::string_view run);

  /** Opens a store and finds the newest generation that was committed. Members of `expected` that
   * are not empty have to be the store's. Throws Error(data) for another store, none at all, or
   * damage that leaves no map. Read only, it writes and mends nothing. The disk outlives it, and
   * nobody else writes to it. */
  ExtentStore(Disk& disk, const StoreIdentity& expected, Access access = Access::read_and_write);
  ExtentStore(const ExtentStore&) = delete;
  ExtentStore& operator=(const ExtentStore&) = delete;

  const StoreLayout& layout() const { return layout_; }
  const StoreIdentity& identity() const { return superblock_.identity; }
  /** The file's name. */
  std::string name() const { return disk_.name(); }
  /** One line for each thing that was found damaged when the store was opened. */
  const std::vector<std::string>& notes() const { return notes_; }

  /** The generation that was committed last; number 0 where there is none yet. Valid until the next
   * commit(). */
  const Generation& committed() const;
  /** The bytes that were written last, committed or not. */
  const Generation& newest() const { return newest_; }
  /** All extents of the segment have been written, in this generation or in one before it. */
  bool is_written(SegmentId segment) const;
  /** Names of the checkpoints that are kept, oldest first. */
  std::vector<std::string> pins() const;
  /** One of these; Error(usage) for another name. Valid until it is unpinned. */
  const Generation& pinned(std::string_view name) const;

  /** Reads one extent of a generation into memory of layout().extent_bytes() bytes, which is valid
   * until wait(). Nobody writes the extent meanwhile. Throws Error(data) where the generation's
   * table is damaged. */
  PendingRead start_read(const Generation& from,
                         SegmentId segment,
                         int64_t extent,
                         std::span<std::byte> to) const;
  /** Ends a read, and compares the checksum in the calling thread. Throws Error(data) that names
   * block, segment, generation, file and offset where the bytes are not what was written; else as
   * Disk::wait(). */
  void wait(const PendingRead& read) const;

  /** Takes the checksum in the calling thread and writes one extent of the next generation, or of a
   * volatile segment in place. The bytes stay as they are until wait(). Throws as Disk, and
   * Error(machine) after any write failed: the store takes no more then, and the last committed
   * generation is as it was. */
  PendingWrite start_write(SegmentId segment, int64_t extent, std::span<const std::byte> from);
  void wait(const PendingWrite& write);

  /** A whole segment of layout().padded_bytes() bytes, several extents at once. */
  void read_segment(const Generation& from, SegmentId segment, std::span<std::byte> to) const;
  void write_segment(SegmentId segment, std::span<const std::byte> from);

  /** Makes what was written last the newest generation; when it returns, the generation survives a
   * power cut. Every lasting extent was written at some time, all writes of them were waited for,
   * and none starts before it returns; those that were not written since the last commit stay as
   * they are, and reads and volatile segments go on beside it. Extents that only the generation
   * before it had are free again. Copies the metadata, at most kMetadata_bytes_max bytes. Returns
   * the generation's number. */
  int64_t commit(std::string_view metadata);
  /** The next generation begins as this one, committed() or pinned(); writes since the last commit
   * are dropped. Throws Error(data) where the generation's table is damaged. No read or write is
   * under way. */
  void start_from(const Generation& generation);

  /** The next generation begins with nothing written. No read or write is under way. */
  void start_anew();

  /** Keeps the generation that was committed last under a name, which is new; durable when it
   * returns. Throws Error(does_not_fit) where n_kept are kept already. */
  void pin(std::string_view name);
  /** Frees what only this checkpoint had. Error(usage) where there is none of the name. */
  void unpin(std::string_view name);

  /** Reads all that is kept: both superblocks, the map, and every table and extent of the
   * generation that was committed last and of each checkpoint. A copy of the map that a kill left
   * half written counts as damaged until the store was opened to be written. Allocates memory for
   * some extents. Commits and pins wait for its end. */
  std::vector<StoreDamage> check() const;
  /** The same of what one checkpoint needs: the superblocks, its table and its extents. Another
   * process may commit, and pin others, meanwhile. Error(usage) where there is none of the name. */
  std::vector<StoreDamage> check(std::string_view pin) const;

 private:
  enum class ExtentState : uint8_t { idle, writing };

  // store_open.cpp
  void open_map();
  void load_table(const KeptGeneration& kept);
  void mend_copies();

  // store_check.cpp
  struct FixedCopy;
  std::vector<FixedCopy> superblocks() const;
  std::vector<FixedCopy> fixed_copies() const;
  void check_copies(std::span<const FixedCopy> copies, std::vector<StoreDamage>& damages) const;
  std::optional<std::string> fault_in(const FixedCopy& copy) const;
  std::vector<Pin> kept() const;
  std::string table_damage(const KeptGeneration& kept, std::string_view fault) const;
  void check_table(const Pin& kept, std::vector<StoreDamage>& damages) const;
  void check_extents(std::span<const Pin> kept, std::vector<StoreDamage>& damages) const;

  // store.cpp
  void check_usable() const;
  int place_to_write(SegmentId segment, int64_t extent) const;
  void end_write(int64_t index);
  void end_commit();
  int free_table() const;
  const Generation& table(int index) const { return tables_[static_cast<size_t>(index)]; }
  const Pin* find_pin(std::string_view name) const;
  /** "extent 3 of block 2's states.0 in generation 7 (checkpoint-5) of 'FILE', at byte 8192". */
  std::string name_of(const Generation& from, SegmentId segment, int64_t extent) const;
  KeptGeneration write_table(std::string_view metadata);
  void write_map(StoreMap map);
  void change_map(StoreMap map);

  Disk& disk_;
  const Access access_;
  std::vector<std::string> notes_;
  const Superblock superblock_;
  const StoreLayout layout_;

  mutable std::mutex map_mutex_;    // held by who changes the map; taken before state_mutex_
  mutable std::mutex state_mutex_;  // held for moments
  bool is_committing_ = false;      // guarded by state_mutex_
  int64_t n_writing_ = 0;           // lasting extents; guarded by state_mutex_
  StoreMap map_;                    // changed under both, read under either
  int map_place_ = 0;               // which of the two maps it is; guarded by map_mutex_
  std::vector<Generation> tables_;  ///< as they lie on the drive; the map says which are kept
  const Generation none_;
  Generation newest_;
  std::vector<ExtentState> states_;
  std::atomic<bool> has_failed_ = false;
  std::vector<StorePage> buffer_;  // a table or a map on its way; guarded by map_mutex_
};

}  // namespace ferry
