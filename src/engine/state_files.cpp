#include "src/engine/state_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/error.h"
#include "src/files/crc32c.h"

namespace ferry {
namespace {

/** The master is the model itself. */
std::filesystem::path state_directory(const std::filesystem::path& checkpoint, Segment segment) {
  return segment == Segment::master ? checkpoint : checkpoint / "state";
}

std::string state_stem(Segment segment) {
  return segment == Segment::master ? "model" : std::string(name_of(segment));
}

CheckpointReader open_checked(const std::filesystem::path& checkpoint,
                              Segment segment,
                              const std::map<std::string, TensorChecksums>& checksums) {
  auto file = CheckpointReader::open(state_directory(checkpoint, segment), state_stem(segment));
  const auto found = checksums.find(state_stem(segment));
  if (found == checksums.end())
    throw Error(
        Fault::data, "checkpoint.read",
        fmt::format("'{}' has no checksums of '{}'", checkpoint.string(), state_stem(segment)),
        "resume from an earlier checkpoint");
  check_checksums(file, found->second);
  return file;
}

/** Adam states of a frozen parameter are in no checkpoint: it has none. */
bool holds(Segment segment, const ModelTable& model, const HfEntry& entry) {
  return segment == Segment::master || model.param_of(entry).trainable;
}

std::vector<TensorSpec> saved_tensors(const ModelTable& model, Segment segment) {
  std::vector<TensorSpec> tensors;
  for (const HfEntry& entry : model.hf_names)
    if (holds(segment, model, entry))
      tensors.push_back({entry.hf_name, DType::f32, entry.hf_shape});
  return tensors;
}

}  // namespace

StateWriter::StateWriter(const ModelTable& model,
                         const std::filesystem::path& checkpoint,
                         int64_t max_shard_bytes,
                         WriteBehind& behind) {
  for (size_t s = 0; s < kSavedSegments.size(); ++s) {
    writers_
        .emplace_back(state_directory(checkpoint, kSavedSegments[s]),
                      saved_tensors(model, kSavedSegments[s]), max_shard_bytes,
                      state_stem(kSavedSegments[s]))
        .write_directly(behind);
    auto& of_blocks = names_[s];
    of_blocks.resize(model.blocks.size());
    for (const HfEntry& entry : model.hf_names)
      if (holds(kSavedSegments[s], model, entry))
        of_blocks[static_cast<size_t>(entry.block)].push_back(entry.hf_name);
    // As the files have them: what follows each other is one run of bytes.
    for (auto& names : of_blocks)
      std::ranges::sort(names);
  }
  for (const HfEntry& entry : model.hf_names)
    extents_[entry.hf_name] = extent_of(model, entry);
}

void StateWriter::write(BlockStates& block) {
  for (size_t s = 0; s < kSavedSegments.size(); ++s) {
    write(block, s);
    // What a writer holds back, the others would lack.
    writers_[s].end_run();
  }
}

void StateWriter::write(BlockStates& block, size_t s) {
  constexpr auto kFp32_bytes = static_cast<int64_t>(sizeof(float));
  const auto& names = names_[s][static_cast<size_t>(block.block())];
  TensorChecksums& checksums = checksums_[state_stem(kSavedSegments[s])];
  size_t tensor = 0;       // of names: the one that comes next,
  int64_t done_bytes = 0;  // and of it
  std::vector<StatePiece> pieces;
  std::vector<size_t> tensor_of;  // by piece
  std::vector<uint32_t> checksum_of;
  writers_[s].fill(names, [&](std::span<const std::span<std::byte>> parts) {
    pieces.clear(), tensor_of.clear();
    for (auto part : parts)
      while (!part.empty()) {
        const EntryExtent& extent = extents_.at(names[tensor]);
        const int64_t left_bytes = extent.n_elements * kFp32_bytes - done_bytes;
        const auto n = std::min(part.size(), static_cast<size_t>(left_bytes));
        pieces.push_back(
            {kSavedSegments[s], extent.begin * kFp32_bytes + done_bytes, part.first(n)});
        tensor_of.push_back(tensor);
        part = part.subspan(n);
        done_bytes += static_cast<int64_t>(n);
        if (done_bytes < extent.n_elements * kFp32_bytes) continue;
        ++tensor;
        done_bytes = 0;
      }
    checksum_of.resize(pieces.size());
    block.read(pieces, [&](size_t i) { checksum_of[i] = crc32c(pieces[i].to); });
    for (size_t i = 0; i < pieces.size(); ++i) {
      uint32_t& checksum = checksums[names[tensor_of[i]]];
      checksum =
          crc32c_combine(checksum, checksum_of[i], static_cast<int64_t>(pieces[i].to.size()));
    }
  });
}

const std::map<std::string, TensorChecksums>& StateWriter::finish() {
  for (CheckpointWriter& writer : writers_)
    writer.finish();
  return checksums_;
}

void load_states(const ModelTable& model,
                 const std::filesystem::path& checkpoint,
                 const std::map<std::string, TensorChecksums>& checksums,
                 std::span<const Segment> which,
                 Segments& segments) {
  std::vector<float> values;
  for (Segment segment : which) {
    const CheckpointReader file = open_checked(checkpoint, segment, checksums);
    for (const HfEntry& entry : model.hf_names) {
      if (!holds(segment, model, entry)) continue;
      const EntryExtent extent = extent_of(model, entry);
      // Zeros would not do: their bias corrections belong to step 1, the run's to a later one.
      if (segment != Segment::master && !checksums.at(state_stem(segment)).contains(entry.hf_name))
        throw Error(
            Fault::does_not_fit, "checkpoint.read",
            fmt::format("'{}' was frozen when '{}' was written, and has no states of AdamW",
                        entry.hf_name, checkpoint.string()),
            fmt::format("start a new run from its weights: --model '{}'", checkpoint.string()));
      const StoredTensor& tensor = file.get(entry.hf_name, entry.hf_shape);
      values.resize(static_cast<size_t>(extent.n_elements));
      file.read_f32(entry.hf_name, values);
      file.release_pages(tensor);
      if (segment == Segment::master)
        segments.set_param(entry.block, extent.begin, values);
      else
        segments.set_state(entry.block, segment, extent.begin, values);
    }
  }
}

}  // namespace ferry
