#include "src/engine/state/weights.h"

#include <fmt/format.h>
#include <tbb/parallel_for.h>
#include <cstring>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "models/adapters/bottleneck.h"
#include "models/adapters/lora.h"
#include "models/core/nested_scales.h"
#include "models/family.h"
#include "simd/kernels.h"
#include "simd/philox.h"
#include "simd/random.h"
#include "src/base/crc32c.h"
#include "src/base/error.h"
#include "src/base/process/movement.h"
#include "src/engine/state/file_order.h"
#include "src/files/hf/peft_config.h"
#include "src/files/safetensors/safetensors_writer.h"
#include "src/files/tensor_codes.h"

namespace ferry {
namespace {

/** 53 random bits of two words. */
double random_bits(const simd::PhiloxWords& words, int first) {
  const uint64_t draw = uint64_t{words.word[first]} << 32 | words.word[first + 1];
  return static_cast<double>(draw >> 11);
}

/** Two normal deviates by Box and Muller's transform. `pair` counts in the parameter whose key it
 * is: neither pieces nor threads decide a value. */
std::pair<double, double> normal_deviates(uint64_t pair, uint64_t key) {
  const simd::PhiloxWords words = simd::philox(pair, key);
  const auto uniform = [&](int first) { return (random_bits(words, first) + 0.5) * 0x1p-53; };
  const double radius = std::sqrt(-2.0 * std::log(uniform(0)));
  const double angle = 2.0 * std::numbers::pi * uniform(2);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

/** Two values between -1 and 1, with the same count. */
std::pair<double, double> uniform_deviates(uint64_t pair, uint64_t key) {
  const simd::PhiloxWords words = simd::philox(pair, key);
  const auto uniform = [&](int first) { return random_bits(words, first) * 0x1p-52 - 1; };
  return {uniform(0), uniform(2)};
}

/** The key of a tensor's draws. */
uint64_t key_of(uint64_t seed, const std::string& hf_name) {
  uint64_t key = simd::splitmix64(seed);
  for (char c : hf_name)
    key = simd::splitmix64(key ^ static_cast<unsigned char>(c));
  return key;
}

/** Fills values that begin at an even element with `scale` times deviates. */
void draw(std::span<float> values,
          int64_t first_element,
          double scale,
          uint64_t key,
          std::pair<double, double> (*deviates)(uint64_t pair, uint64_t key)) {
  const auto first_pair = static_cast<uint64_t>(first_element / 2);
  tbb::parallel_for(size_t{0}, (values.size() + 1) / 2, [&](size_t pair) {
    const auto [first, second] = deviates(first_pair + pair, key);
    const size_t i = 2 * pair;
    values[i] = static_cast<float>(scale * first);
    if (i + 1 < values.size()) values[i + 1] = static_cast<float>(scale * second);
  });
}

/** The names under which the checkpoint has this entry: several where it has copies. */
std::vector<std::string> stored_names(const CheckpointReader& checkpoint, const HfEntry& entry) {
  std::vector<std::string> names = names_of(entry);
  std::erase_if(names, [&](const std::string& name) { return !checkpoint.find(name); });
  return names;
}

/** Values of one row as the weights in memory stand for them, but for nested scales, which all rows
 * decide on. */
void round_row(const StoredMatrix& part, std::span<float> row) {
  if (has_blocks(part.storage)) return;  // the file has these values
  std::vector<std::byte> stored(row.size() * sizeof(float));
  if (!is_quantised(part.storage)) {
    simd::convert(stored.data(), part.type, row.data(), DType::f32, std::ssize(row));
    simd::convert(row.data(), DType::f32, stored.data(), part.type, std::ssize(row));
    return;
  }
  const StoredMatrix matrix =
      stored_matrix(part.is_nested() ? Storage::nf4 : part.storage, 1, std::ssize(row), part.type);
  std::vector<float> scales(static_cast<size_t>(matrix.row_scales));
  quantise(matrix, row, stored.data(), scales.data());
  dequantise(matrix, stored.data(), scales.data(), 0, row);
}

/** The part that has a row of the matrix. */
const StoredMatrix& part_of(const StoredParts& parts, int64_t row) {
  const auto is_behind = [&](const StoredMatrix& part) { return row < part.first_row + part.rows; };
  const auto found = std::ranges::find_if(parts, is_behind);
  FERRY_CHECK(found != parts.end(), "row {} of a matrix with fewer", row);
  return *found;
}

/** The norms of the rows of the matrix that an adapter's vector is for. They come from its file,
 * since of several ranks each has a part of the weights. */
void set_row_norms(const ModelTable& model,
                   const HfEntry& entry,
                   const CheckpointReader& file,
                   Segments& segments) {
  const std::string module = adapted_module_of(entry);
  const auto matrix = std::ranges::find_if(model.hf_names, [&](const HfEntry& of) {
    return of.block == entry.block && !of.is_delta && module_of(of) == module &&
           model.param_of(of).shape.size() == 2;
  });
  FERRY_CHECK(matrix != model.hf_names.end(), "'{}' is for no matrix", entry.hf_name);
  const std::vector<std::string> names = stored_names(file, *matrix);
  if (names.empty())
    throw Error(Fault::data, "model.load",
                fmt::format("'{}' has no tensor '{}'", file.path().string(), matrix->hf_name),
                fmt::format("is it a {} model?", model.family));
  const StoredTensor& stored = file.get(names.front(), matrix->hf_shape);
  const FileOrder order(model, *matrix);
  EntryWriter writer(model, entry, segments);
  const StoredParts parts = model.param_of(*matrix).stored(model.compute);
  std::vector<float> strip, norms;
  for (int64_t row = 0; row < order.rows(); row += order.strip_rows()) {
    const int64_t n_rows = std::min(order.strip_rows(), order.rows() - row);
    strip.resize(static_cast<size_t>(n_rows * order.columns()));
    norms.resize(static_cast<size_t>(n_rows));
    order.read_strip(
        row, strip,
        [&](int64_t first_element, std::span<float> values) {
          CheckpointReader::read_part(stored, first_element, values);
        },
        [&](int64_t first_element, int64_t n_elements) {
          CheckpointReader::release_pages(stored, first_element, n_elements);
        });
    tbb::parallel_for(int64_t{0}, n_rows, [&](int64_t i) {
      const std::span its = std::span(strip).subspan(static_cast<size_t>(i * order.columns()),
                                                     static_cast<size_t>(order.columns()));
      round_row(part_of(parts, matrix->row_begin + row + i), its);
      norms[static_cast<size_t>(i)] =
          static_cast<float>(std::sqrt(simd::square_sum(its.data(), DType::f32, std::ssize(its))));
    });
    writer.write(norms);
    note_movement();
  }
}

/** Initialises in pieces: a whole embedding's values beside its segments would be memory that no
 * plan knows. `file`: the model's, or null where it has none. */
void initialise(const ModelTable& model,
                const HfEntry& entry,
                const CheckpointReader* file,
                uint64_t seed,
                Segments& segments) {
  if (file && entry.hf_name.ends_with(kLoraMagnitude))
    return set_row_norms(model, entry, *file, segments);
  constexpr int64_t kPiece = 1 << 19;  // elements, in whole pairs
  const ParamSpec& spec = model.param_of(entry);
  const int64_t n_elements = extent_of(model, entry).n_elements;
  const int64_t first_element = first_element_of(model, entry);
  EntryWriter writer(model, entry, segments);
  const double std = static_cast<double>(model.init_std) * spec.normal.factor;
  const uint64_t key = key_of(seed, entry.hf_name);
  const std::optional<double> bound = glorot_bound_of(entry);
  std::vector<float> values(static_cast<size_t>(std::min(kPiece, n_elements)),
                            spec.init == Init::ones ? 1.0f : 0.0f);
  for (int64_t at = 0; at < n_elements; at += kPiece) {
    const std::span piece =
        std::span(values).first(static_cast<size_t>(std::min(kPiece, n_elements - at)));
    if (bound) {
      draw(piece, first_element + at, *bound, key, uniform_deviates);
    } else if (spec.init == Init::normal) {
      draw(piece, first_element + at, std, key, normal_deviates);
    } else if (spec.init == Init::fan_in) {
      draw(piece, first_element + at, 1 / std::sqrt(static_cast<double>(spec.row_values())), key,
           uniform_deviates);
    } else if (spec.init == Init::half || spec.init == Init::rows) {
      draw(piece, first_element + at, 0.5, key, uniform_deviates);
    }
    writer.write(piece);
  }
  const int64_t zero_row = spec.normal.zero_row;
  if (zero_row < entry.row_begin || zero_row >= entry.row_begin + entry.rows) return;
  segments.set_values(entry.block, spec, zero_row * spec.row_values(),
                      std::vector<float>(static_cast<size_t>(spec.row_values())));
}

/** Sets the rows of a parameter that starts by another one's, which is there already. */
void start_by_rows(const ModelTable& model, const HfEntry& entry, Segments& segments) {
  const ParamSpec& spec = model.param_of(entry);
  if (spec.init != Init::rows) return;
  const RowsInit& from = *spec.start_rows;
  const ParamSpec& other = model.blocks[from.block].params[from.param];
  const int64_t columns = spec.row_values();
  std::vector<float> sum(static_cast<size_t>(columns)), row(sum.size());
  for (int64_t r = entry.row_begin; r < entry.row_begin + entry.rows; ++r) {
    const std::vector<int32_t>& rows = from.rows[static_cast<size_t>(r)];
    if (rows.empty()) continue;
    std::ranges::fill(sum, 0.0f);
    for (const int32_t of : rows) {
      segments.get_values(from.block, other, of * columns, row);
      std::ranges::transform(sum, row, sum.begin(), std::plus());
    }
    for (float& value : sum)
      value /= static_cast<float>(rows.size());
    segments.set_values(entry.block, spec, r * columns, sum);
  }
}

/** One NaN would be in every loss from the first step on, and in the model that is saved. */
void check_values(std::span<const float> values,
                  int64_t first_element,
                  DType compute,
                  const std::string& name,
                  const CheckpointReader& checkpoint) {
  constexpr float kHalf_max = 65504.0f;
  const bool is_half = compute == DType::f16;
  // The square sum is finite exactly where all values are, and quick.
  if (!is_half && std::isfinite(simd::square_sum(values.data(), DType::f32,
                                                 static_cast<int64_t>(values.size()))))
    return;
  const float most = is_half ? kHalf_max : std::numeric_limits<float>::max();
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::fabs(values[i]) <= most) continue;
    throw Error(
        Fault::data, "model.load",
        fmt::format("'{}': tensor '{}' has the value {} at element {}", checkpoint.path().string(),
                    name, values[i], first_element + static_cast<int64_t>(i)),
        std::isfinite(values[i]) ? "fp16 ends at 65504: use dtype = bf16 or fp32"
                                 : "the model is broken: fetch or export it again");
  }
}

/** A head of the same kind for another number of labels: the first dimension alone differs. */
bool is_other_head(const StoredTensor& stored, const HfEntry& entry, const ModelTable& model) {
  const auto& wanted = entry.hf_shape;
  return entry.optional && wanted[0] == model.n_labels && stored.shape.size() == wanted.size() &&
         stored.shape[0] != wanted[0] &&
         std::equal(wanted.begin() + 1, wanted.end(), stored.shape.begin() + 1);
}

/** Throws where a copy differs from the tensor: nobody knows which one the model was trained with.
 */
void check_copy(const CheckpointReader& checkpoint,
                const StoredTensor& tensor,
                const StoredTensor& copy) {
  std::vector<float> beside;
  checkpoint.read_f32(tensor, [&](std::span<const float> values, int64_t first_element) {
    beside.resize(values.size());
    CheckpointReader::read_part(copy, first_element, beside);
    CheckpointReader::release_pages(copy, first_element, std::ssize(values));
    if (std::memcmp(values.data(), beside.data(), values.size_bytes()) != 0)
      throw Error(
          Fault::data, "model.load",
          fmt::format("'{}': tensors '{}' and '{}' are one in this model, and differ",
                      checkpoint.path().string(), tensor.name, copy.name),
          "if the model was trained with both, set tie_word_embeddings to false in config.json; "
          "else remove one of them");
  });
}

/** Tensors that say how others are to be read, or that are added to them: without them the model is
 * another one. */
void refuse_tensors_of_others(const CheckpointReader& checkpoint,
                              const std::vector<std::string>& unused) {
  constexpr std::string_view kQuantised[] = {
      "qweight", "qzeros",       "g_idx",         "absmax",      "quant_map", "quant_state",
      "SCB",     "weight_scale", "weight_packed", "input_scale", "_blocks"};
  constexpr std::string_view kAdapters[] = {"lora_", "lokr_",      "loha_",   "hada_",
                                            "vera_", "base_layer", "adapter", "prompt_encoder"};
  const auto refuse = [&](const std::string& name, const char* what, const char* hint) {
    throw Error(Fault::data, "model.load",
                fmt::format("'{}': tensor '{}' is of {}", checkpoint.path().string(), name, what),
                hint);
  };
  for (const std::string& name : unused) {
    const auto has = [&](std::string_view part) { return name.find(part) != name.npos; };
    if (std::ranges::any_of(kQuantised, has))
      refuse(name, "quantised weights",
             "take the model's weights as they were before: Ferry trains no quantised ones");
    if (std::ranges::any_of(kAdapters, has))
      refuse(name, "an adapter", "merge it into the weights first, as peft's merge_and_unload()");
  }
}

std::vector<std::string> unused_names(const ModelTable& model, const CheckpointReader& checkpoint) {
  std::unordered_set<std::string> known(model.hf_ignored.begin(), model.hf_ignored.end());
  for (const HfEntry& entry : model.hf_names)
    for (std::string& name : names_of(entry))
      known.insert(std::move(name));
  std::vector<std::string> unused;
  for (const StoredTensor* tensor : checkpoint.tensors())
    if (!known.contains(tensor->name) && !is_old_buffer(model.family, tensor->name))
      unused.push_back(tensor->name);
  return unused;
}

}  // namespace

EntryExtent extent_of(const ModelTable& model, const HfEntry& entry) {
  const ParamSpec& param = model.param_of(entry);
  return {.begin = param.offset + entry.row_begin * param.row_values(),
          .n_elements = entry.rows * param.row_values()};
}

int64_t first_element_of(const ModelTable& model, const HfEntry& entry) {
  return entry.file_row * model.param_of(entry).row_values();
}

namespace {

/** Codes of nested scales have the values that Ferry's have. */
bool has_usual_maps(const StoredMatrix& part, const StoredTensor& stored) {
  if (!part.is_nested()) return true;
  const TensorCodes::NestedScales its = stored.codes->nested_scales();
  return std::ranges::equal(its.value_map, kNf4) && std::ranges::equal(its.scale_map, nested_map());
}

/** The part of a parameter that takes the codes of a tensor as the file has them; nothing where it
 * takes values. */
std::optional<StoredMatrix> part_of_codes(const ModelTable& model,
                                          const HfEntry& entry,
                                          const StoredTensor& stored) {
  const ParamSpec& param = model.param_of(entry);
  if (!param.storage.is_quantised()) return std::nullopt;
  const StoredParts parts = param.stored(model.compute);
  const auto part = std::ranges::find_if(parts, [&](const StoredMatrix& its) {
    return entry.row_begin >= its.first_row && entry.row_begin < its.first_row + its.rows;
  });
  const std::string_view in_file = stored.codes ? stored.codes->storage() : std::string_view();
  if (in_file == name_of(part->storage) && has_usual_maps(*part, stored)) return *part;
  const bool other_scales =
      part->is_nested() && stored.codes && !stored.codes->nested_scales().scales.empty();
  if (has_blocks(part->storage) || other_scales)
    throw Error(
        Fault::data, "model.load",
        fmt::format("tensor '{}' is not stored as {}", entry.hf_name, name_of(part->storage)),
        has_blocks(part->storage)
            ? "the files are not those that the run began with; or take values: "
              "--quantization none"
            : "its scales have other blocks: --double-quantization false");
  return std::nullopt;
}

/** Copies the rows of a tensor as they are, in pieces of a megabyte. */
void read_codes(const ModelTable& model,
                const HfEntry& entry,
                const CheckpointReader& checkpoint,
                const StoredTensor& stored,
                const StoredMatrix& part,
                Segments& segments) {
  constexpr int64_t kPiece_bytes = 1 << 20;
  const ParamSpec& param = model.param_of(entry);
  const int64_t first = entry.row_begin - part.first_row,
                step = std::clamp(kPiece_bytes / part.row_bytes, int64_t{1}, entry.rows);
  std::vector<std::byte> codes;
  for (int64_t row = 0; row < entry.rows; row += step) {
    const int64_t n = std::min(step, entry.rows - row);
    codes.resize(static_cast<size_t>(n * part.row_bytes));
    stored.codes->read_rows(row, n, codes);
    segments.set_codes(entry.block, param, part, first + row, codes);
    note_movement();
  }
  checkpoint.release_pages(stored, stored.bytes);
  if (!part.is_nested()) return;
  const TensorCodes::NestedScales scales = stored.codes->nested_scales();
  std::vector<float> nested = {scales.offset};
  nested.insert(nested.end(), scales.scales.begin(), scales.scales.end());
  segments.set_nested_scales(entry.block, param, part, scales.codes, nested);
}

}  // namespace

void read_entry(const ModelTable& model,
                const HfEntry& entry,
                const CheckpointReader& checkpoint,
                const StoredTensor& stored,
                const CheckpointReader::TakeValues& look,
                Segments& segments) {
  if (const auto part = part_of_codes(model, entry, stored)) {
    checkpoint.read_f32(stored, look);
    return read_codes(model, entry, checkpoint, stored, *part, segments);
  }
  const FileOrder order(model, entry);
  EntryWriter writer(model, entry, segments);
  checkpoint.read_f32(stored, first_element_of(model, entry), extent_of(model, entry).n_elements,
                      [&](std::span<const float> values, int64_t first_element) {
                        look(values, first_element);
                        if (order.is_ours()) writer.write(values);
                      });
  if (order.is_ours()) return;
  std::vector<float> strip;
  for (int64_t row = 0; row < order.rows(); row += order.strip_rows()) {
    const int64_t n_rows = std::min(order.strip_rows(), order.rows() - row);
    strip.resize(static_cast<size_t>(n_rows * order.columns()));
    order.read_strip(
        row, strip,
        [&](int64_t first_element, std::span<float> values) {
          CheckpointReader::read_part(stored, first_element, values);
        },
        [&](int64_t first_element, int64_t n_elements) {
          CheckpointReader::release_pages(stored, first_element, n_elements);
        });
    writer.write(strip);
    note_movement();
  }
}

namespace {

/** A file of fewer layers than its configuration says is of another model, or was cut short. */
std::string why_missing(const ModelTable& model,
                        const CheckpointReader& checkpoint,
                        const HfEntry& missing) {
  const auto is_layer = [&](int block) { return model.blocks[block].kind == BlockKind::layer; };
  std::set<int> there;
  for (const HfEntry& entry : model.hf_names)
    if (is_layer(entry.block) && !stored_names(checkpoint, entry).empty())
      there.insert(entry.block);
  const auto n_layers = std::ranges::count(model.blocks, BlockKind::layer, &BlockTable::kind);
  if (is_layer(missing.block) && !there.empty() && std::ssize(there) < n_layers)
    return fmt::format("config.json says {} layers, and the file has {}: do they belong together?",
                       n_layers, there.size());
  return fmt::format("is it a {} model?", model.family);
}

}  // namespace

void check_adapter(const ModelTable& model, const CheckpointReader& adapter) {
  constexpr const char* kHint = "merge the adapter into its model with peft, and give that";
  std::unordered_set<std::string> known;
  std::unordered_map<std::string, const HfEntry*> tied;
  for (const HfEntry& entry : model.hf_names) {
    if (entry.is_delta) known.insert(entry.hf_name);
    for (const std::string& name : entry.tied_names)
      tied.emplace(kPeftPrefix + name, &entry);
  }
  for (const StoredTensor* tensor : adapter.tensors()) {
    if (known.contains(tensor->name)) continue;
    const auto found = tied.find(tensor->name);
    if (found == tied.end())
      throw Error(Fault::data, "adapter.open",
                  fmt::format("'{}': tensor '{}' has no place in the model",
                              adapter.path().string(), tensor->name),
                  kHint);
    const HfEntry& entry = *found->second;
    if (!entry.is_delta)
      throw Error(Fault::data, "adapter.open",
                  fmt::format("'{}' trains '{}' apart from '{}', and the model has both as one",
                              adapter.path().string(), tensor->name, entry.hf_name),
                  kHint);
    check_copy(adapter, adapter.get(entry.hf_name, entry.hf_shape),
               adapter.get(tensor->name, entry.hf_shape));
  }
}

std::string_view weights_stem(const ModelTable& model) {
  return model.has_deltas ? kAdapterStem : "model";
}

LoadReport load_weights(const ModelTable& model,
                        CheckpointReader checkpoint_file,
                        uint64_t seed,
                        Segments& segments,
                        const CheckpointReader* adapter) {
  LoadReport report;
  FrozenWeights frozen(std::move(checkpoint_file));
  const CheckpointReader& model_file = frozen.file();
  report.unused = unused_names(model, model_file);
  refuse_tensors_of_others(model_file, report.unused);
  if (adapter) check_adapter(model, *adapter);
  uint32_t checksum = 0;  // of an entry with those before it that are parts of its tensor
  std::vector<const HfEntry*> by_rows;  // which wait for all others
  for (const HfEntry& entry : model.hf_names) {
    const CheckpointReader& checkpoint = adapter && entry.is_delta ? *adapter : model_file;
    const std::vector<std::string> names = stored_names(checkpoint, entry);
    if (names.empty()) {
      if (!entry.optional)
        throw Error(
            Fault::data, "model.load",
            fmt::format("'{}' has no tensor '{}'", checkpoint.path().string(), entry.hf_name),
            why_missing(model, checkpoint, entry));
      if (!adapter && !is_saved(model, entry))
        throw Error(Fault::data, "model.load",
                    fmt::format("'{}' has no tensor '{}', which would be drawn, stay as it is and "
                                "be in no adapter",
                                checkpoint.path().string(), entry.hf_name),
                    fmt::format("train it whole: --modules-to-save {}",
                                entry.hf_name.substr(0, entry.hf_name.find_last_of('.'))));
      initialise(model, entry, &model_file, seed, segments);
      by_rows.push_back(&entry);
      // An adapter that begins is always drawn.
      const bool is_new_adapter = !adapter && entry.is_delta && entry.also_named.empty();
      if (entry.is_first_part() && !is_new_adapter) report.initialised.push_back(entry.hf_name);
      continue;
    }
    const std::string& name = names.front();
    const StoredTensor* stored = checkpoint.find(name);
    if (is_other_head(*stored, entry, model)) {
      initialise(model, entry, &model_file, seed, segments);
      by_rows.push_back(&entry);
      report.redrawn.push_back(fmt::format("{} of shape {}, expected {}", name,
                                           format_shape(stored->shape),
                                           format_shape(entry.hf_shape)));
      continue;
    }
    const bool is_read_again =
        is_saved(model, entry) && segments.lacks_master(model.param_of(entry));
    if (entry.is_first_part()) checksum = 0;
    read_entry(
        model, entry, checkpoint, checkpoint.get(name, entry.hf_shape),
        [&](std::span<const float> values, int64_t first_element) {
          check_values(values, first_element, model.compute, name, checkpoint);
          if (is_read_again) checksum = crc32c(std::as_bytes(values), checksum);
        },
        segments);
    if (!entry.is_last_part()) continue;
    if (is_read_again) frozen.add(entry.hf_name, *stored, checksum);
    for (const std::string& copy : std::span(names).subspan(1))
      check_copy(checkpoint, *stored, checkpoint.get(copy, entry.hf_shape));
  }
  for (const HfEntry* entry : by_rows)
    start_by_rows(model, *entry, segments);
  if (!frozen.empty()) segments.set_frozen(std::move(frozen));
  return report;
}

void initialise_weights(const ModelTable& model, uint64_t seed, Segments& segments) {
  for (const HfEntry& entry : model.hf_names)
    initialise(model, entry, /*file=*/nullptr, seed, segments);
  for (const HfEntry& entry : model.hf_names)
    start_by_rows(model, entry, segments);
}

namespace {

/** The names under which an entry is written. PEFT wants each name of a tensor that is tied. */
std::vector<std::string> written_names(const ModelTable& model, const HfEntry& entry) {
  std::vector<std::string> names = {entry.hf_name};
  if (model.has_deltas)
    for (const std::string& tied : entry.tied_names)
      names.push_back(kPeftPrefix + tied);
  return names;
}

}  // namespace

std::vector<TensorSpec> hf_tensors(const ModelTable& model, DType dtype) {
  std::vector<TensorSpec> tensors;
  for (const HfEntry& entry : model.hf_names)
    if (is_saved(model, entry) && entry.is_first_part())
      for (const std::string& name : written_names(model, entry))
        tensors.push_back({name, dtype, entry.hf_shape});
  return tensors;
}

void save_weights(const ModelTable& model,
                  const Segments& segments,
                  const std::filesystem::path& directory,
                  DType dtype,
                  int64_t max_shard_bytes) {
  constexpr int64_t kPiece = 65536;  // elements
  CheckpointWriter writer(directory, hf_tensors(model, dtype), max_shard_bytes,
                          std::string(weights_stem(model)));
  std::vector<float> values(kPiece), strip;
  std::vector<std::byte> rounded;
  const FrozenWeights& frozen = segments.frozen();
  uint32_t checksum = 0;  // of an entry with those before it that are parts of its tensor
  const auto round = [&](std::span<const float> piece) {
    rounded.resize(piece.size() * size_of(dtype));
    simd::convert(rounded.data(), dtype, piece.data(), DType::f32, std::ssize(piece));
    return std::span<const std::byte>(rounded);
  };
  for (const HfEntry& entry : model.hf_names) {
    if (!is_saved(model, entry)) continue;
    const ParamSpec& param = model.param_of(entry);
    const int64_t n_elements = entry.rows * param.row_values(),
                  first = entry.row_begin * param.row_values();
    const bool is_in_file = segments.lacks_master(param) && frozen.has(entry.hf_name);
    const std::vector<std::string> names = written_names(model, entry);
    const FileOrder order(model, entry);
    if (!is_in_file && !order.is_ours()) {
      for (int64_t row = 0; row < order.rows(); row += order.strip_rows()) {
        const int64_t n_rows = std::min(order.strip_rows(), order.rows() - row);
        strip.resize(static_cast<size_t>(n_rows * order.columns()));
        segments.get_values(entry.block, param, first + row * order.columns(), strip);
        order.write_strip(row, strip, [&](int64_t first_element, std::span<const float> piece) {
          const auto bytes = round(piece);
          for (const std::string& name : names)
            writer.write_at(name, first_element * static_cast<int64_t>(size_of(dtype)), bytes);
        });
      }
      continue;
    }
    if (entry.is_first_part()) checksum = 0;
    for (int64_t at = 0; at < n_elements; at += kPiece) {
      const auto n = static_cast<size_t>(std::min(kPiece, n_elements - at));
      const std::span piece = std::span(values).first(n);
      if (is_in_file) {
        frozen.read(entry.hf_name, first_element_of(model, entry) + at, piece);
        checksum = crc32c(std::as_bytes(piece), checksum);
      } else {
        segments.get_values(entry.block, param, first + at, piece);
      }
      const auto bytes = round(piece);
      for (const std::string& name : names)
        writer.write(name, bytes);
    }
    if (is_in_file && entry.is_last_part()) frozen.check(entry.hf_name, checksum);
  }
  writer.finish();
}

}  // namespace ferry
