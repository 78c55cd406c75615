#include "src/engine/state/state_files.h"

#include <algorithm>
#include <cstring>

#include "simd/kernels.h"
#include "src/base/crc32c.h"
#include "src/base/error.h"
#include "src/engine/state/saved_tensors.h"
#include "src/engine/state/stored_rows.h"

namespace ferry {

StateWriter::StateWriter(const ModelTable& model,
                         const StepShape& shape,
                         const FrozenWeights& frozen,
                         const std::filesystem::path& checkpoint,
                         int64_t max_shard_bytes,
                         WriteBehind& behind,
                         FilesHold holds)
    : model_(model),
      shape_(shape),
      segments_(saved_segments(shape.optim)),
      frozen_(frozen),
      holds_(holds) {
  for (const HfEntry& entry : model.hf_names)
    if (is_saved(model, entry) && lacks_master(shape, model.param_of(entry)))
      without_master_.insert(entry.hf_name);
  for (size_t s = 0; s < segments_.size(); ++s) {
    std::vector<TensorSpec> specs;
    stored_[s].resize(model.blocks.size());
    std::vector<SavedTensor> tensors = saved_tensors(model, shape, segments_[s]);
    if (holds == FilesHold::what_no_drive_has) tensors = without_drive(shape, std::move(tensors));
    for (SavedTensor& tensor : tensors) {
      const std::string& name = tensor.spec.name;
      n_bytes_ += tensor.range.n_bytes;
      stored_[s][static_cast<size_t>(tensor.block)].push_back(
          {{name, tensor.first_byte, tensor.range.n_bytes}, tensor.range, tensor.entry});
      if (tensor.entry) {
        FileOrder order(model, *tensor.entry);
        if (!order.is_ours()) orders_.emplace(name, std::move(order));
      }
      if (tensor.first_byte == 0) specs.push_back(std::move(tensor.spec));
    }
    if (specs.empty()) continue;  // a drive has all of them
    writers_[s]
        .emplace(state_directory(checkpoint, segments_[s], holds), specs, max_shard_bytes,
                 stem_of(s))
        .write_directly(behind);
    // The order is that of the files: neighbours are one run of bytes.
    for (auto& stored : stored_[s])
      std::ranges::sort(stored, {}, [](const Stored& its) { return its.part.name; });
  }
}

std::string StateWriter::stem_of(size_t segment) const {
  return state_stem(model_, segments_[segment], shape_.optim, holds_);
}

void StateWriter::write(StateSource& block) {
  for (size_t s = 0; s < segments_.size(); ++s) {
    if (!writers_[s]) continue;
    write(block, s);
    // The other writers would lack the bytes that one writer holds back.
    writers_[s]->end_run();
  }
}

void StateWriter::write(StateSource& block, size_t s) {
  const auto& stored = stored_[s][static_cast<size_t>(block.block())];
  std::vector<TensorPart> in_file;
  for (const Stored& its : stored)
    in_file.push_back(its.part);
  size_t tensor = 0;       // of stored: the one that comes next,
  int64_t done_bytes = 0;  // and of it
  std::vector<StatePiece> pieces;
  std::vector<size_t> tensor_of;  // by piece
  std::vector<uint32_t> checksum_of;
  writers_[s]->fill(in_file, [&](std::span<const std::span<std::byte>> parts) {
    pieces.clear(), tensor_of.clear();
    for (auto part : parts)
      while (!part.empty()) {
        const ByteRange& range = stored[tensor].range;
        const auto n = std::min(part.size(), static_cast<size_t>(range.n_bytes - done_bytes));
        pieces.push_back({segments_[s], range.offset + done_bytes, part.first(n)});
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
      const bool is_master = segments_[s] == Segment::master;
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

void StateWriter::gather(StateSource& block,
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
    if (without_master_.contains(name)) return read_rounded(block, stored, parts);
    std::vector<StatePiece> states;
    for (const FileOrder::Part& part : parts)
      states.push_back({Segment::master, begin_bytes + part.first_element * kF32_bytes,
                        std::as_writable_bytes(part.to)});
    block.read(states, [](size_t) {});
  });
  const std::byte* from = std::as_bytes(std::span(values)).data();
  for (const StatePiece& piece : pieces) {
    std::memcpy(piece.to.data(), from, piece.to.size());
    from += piece.to.size();
  }
}

void StateWriter::read_rounded(StateSource& block,
                               const Stored& stored,
                               std::span<const FileOrder::Part> parts) const {
  if (!model_.param_of(*stored.entry).storage.is_compute())
    return read_stored(block, *stored.entry, parts);
  const int64_t begin = extent_of(model_, *stored.entry).begin;
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

void StateWriter::read_stored(StateSource& block,
                              const HfEntry& entry,
                              std::span<const FileOrder::Part> parts) const {
  const ParamSpec& param = model_.param_of(entry);
  const ByteRange begin = element_bytes(shape_, entry.block, Segment::weights, param.offset, 0);
  for (const FileOrder::Part& part : parts)
    read_rows(param.stored(shape_.compute),
              entry.row_begin * param.row_values() + part.first_element, part.to,
              [&](int64_t offset, std::span<std::byte> to) {
                const StatePiece piece = {Segment::weights, begin.offset + offset, to};
                block.read({&piece, 1}, [](size_t) {});
              });
}

void StateWriter::read_frozen(StateSource& block,
                              const Stored& stored,
                              const StatePiece& piece) const {
  constexpr auto kF32_bytes = static_cast<int64_t>(sizeof(float));
  const auto n = static_cast<int64_t>(piece.to.size()) / kF32_bytes;
  std::vector<float> values(static_cast<size_t>(n));
  const int64_t at_bytes = piece.offset_bytes - stored.range.offset;
  if (frozen_.has(stored.part.name)) {
    frozen_.read(stored.part.name, (stored.part.first_byte + at_bytes) / kF32_bytes, values);
  } else {
    const FileOrder::Part part = {at_bytes / kF32_bytes, values};
    read_rounded(block, stored, {&part, 1});
  }
  std::memcpy(piece.to.data(), values.data(), piece.to.size());
}

const std::map<std::string, TensorChecksums>& StateWriter::finish() {
  for (size_t s = 0; s < segments_.size(); ++s)
    for (const auto& [part, its] : checksums_of_parts_[s]) {
      uint32_t& checksum = checksums_[stem_of(s)][part.first];
      checksum = crc32c_combine(checksum, its.checksum, its.n_bytes);
    }
  for (const std::string& name : without_master_)
    if (frozen_.has(name)) frozen_.check(name, checksums_[stem_of(0)].at(name));
  for (auto& writer : writers_)
    if (writer) writer->finish();
  return checksums_;
}

}  // namespace ferry
