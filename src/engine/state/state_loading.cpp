// States come back from a checkpoint's files, and from a generation on a drive where these leave
// some out.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "src/base/error.h"
#include "src/base/process/movement.h"
#include "src/engine/state/saved_tensors.h"
#include "src/engine/state/state_files.h"

namespace ferry {
namespace {

CheckpointReader open_checked(const std::filesystem::path& checkpoint,
                              Segment segment,
                              const std::string& stem,
                              FilesHold holds,
                              const std::map<std::string, TensorChecksums>& checksums) {
  auto file = CheckpointReader::open(state_directory(checkpoint, segment, holds), stem);
  const auto found = checksums.find(stem);
  if (found == checksums.end())
    throw Error(Fault::data, "checkpoint.read",
                fmt::format("'{}' has no checksums of '{}'", checkpoint.string(), stem),
                "resume from an earlier checkpoint");
  check_checksums(file, found->second);
  return file;
}

/** One segment's tensors, wherever a checkpoint has them. */
class SavedSegment {
 public:
  SavedSegment(const ModelTable& model,
               const std::filesystem::path& checkpoint,
               Segment segment,
               simd::Optim optim,
               const std::map<std::string, TensorChecksums>& checksums,
               const DriveSource* drive)
      : checkpoint_(checkpoint), segment_(segment), drive_(drive) {
    const FilesHold holds = drive ? FilesHold::what_no_drive_has : FilesHold::all;
    const std::string stem = state_stem(model, segment, optim, holds);
    const auto found = checksums.find(stem);
    if (found == checksums.end() && drive) return;  // the drive has all
    file_ = open_checked(checkpoint, segment, stem, holds, checksums);
    checksums_ = found->second;
  }

  const std::optional<CheckpointReader>& file() const { return file_; }
  CheckpointReader take_file() { return std::move(*file_); }
  const TensorChecksums& checksums() const { return checksums_; }
  bool has_file_of(const std::string& tensor) const { return checksums_.contains(tensor); }
  bool has(const std::string& tensor) const {
    return has_file_of(tensor) || find_part(tensor, 0) != nullptr;
  }

  using TakeBytes = CheckpointReader::TakeBytes;
  /** Bytes of a tensor that is no whole one of the files, in Ferry's order of elements. */
  void read_parts(const std::string& tensor,
                  int64_t first_byte,
                  int64_t n_bytes,
                  const TakeBytes& take) const;

 private:
  const StoredStates::Part* find_part(const std::string& tensor, int64_t byte) const;
  void read_drive(const StoredStates::Part& part,
                  int64_t first_byte,
                  int64_t n_bytes,
                  const TakeBytes& take) const;

  std::filesystem::path checkpoint_;
  Segment segment_;
  const DriveSource* drive_;
  std::optional<CheckpointReader> file_;
  TensorChecksums checksums_;
};

const StoredStates::Part* SavedSegment::find_part(const std::string& tensor, int64_t byte) const {
  if (!drive_) return nullptr;
  const auto& parts = drive_->about->parts(segment_);
  const auto found = std::ranges::find_if(parts, [&](const StoredStates::Part& part) {
    return part.tensor == tensor && part.first_byte <= byte &&
           byte < part.first_byte + part.n_bytes;
  });
  return found == parts.end() ? nullptr : &*found;
}

void SavedSegment::read_parts(const std::string& tensor,
                              int64_t first_byte,
                              int64_t n_bytes,
                              const TakeBytes& take) const {
  for (int64_t at = first_byte, end = first_byte + n_bytes; at < end;) {
    const StoredStates::Part* part = find_part(tensor, at);
    if (!part)
      throw Error(
          Fault::data, "checkpoint.read",
          fmt::format("'{}' has nothing of '{}' from byte {} on", checkpoint_.string(), tensor, at),
          "resume from an earlier checkpoint");
    const int64_t n = std::min(end, part->first_byte + part->n_bytes) - at;
    if (part->block < 0)
      file_->read(file_->get(part_name(tensor, part->first_byte)), at - part->first_byte, n,
                  [&](std::span<const std::byte> bytes, size_t first) {
                    take(bytes, static_cast<size_t>(part->first_byte) + first);
                  });
    else
      read_drive(*part, at, n, take);
    at += n;
  }
}

void SavedSegment::read_drive(const StoredStates::Part& part,
                              int64_t first_byte,
                              int64_t n_bytes,
                              const TakeBytes& take) const {
  constexpr int64_t kPiece_bytes = 2 << 20;
  std::vector<std::byte> piece(static_cast<size_t>(std::min(kPiece_bytes, n_bytes)));
  for (int64_t done = 0; done < n_bytes; done += kPiece_bytes) {
    const auto bytes =
        std::span(piece).first(static_cast<size_t>(std::min(kPiece_bytes, n_bytes - done)));
    drive_->reader->read(part.block, segment_, part.offset + first_byte - part.first_byte + done,
                         bytes);
    take(bytes, static_cast<size_t>(first_byte + done));
    note_movement();
  }
}

/** Values of a master's tensor, in Ferry's order. */
void read_values(const SavedSegment& master,
                 const ModelTable& model,
                 const HfEntry& entry,
                 int64_t first_element,
                 int64_t n_elements,
                 const CheckpointReader::TakeValues& take) {
  constexpr auto kF32_bytes = static_cast<int64_t>(sizeof(float));
  const int64_t first = first_element_of(model, entry) + first_element;
  std::vector<float> values;
  master.read_parts(entry.hf_name, first * kF32_bytes, n_elements * kF32_bytes,
                    [&](std::span<const std::byte> bytes, size_t first_byte) {
                      values.resize(bytes.size() / sizeof(float));
                      std::memcpy(values.data(), bytes.data(), bytes.size());
                      take(values, static_cast<int64_t>(first_byte) / kF32_bytes - first);
                    });
}

/** `is_there`: the segments have the entry's values already. */
void load_master(const ModelTable& model,
                 SavedSegment& saved,
                 const std::function<bool(const HfEntry&)>& is_there,
                 Segments& segments) {
  for (const HfEntry& entry : model.hf_names)
    if (!saved.has_file_of(entry.hf_name) && saved.has(entry.hf_name) && !is_there(entry)) {
      EntryWriter writer(model, entry, segments);
      read_values(saved, model, entry, 0, extent_of(model, entry).n_elements,
                  [&](std::span<const float> values, int64_t) { writer.write(values); });
    }
  if (!saved.file()) return;
  FrozenWeights frozen(saved.take_file());
  const CheckpointReader& file = frozen.file();
  for (const HfEntry& entry : model.hf_names) {
    if (!is_saved(model, entry)) continue;  // it is there already
    if (!saved.has_file_of(entry.hf_name) && saved.has(entry.hf_name)) continue;
    const StoredTensor& stored = file.get(entry.hf_name, entry.hf_shape);
    read_entry(
        model, entry, file, stored, [](std::span<const float>, int64_t) {}, segments);
    if (segments.lacks_master(model.param_of(entry)))
      frozen.add(entry.hf_name, stored, saved.checksums().at(entry.hf_name));
  }
  if (!frozen.empty()) segments.set_frozen(std::move(frozen));
}

void load_state(const SavedTensor& saved,
                Segment segment,
                const SavedSegment& from,
                Segments& segments) {
  const auto put = [&](std::span<const std::byte> bytes, size_t first_byte) {
    const int64_t at = static_cast<int64_t>(first_byte) - saved.first_byte;
    segments.set_bytes(saved.block, segment, saved.range.offset + at, bytes);
  };
  if (!from.has_file_of(saved.spec.name))
    return from.read_parts(saved.spec.name, saved.first_byte, saved.range.n_bytes, put);
  const CheckpointReader& file = *from.file();
  const StoredTensor& tensor = file.get(saved.spec.name, saved.spec.shape);
  if (tensor.type != saved.spec.type)
    throw Error(Fault::data, "checkpoint.read",
                fmt::format("'{}' of '{}' is {}, expected {}", saved.spec.name,
                            file.path().string(), name_of(tensor.type), name_of(saved.spec.type)),
                "resume from an earlier checkpoint");
  file.read(tensor, saved.first_byte, saved.range.n_bytes, put);
}

}  // namespace

void load_states(const ModelTable& model,
                 const StepShape& shape,
                 const std::filesystem::path& checkpoint,
                 const std::map<std::string, TensorChecksums>& checksums,
                 std::span<const Segment> which,
                 Segments& segments,
                 const DriveSource* drive) {
  const bool is_loaded = drive && !drive->reader;
  for (Segment segment : which) {
    SavedSegment from(model, checkpoint, segment, shape.optim, checksums, drive);
    if (segment == Segment::master) {
      load_master(
          model, from,
          [&](const HfEntry& entry) {
            return is_loaded && model.param_of(entry).trainable &&
                   shape.n_state_pieces(entry.block) > 0;
          },
          segments);
      continue;
    }
    for (const SavedTensor& saved : saved_tensors(model, shape, segment)) {
      if (is_loaded && is_on_drive(shape, saved)) continue;
      // Zeros would not do: their bias corrections belong to step 1, the run's to a later one.
      if (!from.has(saved.spec.name))
        throw Error(
            Fault::does_not_fit, "checkpoint.read",
            fmt::format("'{}' was frozen when '{}' was written, and has no states of the optimizer",
                        saved.spec.name, checkpoint.string()),
            fmt::format("start a new run from its weights: --model '{}'", checkpoint.string()));
      load_state(saved, segment, from, segments);
    }
  }
}

namespace {

/** Writes an entry's values where its file has them; `take` gets the file's first element. */
void in_file_order(const SavedSegment& saved,
                   const ModelTable& model,
                   const HfEntry& entry,
                   const FileOrder::WriteFile& take) {
  const FileOrder order(model, entry);
  if (order.is_ours()) {
    const int64_t first = first_element_of(model, entry);
    read_values(saved, model, entry, 0, extent_of(model, entry).n_elements,
                [&](std::span<const float> values, int64_t first_element) {
                  take(first + first_element, values);
                });
    return;
  }
  std::vector<float> strip;
  for (int64_t row = 0; row < order.rows(); row += order.strip_rows()) {
    const int64_t n_rows = std::min(order.strip_rows(), order.rows() - row);
    strip.resize(static_cast<size_t>(n_rows * order.columns()));
    read_values(saved, model, entry, row * order.columns(), std::ssize(strip),
                [&](std::span<const float> values, int64_t first_element) {
                  std::ranges::copy(values, strip.begin() + first_element - row * order.columns());
                });
    order.write_strip(row, strip, take);
  }
}

}  // namespace

void copy_master(const ModelTable& model,
                 const std::filesystem::path& checkpoint,
                 const std::map<std::string, TensorChecksums>& checksums,
                 const DriveSource& drive,
                 const std::filesystem::path& to) {
  constexpr auto kF32_bytes = static_cast<int64_t>(sizeof(float));
  const SavedSegment saved(model, checkpoint, Segment::master, drive.about->optim, checksums,
                           &drive);
  std::string name;
  const auto for_values = [&](const CheckpointReader::TakeBytes& take) {
    for (const HfEntry& entry : model.hf_names) {
      name = entry.hf_name;
      if (!saved.has_file_of(entry.hf_name))
        in_file_order(saved, model, entry, [&](int64_t first, std::span<const float> values) {
          take(std::as_bytes(values), static_cast<size_t>(first * kF32_bytes));
        });
      else if (entry.is_first_part())
        saved.file()->read(saved.file()->get(entry.hf_name, entry.hf_shape), take);
    }
  };
  CheckpointWriter writer(to, hf_tensors(model, DType::f32), kShard_bytes_max);
  for_values([&](std::span<const std::byte> bytes, size_t first_byte) {
    writer.write_at(name, static_cast<int64_t>(first_byte), bytes);
  });
  writer.finish();
  const CheckpointReader copy = CheckpointReader::open(to);
  for_values([&](std::span<const std::byte> bytes, size_t first_byte) {
    CheckpointReader::check_written(copy.get(name), first_byte, bytes);
  });
}

}  // namespace ferry
