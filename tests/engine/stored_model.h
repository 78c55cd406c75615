#pragma once
// A small model in memory and on a drive, with states that follow from their places: what the tests
// of checkpoints and stores write and read. Torch-free.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/decoder/decoder_table.h"
#include "offload/nvme/open_disk.h"
#include "src/engine/state/drive_states.h"
#include "src/engine/state/state_files.h"
#include "src/engine/state/weights.h"
#include "src/plan/plan.h"
#include "tests/engine/written_checkpoint.h"

namespace ferry::test {

struct StoredCase {
  const char* name;
  DecoderFamily family;  ///< GPT-2's matrices lie the other way round in files
  DType compute;
  simd::Optim optim = simd::Optim::adamw;
  bool is_split = false;
  bool is_cut = false;         ///< the table of words in pieces, of which some lie on the drive
  bool freezes_norms = false;  ///< a part of each layer
  bool is_tiny = false;        ///< some 700 parameters
};

/** with_weights: of odd blocks the weights lie there, too, frozen ones with them. */
enum class OnDrive { none, odd, even, all, with_weights };

/** A model in memory and on a drive, with states that follow from their places. */
class StoredModel {
 public:
  /** `uuid`: of the store that lies in the file; empty: one is made. */
  StoredModel(const StoredCase& its,
              OnDrive which,
              const std::filesystem::path& file,
              const std::string& uuid = {})
      : table_(make_table(its)),
        request_{.optim = its.optim, .split_master = its.is_split},
        shape_(make_shape(which)),
        drive_(shape_,
               memory_,
               {.open = [&](int64_t n_bytes, std::span<std::byte>) -> Disk& {
                  disk_ = open_disk({file}, n_bytes);
                  return *disk_;
                },
                .n_kept = 1,
                .run = "run",
                .uuid = uuid}) {
    if (drive_.store()) window_.emplace(shape_, memory_, *drive_.store());
    segments_.emplace(shape_, *device_, memory_, window_ ? &*window_ : nullptr);
  }

  /** Exact values: no CPU rounds another way. */
  void fill() {
    for (const HfEntry& entry : table_.hf_names) {
      const EntryExtent extent = extent_of(table_, entry);
      std::vector<float> values(static_cast<size_t>(extent.n_elements));
      for (size_t i = 0; i < values.size(); ++i) {
        const auto place = static_cast<uint32_t>(extent.begin + entry.block) * 7919u;
        const uint32_t bits = (place + static_cast<uint32_t>(i)) * 2654435761u >> 8;
        values[i] = static_cast<float>(bits) / (1 << 24) - 0.5f;
      }
      segments_->set_param(entry.block, extent.begin, values);
    }
    for (int b = 0; b < shape_.n_blocks(); ++b)
      for (Segment segment : state_segments(shape_.optim)) {
        if (layout_.segment(b, segment) < 0) continue;
        // Not between the tensors: nothing keeps what is there.
        for (const TensorExtent& t : shape_.blocks[b].tensors) {
          if (!t.trainable) continue;
          set(b, segment, element_bytes(shape_, b, segment, t.offset, t.n_elements));
          if (shape_.optim == simd::Optim::adamw_8bit)
            set(b, segment, exponent_bytes(shape_, b, t));
        }
      }
  }
  void pin() {
    window_->finish_writes();
    drive_.store()->extents().commit("it");
    drive_.store()->extents().pin("checkpoint-1");
  }
  std::map<std::string, TensorChecksums> write_files(const std::filesystem::path& directory,
                                                     FilesHold holds) {
    std::filesystem::create_directories(directory / "state");
    const WrittenCheckpoint written =
        write_checkpoint({table_, shape_, segments_->frozen(), *device_, *pool_, memory_,
                          window_ ? &*window_ : nullptr},
                         directory, /*last_first=*/false, holds);
    int64_t n_bytes = 0;
    for (const auto& [stem, tensors] : written.checksums)
      n_bytes += CheckpointReader::open(stem == "model" ? directory : directory / "state", stem)
                     .total_bytes();
    EXPECT_EQ(written.n_bytes, n_bytes);
    return written.checksums;
  }
  void load(const std::filesystem::path& directory,
            const std::map<std::string, TensorChecksums>& checksums,
            const DriveSource* drive) {
    load_states(table_, shape_, directory, checksums, saved_segments(shape_.optim), *segments_,
                drive);
  }
  /** All that training changes, by block and segment; the weights too. */
  std::map<std::pair<int, Segment>, std::vector<std::byte>> bytes() {
    if (window_) window_->finish_writes();
    std::map<std::pair<int, Segment>, std::vector<std::byte>> all;
    for (int b = 0; b < shape_.n_blocks(); ++b)
      for (Segment s : lasting_segments(shape_.optim))
        all[{b, s}] = segments_->bytes_of(b, s);
    return all;
  }

  const ModelTable& table() const { return table_; }
  const StepShape& shape() const { return shape_; }
  StateStore& store() { return *drive_.store(); }
  Segments& segments() { return *segments_; }

 private:
  void set(int block, Segment segment, const ByteRange& range) {
    std::vector<std::byte> bytes(static_cast<size_t>(range.n_bytes));
    for (size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<std::byte>((i + static_cast<size_t>(range.offset + block)) %
                                        (segment == Segment::state_0 ? 113 : 109));
    segments_->set_bytes(block, segment, range.offset, bytes);
  }
  static ModelTable make_table(const StoredCase& its) {
    TableOptions options = {.compute = its.compute};
    if (its.is_cut) options.piece_elements_max = 1;
    const int64_t n_heads = its.is_tiny ? 1 : 3;
    ModelTable table = make_decoder_table({.family = its.family,
                                           .vocab_size = its.is_tiny ? 8 : 2 * 4096 + 61,
                                           .hidden_size = 8 * n_heads,
                                           .num_hidden_layers = its.is_tiny ? 1 : 3,
                                           .num_attention_heads = n_heads,
                                           .num_key_value_heads = n_heads,
                                           .intermediate_size = its.is_tiny ? 8 : 40,
                                           .max_position_embeddings = its.is_tiny ? 4 : 16},
                                          options);
    for (const HfEntry& entry : table.hf_names)
      if (its.freezes_norms && entry.hf_name.find("norm") != std::string::npos)
        table.blocks[entry.block].params[entry.param].trainable = false;
    for (BlockTable& block : table.blocks)
      block.arrange();
    return table;
  }
  StepShape make_shape(OnDrive which) const {
    StepShape shape =
        make_step_shape(table_, {.tokens = 32, .n_seqs_max = 2, .max_length = 16}, request_, 1);
    choose(shape, table_, {.place = Place::host});
    shape.state_piece_elements = table_.vocab_size > 8 ? 8192 : 1024;
    shape.computes_on_host = false;
    for (int b = 0; b < shape.n_blocks(); ++b) {
      const bool has_weights = which == OnDrive::with_weights;
      const bool is_chosen = which == OnDrive::all ||
                             ((which == OnDrive::odd || has_weights) && b % 2 == 1) ||
                             (which == OnDrive::even && b % 2 == 0);
      if (is_chosen && shape.is_trained(b))
        shape.blocks[b].place = {has_weights ? Place::nvme : Place::host, Place::nvme, Place::host};
    }
    return shape;
  }

  const ModelTable table_;
  const PlanRequest request_;
  const StepShape shape_;
  const Layout layout_ = make_layout(shape_);
  std::unique_ptr<WorkerPool> pool_ = make_tbb_pool(2);
  std::unique_ptr<Device> device_ = make_simulated_device({}, *pool_);
  RunMemory memory_{*device_, layout_, *pool_};
  std::unique_ptr<FileDisk> disk_;
  DriveStates drive_;
  std::optional<StateWindow> window_;
  std::optional<Segments> segments_;
};

}  // namespace ferry::test
