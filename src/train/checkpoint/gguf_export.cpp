#include "src/train/checkpoint/gguf_export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "src/base/error.h"
#include "src/base/print.h"
#include "src/files/gguf/gguf.h"
#include "src/files/gguf/gguf_directory.h"
#include "src/files/write/atomic_file.h"
#include "src/inputs/model_files.h"
#include "src/train/checkpoint/export.h"
#include "src/train/checkpoint/gguf_model.h"

namespace ferry {
namespace {

namespace fs = std::filesystem;

/** Values in memory at once. */
constexpr int64_t kPiece_elements = 1 << 20;

int64_t rows_of_piece(const GgufSource& source) {
  return std::clamp<int64_t>(kPiece_elements / source.n_columns(), 1, source.n_rows());
}

/** The model's row that is this row of the file. */
int64_t row_in_model(const GgufSource& source, int64_t row) {
  const int64_t n = source.head_rows;
  switch (source.order) {
    case GgufRows::neighbours: {
      const int64_t in_head = row % n;
      return row - in_head + in_head / 2 + (in_head % 2) * (n / 2);
    }
    case GgufRows::parts: {
      const int64_t n_heads = source.n_rows() / (3 * n);
      const int64_t part = row / (n_heads * n), head = row / n % n_heads;
      return (head * 3 + part) * n + row % n;
    }
    case GgufRows::same:
      break;
  }
  return row;
}

/** The file's row that is this row of the model: found in another way than row_in_model(), so that
 * a fault in one of them shows. */
int64_t row_in_file(const GgufSource& source, int64_t row) {
  const int64_t n = source.head_rows;
  switch (source.order) {
    case GgufRows::neighbours: {
      const int64_t head = row / n, in_head = row - head * n, half = n / 2;
      return head * n + (in_head < half ? 2 * in_head : 2 * (in_head - half) + 1);
    }
    case GgufRows::parts: {
      const int64_t n_heads = source.n_rows() / (3 * n), block = row / n;
      return (block % 3 * n_heads + block / 3) * n + (row - block * n);
    }
    case GgufRows::same:
      break;
  }
  return row;
}

/** Rows of the model from the first one on, (n_rows, columns), as linear maps have them. */
void read_rows(const GgufSource& source, int64_t first, int64_t n_rows, std::span<float> values) {
  const int64_t columns = source.n_columns();
  if (!source.stored) {
    std::copy_n(source.values.begin() + first * columns, n_rows * columns, values.begin());
  } else if (!source.transposed) {
    CheckpointReader::read_part(*source.stored, first * columns, values);
  } else {
    std::vector<float> part(static_cast<size_t>(n_rows));
    for (int64_t c = 0; c < columns; ++c) {
      CheckpointReader::read_part(*source.stored, c * source.n_rows() + first, part);
      for (int64_t r = 0; r < n_rows; ++r)
        values[static_cast<size_t>(r * columns + c)] = part[static_cast<size_t>(r)];
    }
  }
  if (source.offset == 0) return;
  for (float& value : values)
    value += source.offset;
}

/** Lets the pages of the model's tensor leave the process, so that they do not count as memory. */
void release_model(const GgufSource& source) {
  if (source.stored)
    CheckpointReader::release_pages(*source.stored, 0, source.stored->n_elements());
}

std::span<float> first_of(std::vector<float>& values, int64_t n) {
  values.resize(static_cast<size_t>(n));
  return values;
}

/** Rows of the file from the first one on. */
void read_in_order(const GgufSource& source,
                   int64_t first,
                   int64_t n_rows,
                   std::span<float> values) {
  if (source.order == GgufRows::same) return read_rows(source, first, n_rows, values);
  const auto columns = static_cast<size_t>(source.n_columns());
  for (int64_t i = 0; i < n_rows; ++i)
    read_rows(source, row_in_model(source, first + i), 1,
              values.subspan(static_cast<size_t>(i) * columns, columns));
}

/** Refuses values that the type cannot hold. */
void check_values(const GgufSource& source, std::span<const float> values) {
  constexpr float kHalf_max = 65504;
  const float most = source.spec.type == GgufType::f16    ? kHalf_max
                     : source.spec.type == GgufType::q8_0 ? 127 * kHalf_max
                                                          : std::numeric_limits<float>::max();
  for (const float value : values) {
    if (std::abs(value) <= most) continue;
    const bool is_finite = std::isfinite(value);
    throw Error(Fault::data, "export.gguf",
                fmt::format("tensor '{}' has the value {}{}", source.stored->name, value,
                            is_finite ? fmt::format(", beyond {}", name_of(source.spec.type)) : ""),
                is_finite ? "take another type: --gguf-type bf16"
                          : "the training diverged before these weights: take an earlier one");
  }
}

[[noreturn]] void fail_check(const fs::path& file, std::string_view what) {
  throw Error(Fault::machine, "export.check",
              fmt::format("'{}' reads back differently: {}", file.string(), what),
              "check the disk, and export the model again");
}

/** The greatest difference that rounding to the type makes, for each value of a row. */
void set_bounds(GgufType type, std::span<const float> values, std::span<float> bounds) {
  const auto n = static_cast<size_t>(block_elements(type));
  for (size_t begin = 0; begin < values.size(); begin += n) {
    float most = 0;
    for (size_t i = begin; i < begin + n; ++i)
      most = std::max(most, std::abs(values[i]));
    for (size_t i = begin; i < begin + n; ++i) {
      const float value = std::abs(values[i]);
      if (type == GgufType::f16) bounds[i] = std::max(std::ldexp(value, -11), std::ldexp(1.f, -25));
      if (type == GgufType::bf16) bounds[i] = std::ldexp(value, -8);
      // Half a step, and the rounding of the scale to 16 bits.
      if (type == GgufType::q8_0)
        bounds[i] = most / 127 * 0.5001f + std::ldexp(most, -11) + std::ldexp(127.f, -25);
      if (type == GgufType::f32) bounds[i] = 0;
    }
  }
}

void check_tensor(const fs::path& file, const GgufSource& source, const GgufTensor& written) {
  const GgufTensorSpec& spec = source.spec;
  if (written.type != spec.type || written.shape != spec.shape)
    fail_check(file, fmt::format("tensor '{}' is {} {}, expected {} {}", spec.name,
                                 name_of(written.type), format_shape(written.shape),
                                 name_of(spec.type), format_shape(spec.shape)));
  const int64_t columns = source.n_columns(), step = rows_of_piece(source);
  const auto row_bytes = static_cast<size_t>(bytes_of(spec.type, columns));
  const auto n = static_cast<size_t>(columns);
  std::vector<float> expected, found(n), bounds(n);
  for (int64_t first = 0; first < source.n_rows(); first += step) {
    const int64_t n_rows = std::min(step, source.n_rows() - first);
    read_rows(source, first, n_rows, first_of(expected, n_rows * columns));
    for (int64_t i = 0; i < n_rows; ++i) {
      const auto row = static_cast<size_t>(row_in_file(source, first + i));
      decode_gguf(spec.type, written.bytes.subspan(row * row_bytes, row_bytes), found);
      const std::span<const float> its = std::span(expected).subspan(static_cast<size_t>(i) * n, n);
      set_bounds(spec.type, its, bounds);
      for (size_t c = 0; c < n; ++c)
        if (!(std::abs(found[c] - its[c]) <= bounds[c]))
          fail_check(file, fmt::format("tensor '{}' has {} in row {}, column {}, expected {}",
                                       spec.name, found[c], row, c, its[c]));
    }
    release_model(source);
    CheckpointReader::release_pages({.name = {}, .shape = {}, .bytes = written.bytes},
                                    written.bytes);
  }
}

void check_keys(const fs::path& file, const GgufKeys& expected, const GgufKeys& found) {
  for (const auto& [key, value] : expected) {
    const GgufValue* its = find_key(found, key);
    if (!its) fail_check(file, fmt::format("the key '{}' is not there", key));
    if (*its != value) fail_check(file, fmt::format("the key '{}' has another value", key));
  }
  for (const auto& [key, value] : found)
    if (!find_key(expected, key))
      fail_check(file, fmt::format("the key '{}' does not belong there", key));
}

/** A file that goes away unless it was given its name. */
class PartialFile {
 public:
  explicit PartialFile(const fs::path& target) : target_(target), path_(target) {
    path_ += ".partial";
  }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;
  ~PartialFile() {
    std::error_code error;
    fs::remove(path_, error);
  }
  const fs::path& path() const { return path_; }

  void commit() {
    std::error_code error;
    fs::rename(path_, target_, error);
    if (error)
      throw Error(Fault::machine, "export.gguf",
                  fmt::format("'{}' cannot be named '{}': {}", path_.string(), target_.string(),
                              error.message()),
                  "check the directory's permissions");
    sync_directory(target_.parent_path().empty() ? fs::path(".") : target_.parent_path());
  }

 private:
  fs::path target_, path_;
};

GgufType gguf_type_of_weights(const CheckpointReader& weights) {
  const auto largest = std::ranges::max_element(
      weights.tensors(), {}, [](const StoredTensor* tensor) { return tensor->n_elements(); });
  return (*largest)->type == StoredType::f16    ? GgufType::f16
         : (*largest)->type == StoredType::bf16 ? GgufType::bf16
                                                : GgufType::f32;
}

GgufType gguf_type_of(DType dtype) {
  return dtype == DType::f16    ? GgufType::f16
         : dtype == DType::bf16 ? GgufType::bf16
                                : GgufType::f32;
}

/** The name of the model for people. It is the name of its directory, and a run's final/ and
 * checkpoint-N are called as the run. */
std::string name_of_directory(const fs::path& from) {
  fs::path path = fs::absolute(from).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  const std::string name = path.filename().string();
  const bool is_part = name == "final" || name == "best" || name.starts_with("checkpoint-");
  return is_part && path.has_parent_path() ? path.parent_path().filename().string() : name;
}

}  // namespace

std::optional<GgufType> gguf_type_asked(std::string_view name, std::optional<DType> dtype) {
  for (const GgufType type : {GgufType::f32, GgufType::f16, GgufType::bf16, GgufType::q8_0})
    if (std::ranges::equal(name, name_of(type), {}, {},
                           [](unsigned char c) { return std::tolower(c); }))
      return type;
  if (dtype) return gguf_type_of(*dtype);
  return std::nullopt;
}

void write_gguf(const HfDirectory& model,
                const CheckpointReader& weights,
                GgufType type,
                const std::string& name,
                const fs::path& to) {
  const GgufModel described = describe_gguf(model, weights, type, name);
  std::vector<GgufTensorSpec> specs;
  for (const GgufSource& source : described.tensors)
    specs.push_back(source.spec);
  GgufWriter writer(to, described.keys, specs);
  std::vector<float> values;
  for (const GgufSource& source : described.tensors) {
    const int64_t step = rows_of_piece(source);
    for (int64_t first = 0; first < source.n_rows(); first += step) {
      const int64_t n_rows = std::min(step, source.n_rows() - first);
      read_in_order(source, first, n_rows, first_of(values, n_rows * source.n_columns()));
      check_values(source, values);
      writer.write(source.spec.name, values);
      release_model(source);
    }
  }
  writer.finish();
}

void check_gguf(const HfDirectory& model,
                const CheckpointReader& weights,
                GgufType type,
                const std::string& name,
                const fs::path& path) {
  const GgufModel described = describe_gguf(model, weights, type, name);
  const GgufFile file = GgufFile::open(path);
  check_keys(path, described.keys, file.keys());
  for (const GgufTensor& tensor : file.tensors())
    if (std::ranges::find(described.tensors, tensor.name, [](const GgufSource& source) {
          return source.spec.name;
        }) == described.tensors.end())
      fail_check(path, fmt::format("tensor '{}' does not belong there", tensor.name));
  for (const GgufSource& source : described.tensors) {
    const GgufTensor* written = file.find(source.spec.name);
    if (!written) fail_check(path, fmt::format("tensor '{}' is not there", source.spec.name));
    check_tensor(path, source, *written);
  }
}

namespace {

/** The file as a model, in the cache until this goes away. */
class AsModel {
 public:
  /** Its own tokenizer counts, whatever lies beside the file. */
  explicit AsModel(const fs::path& file)
      : directory_(gguf_directory(file, /*takes_beside=*/false)) {}
  AsModel(const AsModel&) = delete;
  AsModel& operator=(const AsModel&) = delete;
  ~AsModel() {
    std::error_code error;
    fs::remove_all(directory_, error);
  }
  const fs::path& directory() const { return directory_; }

 private:
  fs::path directory_;
};

/** A file that cannot be read as a model here has still been compared value by value. */
void ask(const fs::path& file, const std::function<void(const fs::path& written)>& check) {
  std::optional<AsModel> model;
  try {
    model.emplace(file);
  } catch (const Error& error) {
    log_line(fmt::format("not compared with what it was made from: {}", error.what()));
    return;
  }
  check(model->directory());
}

}  // namespace

void export_gguf(const fs::path& from,
                 const fs::path& to,
                 std::optional<GgufType> type,
                 const std::vector<fs::path>& directories,
                 const std::function<void(const fs::path& written)>& check) {
  const HfDirectory model = open_checkpoint_directory(from);
  model.check_copyable();
  if (!to.parent_path().empty()) make_directories(to.parent_path());
  if (!type)
    if (const auto dtype = dtype_of_run(from); dtype && !model.adapter())
      type = gguf_type_of(*dtype);
  if (!type)
    type = path_exists(model.base() / kPinRecordName) ? GgufType::f32
                                                      : gguf_type_of_weights(model.weights());
  const std::string name = name_of_directory(from);
  const auto make = [&](const CheckpointReader& weights) {
    PartialFile partial(to);
    write_gguf(model, weights, *type, name, partial.path());
    check_gguf(model, weights, *type, name, partial.path());
    if (check) ask(partial.path(), check);
    partial.commit();
  };
  if (!has_scattered_weights(model, from)) return make(model.weights());
  AtomicDirectory whole(to.string() + ".weights");  // never committed: it goes away
  gather_weights(model, from, directories, whole.path());
  make(CheckpointReader::open(whole.path()));
}

}  // namespace ferry
