#pragma once
// Reads and writes parts of a block's segments wherever they live. For loading, export, tests and
// (later) checkpoints; never inside a step. The caller has settled the executor.

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "models/core/tensor_table.h"
#include "offload/executor/run_memory.h"
#include "offload/executor/state_window.h"
#include "src/engine/state/frozen_weights.h"
#include "src/engine/state/stored_rows.h"

namespace ferry {

class RankLeader;

/** A training run has no fp32 values of the parameter: its weights are frozen and lie in another
 * type. */
inline bool lacks_master(const StepShape& shape, const ParamSpec& param) {
  return !param.trainable && (!shape.weights_are_master() || !param.storage.is_compute());
}

class Segments {
 public:
  /** `window` shows what lives on a drive; null: nothing does. `leader` leads to the parts of other
   * ranks, which are left out without one. */
  Segments(const StepShape& shape,
           Device& device,
           RunMemory& memory,
           StateWindow* window,
           RankLeader* leader = nullptr)
      : shape_(shape), device_(device), memory_(memory), window_(window), leader_(leader) {}

  /** Sets fp32 values of a parameter: the master copy, if there is one, and the weights. */
  void set_param(int block, int64_t offset, std::span<const float> values);
  /** fp32 values: those of the master copy, or where there is none of the weights. */
  void get_param(int block, int64_t offset, std::span<float> values) const;
  /** The same by the parameter, whose storage may be another than compute. Values are counted in
   * the order of its rows; of another storage only whole rows are set. */
  void set_values(int block,
                  const ParamSpec& param,
                  int64_t first_value,
                  std::span<const float> values);
  void get_values(int block,
                  const ParamSpec& param,
                  int64_t first_value,
                  std::span<float> values) const;
  /** Sets whole rows of a part to the codes that a file has for them. `row` is the part's. */
  void set_codes(int block,
                 const ParamSpec& param,
                 const StoredMatrix& part,
                 int64_t row,
                 std::span<const std::byte> codes);
  /** The same of all nested scales of a part. */
  void set_nested_scales(int block,
                         const ParamSpec& param,
                         const StoredMatrix& part,
                         std::span<const std::byte> codes,
                         std::span<const float> nested);
  /** True in a training run for a parameter that has weights alone: it is frozen, and they are not
   * fp32. */
  bool lacks_master(const ParamSpec& param) const {
    return shape_.trains && ferry::lacks_master(shape_, param);
  }
  /** Sets some of a segment's bytes, as a checkpoint holds them. */
  void set_bytes(int block, Segment segment, int64_t offset, std::span<const std::byte> bytes);
  /** Some of the bytes of this rank's part. */
  void set_own(int block, Segment segment, int64_t offset, std::span<const std::byte> bytes) {
    write_own(block, segment, {offset, std::ssize(bytes)}, bytes.data());
  }
  void get_own(int block, Segment segment, int64_t offset, std::span<std::byte> bytes) const {
    read_own(block, segment, {offset, std::ssize(bytes)}, bytes.data());
  }
  /** All bytes of a segment; empty if the run has none of it. Without a leader those of this rank's
   * part. */
  std::vector<std::byte> bytes_of(int block, Segment segment) const;
  /** Fills the weights of blocks with states on a drive from the generation with which the store
   * begins. */
  void restore_weights();
  /** True once after something was set that lies on a drive: it has to be committed. */
  bool take_changed() { return std::exchange(has_changed_, false); }
  /** The values of parameters that have no master copy, for as long as the run lasts. */
  const FrozenWeights& frozen() const { return frozen_; }
  void set_frozen(FrozenWeights frozen) { frozen_ = std::move(frozen); }

 private:
  bool has_master(int block, int64_t offset) const;
  void set_piece(int block, int64_t offset, std::span<const float> values);
  void get_piece(int block, int64_t offset, std::span<float> values) const;
  /** Bytes of elements, counted as one rank has the segment. */
  ByteRange bytes_of_elements(int block, Segment segment, int64_t begin, int64_t n) const;
  void write(int block, Segment segment, const ByteRange& range, const void* from);
  void read(int block, Segment segment, const ByteRange& range, void* to) const;
  void write_own(int block, Segment segment, const ByteRange& range, const void* from);
  void read_own(int block, Segment segment, const ByteRange& range, void* to) const;

  const StepShape& shape_;
  Device& device_;
  RunMemory& memory_;
  StateWindow* window_;
  RankLeader* leader_;
  bool has_changed_ = false;
  FrozenWeights frozen_;
  std::map<std::pair<int, int64_t>, UnnestedScales> unnested_;  // by block and offset
};

/** Sets an entry's values, which come in their order, and in pieces of any size. */
class EntryWriter {
 public:
  EntryWriter(const ModelTable& model, const HfEntry& entry, Segments& segments)
      : block_(entry.block),
        param_(model.param_of(entry)),
        next_value_(entry.row_begin * param_.row_values()),
        segments_(segments) {}
  void write(std::span<const float> values);

 private:
  void put(std::span<const float> values);

  int block_;
  const ParamSpec& param_;
  int64_t next_value_;
  Segments& segments_;
  std::vector<float> row_;  // what has come of a row that is stored as one
};

}  // namespace ferry
