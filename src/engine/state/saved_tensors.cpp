#include "src/engine/state/saved_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "offload/step/state_pieces.h"

namespace ferry {
namespace {

/** The whole master is the model itself. */
bool is_model(Segment segment, FilesHold holds) {
  return segment == Segment::master && holds == FilesHold::all;
}

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
  const BlockTable& table = model.blocks[block];
  const ParamSpec& spec = table.params[param];
  const auto entry = std::ranges::find_if(model.hf_names, [&](const HfEntry& its) {
    return its.block == block && its.param == param && !its.is_whole();
  });
  if (entry == model.hf_names.end()) return {table.name + "." + spec.name, spec.shape};
  WholeParam whole = {fmt::format("{}.{}", name_of(table.kind), spec.name), spec.shape,
                      first_element_of(model, *entry)};
  whole.shape[0] = entry->file_rows();
  return whole;
}

}  // namespace

std::filesystem::path state_directory(const std::filesystem::path& checkpoint,
                                      Segment segment,
                                      FilesHold holds) {
  return is_model(segment, holds) ? checkpoint : checkpoint / "state";
}

std::string state_stem(const ModelTable& model,
                       Segment segment,
                       simd::Optim optim,
                       FilesHold holds) {
  return std::string(is_model(segment, holds) ? weights_stem(model) : name_of(segment, optim));
}

std::vector<SavedTensor> saved_tensors(const ModelTable& model,
                                       const StepShape& shape,
                                       Segment segment) {
  std::vector<SavedTensor> tensors;
  const bool is_master = segment == Segment::master;
  if (!is_master && simd::spec_of(shape.optim).type == simd::StateType::block8) {
    for (int b = 0; b < shape.n_blocks(); ++b) {
      const BlockTable& block = model.blocks[b];
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
    if (!is_saved(model, entry) || (!is_master && !model.param_of(entry).trainable)) continue;
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
                       first_element_of(model, entry) * width,
                       model.param_of(entry).trainable});
  }
  return tensors;
}

bool is_on_drive(const StepShape& shape, const SavedTensor& tensor) {
  return tensor.is_trained && shape.n_state_pieces(tensor.block) > 0;
}

namespace {

std::unordered_set<std::string> names_on_drive(const StepShape& shape,
                                               const std::vector<SavedTensor>& tensors) {
  std::unordered_set<std::string> names;
  for (const SavedTensor& tensor : tensors)
    if (is_on_drive(shape, tensor)) names.insert(tensor.spec.name);
  return names;
}

}  // namespace

std::string part_name(const std::string& tensor, int64_t first_byte) {
  return fmt::format("{}.from_byte.{}", tensor, first_byte);
}

std::vector<SavedTensor> without_drive(const StepShape& shape, std::vector<SavedTensor> tensors) {
  const auto on_drive = names_on_drive(shape, tensors);
  std::erase_if(tensors, [&](const SavedTensor& tensor) { return is_on_drive(shape, tensor); });
  for (SavedTensor& tensor : tensors) {
    if (!on_drive.contains(tensor.spec.name)) continue;
    tensor.spec.name = part_name(tensor.spec.name, std::exchange(tensor.first_byte, 0));
    tensor.spec.shape = {8 * tensor.range.n_bytes / bits_of(tensor.spec.type)};
  }
  return tensors;
}

namespace {

std::vector<StoredStates::Part> parts_of(const ModelTable& model,
                                         const StepShape& shape,
                                         Segment segment) {
  const std::vector<SavedTensor> tensors = saved_tensors(model, shape, segment);
  const auto on_drive = names_on_drive(shape, tensors);
  std::vector<StoredStates::Part> parts;
  for (const SavedTensor& tensor : tensors)
    if (on_drive.contains(tensor.spec.name))
      parts.push_back({.tensor = tensor.spec.name,
                       .first_byte = tensor.first_byte,
                       .n_bytes = tensor.range.n_bytes,
                       .block = is_on_drive(shape, tensor) ? tensor.block : -1,
                       .offset = tensor.range.offset});
  return parts;
}

}  // namespace

StoredStates stored_states_of(const ModelTable& model, const StepShape& shape) {
  StoredStates stored = {.compute = shape.compute,
                         .optim = shape.optim,
                         .split_master = shape.split_master,
                         .piece_elements = shape.state_piece_elements,
                         .blocks = {},
                         .master = parts_of(model, shape, Segment::master),
                         .states = {}};
  // Those of all states are alike.
  if (const auto states = state_segments(shape.optim); !states.empty())
    stored.states = parts_of(model, shape, states.front());
  for (int b = 0; b < shape.n_blocks(); ++b)
    if (const BlockShape& block = shape.blocks[b]; n_drive_pieces(shape, b) > 0)
      stored.blocks.push_back({.name = block.name,
                               .number = b,
                               .n_elements = block.n_elements,
                               .n_trained_elements = block.n_trained_elements,
                               .has_weights = shape.n_weight_pieces(b) > 0});
  return stored;
}

}  // namespace ferry
