#include "src/train/checkpoint/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "models/family.h"
#include "simd/kernels.h"
#include "src/base/error.h"
#include "src/base/json/json_reader.h"
#include "src/engine/state/state_files.h"
#include "src/files/hf/hf_directory.h"
#include "src/files/safetensors/safetensors_writer.h"
#include "src/files/write/atomic_file.h"
#include "src/inputs/model_files.h"
#include "src/request/run_plan.h"
#include "src/runs/directory/checkpoints.h"
#include "src/runs/store/pin_record.h"
#include "src/tasks/task.h"
#include "src/train/checkpoint/merge.h"

namespace ferry {
namespace {

namespace fs = std::filesystem;

/** As transformers saves a model: all but the buffers that only old files have. */
std::vector<const StoredTensor*> exported(const HfDirectory& model,
                                          const CheckpointReader& weights) {
  std::vector<const StoredTensor*> tensors = weights.tensors();
  std::erase_if(tensors, [&](const StoredTensor* tensor) {
    return is_old_buffer(model.config().model_type, tensor->name);
  });
  return tensors;
}

bool is_number(StoredType type) {
  return type == StoredType::f64 || type == StoredType::f32 || type == StoredType::f16 ||
         type == StoredType::bf16;
}

/** The type of a tensor in the copy: ids and the like stay as they are. */
StoredType type_in_copy(const StoredTensor& tensor, std::optional<DType> dtype) {
  return dtype && is_number(tensor.type) ? stored_type_of(*dtype) : tensor.type;
}

/** The tensor's bytes in the copy's type, rounded to the nearest even where it is narrower. */
void read_for_copy(const CheckpointReader& weights,
                   const StoredTensor& tensor,
                   std::optional<DType> dtype,
                   const CheckpointReader::TakeBytes& take) {
  if (type_in_copy(tensor, dtype) == tensor.type) return weights.read(tensor, take);
  std::vector<std::byte> rounded;
  weights.read_f32(
      tensor, 0, tensor.n_elements(), [&](std::span<const float> values, int64_t first_element) {
        rounded.resize(values.size() * size_of(*dtype));
        simd::convert(rounded.data(), *dtype, values.data(), DType::f32, std::ssize(values));
        take(rounded, static_cast<size_t>(first_element) * size_of(*dtype));
      });
}

void copy_weights(const CheckpointReader& weights,
                  const std::vector<const StoredTensor*>& tensors,
                  std::optional<DType> dtype,
                  const fs::path& to) {
  std::vector<TensorSpec> specs;
  for (const StoredTensor* tensor : tensors)
    specs.emplace_back(tensor->name, type_in_copy(*tensor, dtype), tensor->shape);
  CheckpointWriter writer(to, specs, kShard_bytes_max);
  for (const StoredTensor* tensor : tensors)
    read_for_copy(weights, *tensor, dtype, [&](std::span<const std::byte> bytes, size_t) {
      writer.write(tensor->name, bytes);
    });
  writer.finish();
}

void check_copy(const CheckpointReader& from,
                const std::vector<const StoredTensor*>& tensors,
                std::optional<DType> dtype,
                const CheckpointReader& copy) {
  for (const StoredTensor* tensor : tensors) {
    const StoredTensor* written = copy.find(tensor->name);
    if (!written || written->type != type_in_copy(*tensor, dtype) ||
        written->shape != tensor->shape)
      throw CheckpointReader::reads_back_differently(tensor->name);
    read_for_copy(from, *tensor, dtype, [&](std::span<const std::byte> bytes, size_t first_byte) {
      CheckpointReader::check_written(*written, first_byte, bytes);
    });
  }
}

}  // namespace

namespace {

HeadKind head_named(const runs::PinRecord& record, const fs::path& checkpoint) {
  for (const TaskKind& kind : task_kinds())
    if (name_of(kind.head) == record.head) return kind.head;
  throw Error(Fault::data, "export.open",
              fmt::format("'{}' is of a model with the head '{}', which this Ferry does not know",
                          checkpoint.string(), record.head),
              "export it with the Ferry that wrote it");
}

/** The master weights of a checkpoint whose states lie on a drive. */
void copy_pinned_weights(const fs::path& from,
                         const runs::PinRecord& record,
                         const HfConfig& config,
                         const std::vector<fs::path>& directories,
                         const fs::path& to) {
  const ModelTable table =
      make_table(config.fields(), {.head = head_named(record, from), .n_labels = record.n_labels});
  runs::PinnedStates pinned(record, runs::find_pinned_store(from, record.store, directories));
  const DriveSource drive = {.about = &pinned.about(), .reader = &pinned.reader()};
  copy_master(table, from, runs::read_checksums(from), drive, to);
}

/** The type of most of a model's bytes. */
DType dtype_of_weights(const CheckpointReader& weights) {
  const auto largest = std::ranges::max_element(
      weights.tensors(), {}, [](const auto* tensor) { return tensor->n_elements(); });
  return is_number((*largest)->type) ? dtype_of((*largest)->type).value_or(DType::f32) : DType::f32;
}

void write_copy(const HfDirectory& model,
                const CheckpointReader& weights,
                std::optional<DType> dtype,
                const fs::path& to) {
  const std::vector<const StoredTensor*> tensors = exported(model, weights);
  copy_weights(weights, tensors, dtype, to);
  check_copy(weights, tensors, dtype, CheckpointReader::open(to));
}

}  // namespace

std::optional<DType> dtype_of_run(const fs::path& from) {
  const fs::path state = from / "state" / runs::kRunStateName;
  if (!path_exists(state)) return {};
  const JsonReader run_state = JsonReader::parse(
      read_text_file(state), {state.string(), "export.open", "take an earlier checkpoint"});
  return dtype_named(run_state.at("identity").text("dtype", "fp32"));
}

bool has_scattered_weights(const HfDirectory& model, const fs::path& from) {
  return model.adapter() || runs::pin_record_of(from);
}

void gather_weights(const HfDirectory& model,
                    const fs::path& from,
                    const std::vector<fs::path>& directories,
                    const fs::path& to) {
  if (model.adapter())
    write_merged(model, DType::f32, to);
  else
    copy_pinned_weights(from, *runs::pin_record_of(from), model.config(), directories, to);
}

void export_model(const fs::path& from,
                  const fs::path& to,
                  std::optional<DType> dtype,
                  const std::vector<fs::path>& directories,
                  const std::function<void(const fs::path&)>& check) {
  const HfDirectory model = open_checkpoint_directory(from);
  model.check_copyable();
  if (!dtype && !model.adapter()) dtype = dtype_of_run(from);
  HfConfig config = model.config();
  if (dtype) config.set_dtype(*dtype);
  AtomicDirectory directory(to);
  if (model.adapter()) {
    write_merged(model, dtype, directory.path());
    if (!dtype) config.set_dtype(dtype_of_weights(CheckpointReader::open(directory.path())));
  } else if (const auto record = runs::pin_record_of(from)) {
    const bool is_rounded = dtype && *dtype != DType::f32;
    const fs::path master = is_rounded ? directory.path() / "master" : directory.path();
    if (is_rounded) make_directories(master);
    copy_pinned_weights(from, *record, model.config(), directories, master);
    if (is_rounded) {
      write_copy(model, CheckpointReader::open(master), dtype, directory.path());
      fs::remove_all(master);
    }
  } else {
    write_copy(model, model.weights(), dtype, directory.path());
  }
  write_config(directory.path(), config);
  model.copy_files(directory.path());
  if (check) check(directory.path());
  directory.commit();
}

}  // namespace ferry
