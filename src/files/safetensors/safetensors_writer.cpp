#include "src/files/safetensors/safetensors_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/files/hf/checkpoint_reader.h"
#include "src/files/safetensors/safetensors_header.h"
#include "src/files/write/write_error.h"

namespace ferry {
namespace {

int64_t bytes_of(const TensorSpec& tensor) {
  auto bytes = stored_bytes(tensor.type, tensor.shape);
  FERRY_CHECK(bytes, "tensor '{}' of shape {} has no size", tensor.name,
              format_shape(tensor.shape));
  return *bytes;
}

/** Names of weight files, ours or another writer's, so that an export over an older one leaves one
 * model. */
bool is_weights_file(const std::string& name, const std::string& stem) {
  return name == weights_name(stem) || name == weights_index_name(stem) ||
         (name.starts_with(stem + "-") && name.ends_with(".safetensors") &&
          name.find("-of-") != name.npos);
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                     std::vector<TensorSpec> tensors,
                                     const std::map<std::string, std::string>& metadata)
    : file_(path) {
  // The reference's order: descending alignment, then name. Every tensor then starts on a multiple
  // of its element.
  std::sort(tensors.begin(), tensors.end(), [](const TensorSpec& a, const TensorSpec& b) {
    return a.type != b.type ? a.type > b.type : a.name < b.name;
  });
  Header header{.entries = {}, .metadata = metadata};
  for (TensorSpec& tensor : tensors) {
    const int64_t bytes = bytes_of(tensor);
    header.entries.push_back(
        {tensor.name, tensor.type, std::move(tensor.shape), tensor_bytes_, tensor_bytes_ + bytes});
    tensor_bytes_ += bytes;
  }
  const std::string text = format_header(header);
  const uint64_t header_bytes = text.size();
  const int64_t data_begin = 8 + static_cast<int64_t>(header_bytes);
  file_.reserve(data_begin + tensor_bytes_);
  file_.append(std::as_bytes(std::span(&header_bytes, 1)));
  file_.append(text);
  for (const HeaderEntry& entry : header.entries) {
    bool is_new = progress_
                      .emplace(entry.name, Progress{data_begin + entry.begin_bytes,
                                                    data_begin + entry.begin_bytes,
                                                    data_begin + entry.end_bytes})
                      .second;
    FERRY_CHECK(is_new, "tensor '{}' is declared twice", entry.name);
  }
}

SafetensorsWriter::Progress& SafetensorsWriter::progress_of(std::string_view name) {
  auto found = progress_.find(std::string(name));
  FERRY_CHECK(found != progress_.end(), "tensor '{}' was not declared", name);
  return found->second;
}

void SafetensorsWriter::write(std::string_view name, std::span<const std::byte> piece) {
  Progress& progress = progress_of(name);
  const auto n_bytes = static_cast<int64_t>(piece.size());
  FERRY_CHECK(n_bytes <= progress.end_bytes - progress.next_bytes,
              "tensor '{}' has room for {} bytes, not {}", name,
              progress.end_bytes - progress.next_bytes, n_bytes);
  file_.write_at(progress.next_bytes, piece);
  progress.next_bytes += n_bytes;
}

int64_t SafetensorsWriter::take(std::string_view name, int64_t first_byte, int64_t n_bytes) {
  Progress& progress = progress_of(name);
  const int64_t begin = progress.begin_bytes + first_byte;
  FERRY_CHECK(first_byte >= 0 && n_bytes <= progress.end_bytes - begin &&
                  n_bytes <= progress.end_bytes - progress.next_bytes,
              "tensor '{}' of {} bytes has no {} at {}", name,
              progress.end_bytes - progress.begin_bytes, n_bytes, first_byte);
  progress.next_bytes += n_bytes;  // counts: finish() knows that all are there
  return begin;
}

void SafetensorsWriter::write_at(std::string_view name,
                                 int64_t first_byte,
                                 std::span<const std::byte> piece) {
  file_.write_at(take(name, first_byte, static_cast<int64_t>(piece.size())), piece);
}

void SafetensorsWriter::fill(std::span<const TensorPart> parts, const FillParts& fill) {
  for (size_t i = 0; i < parts.size();) {
    const auto begin_of = [&](const TensorPart& part) {
      return progress_of(part.name).begin_bytes + part.first_byte;
    };
    const int64_t begin = begin_of(parts[i]);
    int64_t end = begin;
    for (; i < parts.size() && begin_of(parts[i]) == end; ++i)
      end = take(parts[i].name, parts[i].first_byte, parts[i].n_bytes) + parts[i].n_bytes;
    file_.fill_at(begin, end - begin, fill);
  }
}

void SafetensorsWriter::seal() {
  for (const auto& [name, progress] : progress_)
    FERRY_CHECK(progress.next_bytes == progress.end_bytes, "tensor '{}' lacks {} bytes", name,
                progress.end_bytes - progress.next_bytes);
  file_.seal();
}

void SafetensorsWriter::finish() {
  seal();
  file_.commit();
}

CheckpointWriter::CheckpointWriter(std::filesystem::path directory,
                                   const std::vector<TensorSpec>& tensors,
                                   int64_t max_shard_bytes,
                                   std::string stem)
    : directory_(std::move(directory)), stem_(std::move(stem)) {
  FERRY_CHECK(max_shard_bytes > 0, "max_shard_bytes is {}", max_shard_bytes);
  std::vector<std::vector<TensorSpec>> groups(1);
  int64_t group_bytes = 0;
  for (const TensorSpec& tensor : tensors) {
    const int64_t bytes = bytes_of(tensor);
    if (!groups.back().empty() && bytes > max_shard_bytes - group_bytes) {
      groups.emplace_back();
      group_bytes = 0;
    }
    groups.back().push_back(tensor);
    group_bytes += bytes;
  }
  // Not its parents: a run whose directory was moved away must not come back as a checkpoint alone.
  std::error_code error;
  std::filesystem::create_directory(directory_, error);
  if (error) throw_write_error(directory_, "created", error.value());
  for (size_t i = 0; i < groups.size(); ++i) {
    file_names_.push_back(groups.size() == 1 ? weights_name(stem_)
                                             : fmt::format("{}-{:05}-of-{:05}.safetensors", stem_,
                                                           i + 1, groups.size()));
    for (const TensorSpec& tensor : groups[i]) {
      bool is_new = shard_of_.emplace(tensor.name, i).second;
      FERRY_CHECK(is_new, "tensor '{}' is declared twice", tensor.name);
    }
    shards_.emplace_back(directory_ / file_names_.back(), std::move(groups[i]));
  }
}

size_t CheckpointWriter::shard_of(std::string_view name) const {
  auto found = shard_of_.find(std::string(name));
  FERRY_CHECK(found != shard_of_.end(), "tensor '{}' was not declared", name);
  return found->second;
}

void CheckpointWriter::write(std::string_view name, std::span<const std::byte> piece) {
  shards_[shard_of(name)].write(name, piece);
}

void CheckpointWriter::write_at(std::string_view name,
                                int64_t first_byte,
                                std::span<const std::byte> piece) {
  shards_[shard_of(name)].write_at(name, first_byte, piece);
}

void CheckpointWriter::write_directly(WriteBehind& behind) {
  for (SafetensorsWriter& shard : shards_)
    shard.write_directly(behind);
}

void CheckpointWriter::fill(std::span<const TensorPart> parts, const FillParts& fill) {
  while (!parts.empty()) {
    const size_t shard = shard_of(parts.front().name);
    const auto others = std::ranges::find_if(
        parts, [&](const TensorPart& part) { return shard_of(part.name) != shard; });
    const auto n = static_cast<size_t>(others - parts.begin());
    if (shard != filled_) end_run();
    filled_ = shard;
    shards_[shard].fill(parts.first(n), fill);
    parts = parts.subspan(n);
  }
}

void CheckpointWriter::finish() {
  for (SafetensorsWriter& shard : shards_)
    shard.seal();

  nlohmann::ordered_json index;
  int64_t total_bytes = 0;
  for (const SafetensorsWriter& shard : shards_)
    total_bytes += shard.tensor_bytes();
  index["metadata"]["total_size"] = total_bytes;
  nlohmann::json weight_map =
      nlohmann::json::object();  // sorted by name, as Hugging Face writes it
  for (const auto& [name, shard] : shard_of_)
    weight_map[name] = file_names_[shard];
  index["weight_map"] = weight_map;

  for (SafetensorsWriter& shard : shards_)
    shard.finish();
  if (shards_.size() > 1) write_json_file(directory_ / weights_index_name(stem_), index);

  bool removed = false;
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    const std::string name = entry.path().filename().string();
    const bool is_ours =
        std::find(file_names_.begin(), file_names_.end(), name) != file_names_.end() ||
        (shards_.size() > 1 && name == weights_index_name(stem_));
    if (!is_weights_file(name, stem_) || is_ours) continue;
    std::error_code code;
    std::filesystem::remove(entry.path(), code);
    if (code)
      throw Error(Fault::machine, "files.write",
                  fmt::format("'{}' of an earlier export cannot be removed: {}",
                              entry.path().string(), code.message()),
                  "remove it by hand: readers would take it for this model");
    removed = true;
  }
  if (removed) sync_directory(directory_);
}

}  // namespace ferry
