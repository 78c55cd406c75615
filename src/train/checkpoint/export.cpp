#include "src/train/checkpoint/export.h"

#include <fmt/format.h>

#include <cstring>

#include "models/family.h"
#include "src/base/error.h"
#include "src/engine/state/state_files.h"
#include "src/files/hf/hf_directory.h"
#include "src/files/safetensors/safetensors_writer.h"
#include "src/files/write/atomic_file.h"
#include "src/runs/directory/checkpoints.h"
#include "src/runs/store/pin_record.h"

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

/** Each tensor as it is, whatever its type. */
void copy_weights(const CheckpointReader& weights,
                  const std::vector<const StoredTensor*>& tensors,
                  const fs::path& to) {
  std::vector<TensorSpec> specs;
  for (const StoredTensor* tensor : tensors)
    specs.emplace_back(tensor->name, tensor->type, tensor->shape);
  CheckpointWriter writer(to, specs, kShard_bytes_max);
  for (const StoredTensor* tensor : tensors) {
    weights.read(*tensor, [&](std::span<const std::byte> bytes, size_t) {
      writer.write(tensor->name, bytes);
    });
  }
  writer.finish();
}

void check_copy(const CheckpointReader& from,
                const std::vector<const StoredTensor*>& tensors,
                const CheckpointReader& copy) {
  for (const StoredTensor* tensor : tensors) {
    const StoredTensor* written = copy.find(tensor->name);
    bool is_same = written && written->type == tensor->type && written->shape == tensor->shape;
    from.read(*tensor, [&](std::span<const std::byte> bytes, size_t first_byte) {
      if (!is_same) return;
      const auto beside = written->bytes.subspan(first_byte, bytes.size());
      is_same = std::memcmp(beside.data(), bytes.data(), bytes.size()) == 0;
      CheckpointReader::release_pages(*written, beside);
    });
    if (!is_same)
      throw Error(Fault::machine, "export.check",
                  fmt::format("tensor '{}' reads back differently", tensor->name),
                  "check the disk");
  }
}

}  // namespace

namespace {

HeadKind head_named(const runs::PinRecord& record, const fs::path& checkpoint) {
  for (const HeadKind head :
       {HeadKind::classification, HeadKind::masked_lm, HeadKind::token_classification,
        HeadKind::question_answering, HeadKind::causal_lm})
    if (name_of(head) == record.head) return head;
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

}  // namespace

void export_model(const fs::path& from,
                  const fs::path& to,
                  const std::vector<fs::path>& directories) {
  if (const auto record = runs::pin_record_of(from)) {
    const HfDirectory model = HfDirectory::open_checkpoint(from);
    model.check_copyable();
    AtomicDirectory directory(to);
    copy_pinned_weights(from, *record, model.config(), directories, directory.path());
    write_config(directory.path(), model.config());
    model.copy_files(directory.path());
    return directory.commit();
  }
  const HfDirectory model = HfDirectory::open(from);
  model.check_copyable();
  const CheckpointReader weights = model.weights();
  AtomicDirectory directory(to);
  const std::vector<const StoredTensor*> tensors = exported(model, weights);
  copy_weights(weights, tensors, directory.path());
  write_config(directory.path(), model.config());
  model.copy_files(directory.path());
  check_copy(weights, tensors, CheckpointReader::open(directory.path()));
  directory.commit();
}

}  // namespace ferry
