#include "src/engine/state/state_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "simd/kernels.h"
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

/** A tensor of a segment's files. */
struct SavedTensor {
  TensorSpec spec;
  int block = 0;
  ByteRange range;                 ///< bytes of the segment, as StatePiece counts
  const HfEntry* entry = nullptr;  ///< of a tensor of master weights
};

/** Adam states of a frozen parameter are in no checkpoint: it has none. */
std::vector<SavedTensor> saved_tensors(const ModelTable& model,
                                       const StepShape& shape,
                                       Segment segment) {
  std::vector<SavedTensor> tensors;
  const bool is_master = segment == Segment::master;
  if (!is_master && shape.states == simd::StateType::block8) {
    for (int b = 0; b < shape.n_blocks(); ++b) {
      const BlockTable& block = model.blocks[static_cast<size_t>(b)];
      for (const ParamSpec& param : block.params) {
        if (!param.trainable) continue;
        const std::string name = block.name + "." + param.name;
        const ByteRange exponents =
            exponent_bytes(shape, b, {.offset = param.offset, .n_elements = param.n_elements});
        tensors.push_back({{name, DType::u8, param.shape},
                           b,
                           element_bytes(shape, b, segment, param.offset, param.n_elements)});
        tensors.push_back({{name + ".exponents", DType::u8, {exponents.n_bytes}}, b, exponents});
      }
    }
    return tensors;
  }
  for (const HfEntry& entry : model.hf_names) {
    if (!is_master && !model.param_of(entry).trainable) continue;
    const EntryExtent extent = extent_of(model, entry);
    const DType type = is_master ? DType::f32 : segment_dtype(shape, entry.block, segment);
    const auto width = static_cast<int64_t>(size_of(type));
    // States are read by Ferry alone, so they keep its order.
    std::vector<int64_t> shape_of = model.param_of(entry).shape;
    shape_of[0] = entry.rows;
    tensors.push_back({{entry.hf_name, type, is_master ? entry.hf_shape : shape_of},
                       entry.block,
                       {extent.begin * width, extent.n_elements * width},
                       is_master ? &entry : nullptr});
  }
  return tensors;
}

}  // namespace

StateWriter::StateWriter(const ModelTable& model,
                         const StepShape& shape,
                         const FrozenWeights& frozen,
                         const std::filesystem::path& checkpoint,
                         int64_t max_shard_bytes,
                         WriteBehind& behind)
    : shape_(shape), frozen_(frozen) {
  if (!shape.weights_are_master())
    for (const HfEntry& entry : model.hf_names)
      if (!model.param_of(entry).trainable) without_master_.insert(entry.hf_name);
  for (size_t s = 0; s < kSavedSegments.size(); ++s) {
    std::vector<TensorSpec> specs;
    names_[s].resize(model.blocks.size());
    for (SavedTensor& tensor : saved_tensors(model, shape, kSavedSegments[s])) {
      names_[s][static_cast<size_t>(tensor.block)].push_back(tensor.spec.name);
      if (tensor.entry) {
        FileOrder order(model, *tensor.entry);
        if (!order.is_ours()) orders_.emplace(tensor.spec.name, std::move(order));
      }
      ranges_[s][tensor.spec.name] = tensor.range;
      specs.push_back(std::move(tensor.spec));
    }
    writers_
        .emplace_back(state_directory(checkpoint, kSavedSegments[s]), specs, max_shard_bytes,
                      state_stem(kSavedSegments[s]))
        .write_directly(behind);
    // The order is that of the files: neighbours are one run of bytes.
    for (auto& names : names_[s])
      std::ranges::sort(names);
  }
}

void StateWriter::write(BlockStates& block) {
  for (size_t s = 0; s < kSavedSegments.size(); ++s) {
    write(block, s);
    // The other writers would lack the bytes that one writer holds back.
    writers_[s].end_run();
  }
}

void StateWriter::write(BlockStates& block, size_t s) {
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
        const ByteRange& range = ranges_[s].at(names[tensor]);
        const auto n = std::min(part.size(), static_cast<size_t>(range.n_bytes - done_bytes));
        pieces.push_back({kSavedSegments[s], range.offset + done_bytes, part.first(n)});
        tensor_of.push_back(tensor);
        part = part.subspan(n);
        done_bytes += static_cast<int64_t>(n);
        if (done_bytes < range.n_bytes) continue;
        ++tensor;
        done_bytes = 0;
      }
    checksum_of.resize(pieces.size());
    std::vector<StatePiece> states;
    std::vector<size_t> piece_of;  // by state
    for (size_t i = 0; i < pieces.size(); ++i) {
      const std::string& name = names[tensor_of[i]];
      const bool is_master = kSavedSegments[s] == Segment::master;
      if (is_master && is_reordered(name)) {
        // One piece after the other would read the rows of the whole tensor for each.
        size_t end = i + 1;
        while (end < pieces.size() && tensor_of[end] == tensor_of[i])
          ++end;
        gather(block, name, std::span(pieces).subspan(i, end - i));
        for (; i < end; ++i)
          checksum_of[i] = crc32c(pieces[i].to);
        --i;
        continue;
      }
      if (is_master && without_master_.contains(name)) {
        read_frozen(block, name, ranges_[s].at(name).offset, pieces[i]);
        checksum_of[i] = crc32c(pieces[i].to);
        continue;
      }
      states.push_back(pieces[i]);
      piece_of.push_back(i);
    }
    block.read(states, [&](size_t i) { checksum_of[piece_of[i]] = crc32c(states[i].to); });
    for (size_t i = 0; i < pieces.size(); ++i) {
      uint32_t& checksum = checksums[names[tensor_of[i]]];
      checksum =
          crc32c_combine(checksum, checksum_of[i], static_cast<int64_t>(pieces[i].to.size()));
    }
  });
}

void StateWriter::gather(BlockStates& block,
                         const std::string& name,
                         std::span<const StatePiece> pieces) const {
  constexpr auto kF32_bytes = static_cast<int64_t>(sizeof(float));
  const int64_t begin_bytes = ranges_[0].at(name).offset;
  int64_t n_bytes = 0;
  for (const StatePiece& piece : pieces)
    n_bytes += std::ssize(piece.to);
  std::vector<float> values(static_cast<size_t>(n_bytes / kF32_bytes));
  const int64_t first_element = (pieces.front().offset_bytes - begin_bytes) / kF32_bytes;
  orders_.at(name).gather(first_element, values, [&](std::span<const FileOrder::Part> parts) {
    const int64_t begin = begin_bytes / kF32_bytes;
    if (without_master_.contains(name)) {
      read_rounded(block, begin, parts);
      return;
    }
    std::vector<StatePiece> states;
    for (const FileOrder::Part& part : parts)
      states.push_back({Segment::master, (begin + part.first_element) * kF32_bytes,
                        std::as_writable_bytes(part.to)});
    block.read(states, [](size_t) {});
  });
  const std::byte* from = std::as_bytes(std::span(values)).data();
  for (const StatePiece& piece : pieces) {
    std::memcpy(piece.to.data(), from, piece.to.size());
    from += piece.to.size();
  }
}

void StateWriter::read_rounded(BlockStates& block,
                               int64_t begin,
                               std::span<const FileOrder::Part> parts) const {
  int64_t n_elements = 0;
  for (const FileOrder::Part& part : parts)
    n_elements += std::ssize(part.to);
  std::vector<std::byte> weights(static_cast<size_t>(n_elements) * size_of(shape_.compute));
  std::vector<StatePiece> rounded;
  auto left = std::span(weights);
  for (const FileOrder::Part& part : parts) {
    const ByteRange range = element_bytes(shape_, block.block(), Segment::weights,
                                          begin + part.first_element, std::ssize(part.to));
    rounded.push_back(
        {Segment::weights, range.offset, left.first(static_cast<size_t>(range.n_bytes))});
    left = left.subspan(static_cast<size_t>(range.n_bytes));
  }
  block.read(rounded, [](size_t) {});
  for (size_t i = 0; i < parts.size(); ++i)
    simd::convert(parts[i].to.data(), DType::f32, rounded[i].to.data(), shape_.compute,
                  std::ssize(parts[i].to));
}

void StateWriter::read_frozen(BlockStates& block,
                              const std::string& name,
                              int64_t begin_bytes,
                              const StatePiece& piece) const {
  constexpr auto kF32_bytes = static_cast<int64_t>(sizeof(float));
  const auto n = static_cast<int64_t>(piece.to.size()) / kF32_bytes;
  std::vector<float> values(static_cast<size_t>(n));
  if (frozen_.has(name)) {
    frozen_.read(name, (piece.offset_bytes - begin_bytes) / kF32_bytes, values);
  } else {
    const FileOrder::Part part = {piece.offset_bytes / kF32_bytes, values};
    read_rounded(block, 0, {&part, 1});
  }
  std::memcpy(piece.to.data(), values.data(), piece.to.size());
}

const std::map<std::string, TensorChecksums>& StateWriter::finish() {
  for (const std::string& name : without_master_)
    if (frozen_.has(name)) frozen_.check(name, checksums_[state_stem(Segment::master)].at(name));
  for (CheckpointWriter& writer : writers_)
    writer.finish();
  return checksums_;
}

namespace {

void load_master(const ModelTable& model,
                 CheckpointReader checkpoint_file,
                 const TensorChecksums& checksums,
                 Segments& segments) {
  FrozenWeights frozen(std::move(checkpoint_file));
  const CheckpointReader& file = frozen.file();
  for (const HfEntry& entry : model.hf_names) {
    const StoredTensor& stored = file.get(entry.hf_name, entry.hf_shape);
    read_entry(
        model, entry, file, stored, [](std::span<const float>, int64_t) {}, segments);
    if (segments.lacks_master(entry.block, extent_of(model, entry).begin))
      frozen.add(entry.hf_name, stored, checksums.at(entry.hf_name));
  }
  if (!frozen.empty()) segments.set_frozen(std::move(frozen));
}

}  // namespace

void load_states(const ModelTable& model,
                 const StepShape& shape,
                 const std::filesystem::path& checkpoint,
                 const std::map<std::string, TensorChecksums>& checksums,
                 std::span<const Segment> which,
                 Segments& segments) {
  for (Segment segment : which) {
    CheckpointReader file = open_checked(checkpoint, segment, checksums);
    if (segment == Segment::master) {
      load_master(model, std::move(file), checksums.at(state_stem(segment)), segments);
      continue;
    }
    for (const SavedTensor& saved : saved_tensors(model, shape, segment)) {
      // Zeros would not do: their bias corrections belong to step 1, the run's to a later one.
      if (!checksums.at(state_stem(segment)).contains(saved.spec.name))
        throw Error(
            Fault::does_not_fit, "checkpoint.read",
            fmt::format("'{}' was frozen when '{}' was written, and has no states of AdamW",
                        saved.spec.name, checkpoint.string()),
            fmt::format("start a new run from its weights: --model '{}'", checkpoint.string()));
      const StoredTensor& tensor = file.get(saved.spec.name, saved.spec.shape);
      if (tensor.type != saved.spec.type)
        throw Error(
            Fault::data, "checkpoint.read",
            fmt::format("'{}' of '{}' is {}, expected {}", saved.spec.name, file.path().string(),
                        name_of(tensor.type), name_of(saved.spec.type)),
            "resume from an earlier checkpoint");
      file.read(tensor, [&](std::span<const std::byte> bytes, size_t first_byte) {
        segments.set_bytes(saved.block, segment,
                           saved.range.offset + static_cast<int64_t>(first_byte), bytes);
      });
    }
  }
}

}  // namespace ferry
