#include "src/engine/state/state_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

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

/** A tensor of a segment's files, or what a block holds of one. */
struct SavedTensor {
  TensorSpec spec;  ///< of the whole tensor
  int block = 0;
  ByteRange range;                 ///< bytes of the segment, as StatePiece counts
  const HfEntry* entry = nullptr;  ///< of a tensor of master weights
  int64_t first_byte = 0;          ///< of the tensor
};

/** A parameter of the table, or the one of which it is a piece. */
struct WholeParam {
  std::string name;
  std::vector<int64_t> shape;
  int64_t first_element = 0;  ///< of the piece

  int64_t n_elements() const {
    return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  }
};
WholeParam whole_of(const ModelTable& model, int block, int param) {
  const BlockTable& table = model.blocks[static_cast<size_t>(block)];
  const ParamSpec& spec = table.params[static_cast<size_t>(param)];
  const auto entry = std::ranges::find_if(model.hf_names, [&](const HfEntry& its) {
    return its.block == block && its.param == param && !its.is_whole();
  });
  if (entry == model.hf_names.end()) return {table.name + "." + spec.name, spec.shape};
  WholeParam whole = {fmt::format("{}.{}", name_of(table.kind), spec.name), spec.shape,
                      first_element_of(model, *entry)};
  whole.shape[0] = entry->file_rows();
  return whole;
}

/** Adam states of a frozen parameter are in no checkpoint: it has none. */
std::vector<SavedTensor> saved_tensors(const ModelTable& model,
                                       const StepShape& shape,
                                       Segment segment) {
  std::vector<SavedTensor> tensors;
  const bool is_master = segment == Segment::master;
  if (!is_master && shape.states == simd::StateType::block8) {
    for (int b = 0; b < shape.n_blocks(); ++b) {
      const BlockTable& block = model.blocks[static_cast<size_t>(b)];
      for (size_t p = 0; p < block.params.size(); ++p) {
        const ParamSpec& param = block.params[p];
        if (!param.trainable) continue;
        const WholeParam whole = whole_of(model, b, static_cast<int>(p));
        const ByteRange exponents =
            exponent_bytes(shape, b, {.offset = param.offset, .n_elements = param.n_elements});
        tensors.push_back({{whole.name, DType::u8, whole.shape},
                           b,
                           element_bytes(shape, b, segment, param.offset, param.n_elements),
                           nullptr,
                           whole.first_element});
        // Pieces are whole blocks of states.
        tensors.push_back(
            {{whole.name + ".exponents", DType::u8, {simd::state_blocks(whole.n_elements())}},
             b,
             exponents,
             nullptr,
             simd::state_blocks(whole.first_element)});
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
    shape_of[0] = entry.file_rows();
    tensors.push_back({{entry.hf_name, type, is_master ? entry.hf_shape : shape_of},
                       entry.block,
                       {extent.begin * width, extent.n_elements * width},
                       is_master ? &entry : nullptr,
                       first_element_of(model, entry) * width});
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
    stored_[s].resize(model.blocks.size());
    for (SavedTensor& tensor : saved_tensors(model, shape, kSavedSegments[s])) {
      const std::string& name = tensor.spec.name;
      stored_[s][static_cast<size_t>(tensor.block)].push_back(
          {{name, tensor.first_byte, tensor.range.n_bytes}, tensor.range});
      if (tensor.entry) {
        FileOrder order(model, *tensor.entry);
        if (!order.is_ours()) orders_.emplace(name, std::move(order));
      }
      if (tensor.first_byte == 0) specs.push_back(std::move(tensor.spec));
    }
    writers_
        .emplace_back(state_directory(checkpoint, kSavedSegments[s]), specs, max_shard_bytes,
                      state_stem(kSavedSegments[s]))
        .write_directly(behind);
    // The order is that of the files: neighbours are one run of bytes.
    for (auto& stored : stored_[s])
      std::ranges::sort(stored, {}, [](const Stored& its) { return its.part.name; });
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
  const auto& stored = stored_[s][static_cast<size_t>(block.block())];
  std::vector<TensorPart> in_file;
  for (const Stored& its : stored)
    in_file.push_back(its.part);
  size_t tensor = 0;       // of stored: the one that comes next,
  int64_t done_bytes = 0;  // and of it
  std::vector<StatePiece> pieces;
  std::vector<size_t> tensor_of;  // by piece
  std::vector<uint32_t> checksum_of;
  writers_[s].fill(in_file, [&](std::span<const std::span<std::byte>> parts) {
    pieces.clear(), tensor_of.clear();
    for (auto part : parts)
      while (!part.empty()) {
        const ByteRange& range = stored[tensor].range;
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
      const Stored& its = stored[tensor_of[i]];
      const std::string& name = its.part.name;
      const bool is_master = kSavedSegments[s] == Segment::master;
      if (is_master && is_reordered(name)) {
        // One piece after the other would read the rows of the whole tensor for each.
        size_t end = i + 1;
        while (end < pieces.size() && tensor_of[end] == tensor_of[i])
          ++end;
        gather(block, its, std::span(pieces).subspan(i, end - i));
        for (; i < end; ++i)
          checksum_of[i] = crc32c(pieces[i].to);
        --i;
        continue;
      }
      if (is_master && without_master_.contains(name)) {
        read_frozen(block, its, pieces[i]);
        checksum_of[i] = crc32c(pieces[i].to);
        continue;
      }
      states.push_back(pieces[i]);
      piece_of.push_back(i);
    }
    block.read(states, [&](size_t i) { checksum_of[piece_of[i]] = crc32c(states[i].to); });
    for (size_t i = 0; i < pieces.size(); ++i) {
      const TensorPart& part = in_file[tensor_of[i]];
      PartChecksum& sum = checksums_of_parts_[s][{part.name, part.first_byte}];
      const auto n_bytes = static_cast<int64_t>(pieces[i].to.size());
      sum = {crc32c_combine(sum.checksum, checksum_of[i], n_bytes), sum.n_bytes + n_bytes};
    }
  });
}

void StateWriter::gather(BlockStates& block,
                         const Stored& stored,
                         std::span<const StatePiece> pieces) const {
  constexpr auto kF32_bytes = static_cast<int64_t>(sizeof(float));
  const std::string& name = stored.part.name;
  const int64_t begin_bytes = stored.range.offset;
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
                              const Stored& stored,
                              const StatePiece& piece) const {
  constexpr auto kF32_bytes = static_cast<int64_t>(sizeof(float));
  const auto n = static_cast<int64_t>(piece.to.size()) / kF32_bytes;
  std::vector<float> values(static_cast<size_t>(n));
  if (frozen_.has(stored.part.name)) {
    const int64_t at_bytes = stored.part.first_byte + piece.offset_bytes - stored.range.offset;
    frozen_.read(stored.part.name, at_bytes / kF32_bytes, values);
  } else {
    const FileOrder::Part part = {piece.offset_bytes / kF32_bytes, values};
    read_rounded(block, 0, {&part, 1});
  }
  std::memcpy(piece.to.data(), values.data(), piece.to.size());
}

const std::map<std::string, TensorChecksums>& StateWriter::finish() {
  for (size_t s = 0; s < kSavedSegments.size(); ++s)
    for (const auto& [part, its] : checksums_of_parts_[s]) {
      uint32_t& checksum = checksums_[state_stem(kSavedSegments[s])][part.first];
      checksum = crc32c_combine(checksum, its.checksum, its.n_bytes);
    }
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
      file.read(tensor, saved.first_byte, saved.range.n_bytes,
                [&](std::span<const std::byte> bytes, size_t first_byte) {
                  const int64_t at = static_cast<int64_t>(first_byte) - saved.first_byte;
                  segments.set_bytes(saved.block, segment, saved.range.offset + at, bytes);
                });
    }
  }
}

}  // namespace ferry
