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
                         std::span<std::byte> buffer)
    : model_(model), entries_(model.blocks.size()), behind_(buffer) {
  for (const HfEntry& entry : model.hf_names)
    entries_[static_cast<size_t>(entry.block)].push_back(&entry);
  // As their files have them: what follows each other is one run of bytes.
  for (auto& entries : entries_)
    std::ranges::sort(entries, {}, &HfEntry::hf_name);
  for (Segment segment : kSavedSegments)
    writers_
        .emplace_back(state_directory(checkpoint, segment), saved_tensors(model, segment),
                      max_shard_bytes, state_stem(segment))
        .write_directly(behind_);
}

void StateWriter::write(BlockStates& block) {
  for (const HfEntry* entry : entries_[static_cast<size_t>(block.block())])
    write(block, *entry);
  // What a writer holds back, the others' blocks would lack.
  for (CheckpointWriter& writer : writers_)
    writer.end_run();
}

void StateWriter::write(BlockStates& block, const HfEntry& entry) {
  constexpr auto kFp32_bytes = static_cast<int64_t>(sizeof(float));
  constexpr int64_t kPiece_bytes = 4 << 20;  // the files in turn, so that all are being written
  const EntryExtent extent = extent_of(model_, entry);
  const int64_t begin = extent.begin * kFp32_bytes, n_bytes = extent.n_elements * kFp32_bytes;
  std::array<uint32_t, kSavedSegments.size()> checksums{};
  std::vector<uint32_t> of_parts;
  for (int64_t piece = 0; piece < n_bytes; piece += kPiece_bytes)
    for (size_t s = 0; s < kSavedSegments.size(); ++s) {
      if (!holds(kSavedSegments[s], model_, entry)) continue;
      int64_t at = begin + piece;
      writers_[s].fill(entry.hf_name, std::min(kPiece_bytes, n_bytes - piece), [&](auto parts) {
        of_parts.resize(parts.size());
        block.read(kSavedSegments[s], at, parts,
                   [&](size_t part) { of_parts[part] = crc32c(parts[part]); });
        for (size_t part = 0; part < parts.size(); ++part) {
          const auto part_bytes = static_cast<int64_t>(parts[part].size());
          checksums[s] = crc32c_combine(checksums[s], of_parts[part], part_bytes);
          at += part_bytes;
        }
      });
    }
  for (size_t s = 0; s < kSavedSegments.size(); ++s)
    if (holds(kSavedSegments[s], model_, entry))
      checksums_[state_stem(kSavedSegments[s])][entry.hf_name] = checksums[s];
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
