#pragma once
// Writes the states of a model in memory as a checkpoint has them.

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "src/engine/state/segments.h"
#include "src/engine/state/state_files.h"
#include "src/files/write/write_behind.h"

namespace ferry::test {

/** A model whose checkpoint is written; its parts outlive this. */
struct ModelToWrite {
  const ModelTable& table;
  const StepShape& shape;
  const FrozenWeights& frozen;
  Device& device;
  WorkerPool& pool;
  RunMemory& memory;
  StateWindow* window = nullptr;
};

struct WrittenCheckpoint {
  std::map<std::string, TensorChecksums> checksums;
  int64_t n_bytes = 0;  ///< as the writer counts them
};

/** Blocks are saved in the order in which they are free: the first one first, or the last. */
inline WrittenCheckpoint write_checkpoint(const ModelToWrite& its,
                                          const std::filesystem::path& directory,
                                          bool last_first = false,
                                          FilesHold holds = FilesHold::all) {
  constexpr auto kBuffer_bytes = WriteBehind::kPiece_slots * WriteBehind::kSlot_bytes;
  const std::unique_ptr<std::byte, decltype(&std::free)> buffer(
      static_cast<std::byte*>(std::aligned_alloc(4096, kBuffer_bytes)), &std::free);
  WriteBehind behind({buffer.get(), kBuffer_bytes});
  StateWriter writer(its.table, its.shape, its.frozen, directory, INT64_MAX, behind, holds);
  std::atomic<int64_t> n_read_bytes = 0;
  for (int i = 0; i < its.shape.n_blocks(); ++i) {
    const int b = last_first ? its.shape.n_blocks() - 1 - i : i;
    BlockStates states(its.shape, its.device, its.pool, its.memory, its.window, b, n_read_bytes);
    writer.write(states);
  }
  WrittenCheckpoint written = {.checksums = writer.finish()};
  written.n_bytes = writer.n_bytes();
  return written;
}

}  // namespace ferry::test
