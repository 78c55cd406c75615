#include "src/train/checkpoint/merge.h"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "models/adapters/lora.h"
#include "models/family.h"
#include "simd/kernels.h"
#include "src/base/error.h"
#include "src/engine/state/weights.h"
#include "src/files/safetensors/safetensors_writer.h"
#include "src/request/adapters.h"
#include "src/request/prompt_table.h"
#include "src/tasks/task.h"

namespace ferry {
namespace {

/** An adapter's summand of a matrix of the file, (left)^T right. Where the file has the matrix the
 * other way round, left and right have changed places. With DoRA the sum is scaled, each output by
 * itself. */
struct Delta {
  int64_t rank = 0, rows = 0, columns = 0;  ///< of the file's matrix
  std::vector<float> left, right;           ///< (rank, rows), times s, and (rank, columns)
  bool transposed = false;                  ///< an output is a column of the file's matrix
  std::vector<float> scale;                 ///< of each output; empty: 1

  int64_t output_of(int64_t element) const {
    return transposed ? element % columns : element / columns;
  }
  void apply(std::span<float> values, int64_t first_element) const {
    add_to(values, first_element);
    if (scale.empty()) return;
    for (size_t i = 0; i < values.size(); ++i)
      values[i] *= scale[static_cast<size_t>(output_of(first_element + static_cast<int64_t>(i)))];
  }

  void add_to(std::span<float> values, int64_t first_element) const {
    const int64_t end = first_element + std::ssize(values);
    const int64_t first_row = first_element / columns, n_rows = (end - 1) / columns + 1 - first_row;
    tbb::parallel_for(int64_t{0}, n_rows, [&](int64_t i) {
      const int64_t row = first_row + i, begin = std::max(first_element, row * columns),
                    stop = std::min(end, (row + 1) * columns);
      float* to = values.data() + (begin - first_element);
      for (int64_t k = 0; k < rank; ++k) {
        const float factor = left[static_cast<size_t>(k * rows + row)];
        const float* from = right.data() + k * columns + (begin - row * columns);
        for (int64_t c = 0; c < stop - begin; ++c)
          to[c] += factor * from[c];
      }
    });
  }
};

std::vector<float> values_of(const CheckpointReader& file,
                             const std::string& name,
                             std::span<const int64_t> shape) {
  const StoredTensor& tensor = file.get(name, shape);
  std::vector<float> all(static_cast<size_t>(tensor.n_elements()));
  file.read_f32(tensor, [&](std::span<const float> values, int64_t first) {
    std::ranges::copy(values, all.begin() + first);
  });
  return all;
}

std::vector<float> transposed(const std::vector<float>& matrix, int64_t rows, int64_t columns) {
  std::vector<float> out(matrix.size());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      out[static_cast<size_t>(c * rows + r)] = matrix[static_cast<size_t>(r * columns + c)];
  return out;
}

class Merger {
 public:
  Merger(const HfDirectory& model, std::optional<DType> dtype)
      : dtype_(dtype), base_(model.weights()), adapter_(model.adapter_weights()) {
    if (model.adapter()->type == PeftType::prompt_tuning)
      throw Error(Fault::usage, "export.merge",
                  fmt::format("the virtual tokens of '{}' are no part of any weight",
                              model.path().string()),
                  "use the adapter as it is: ferry, PEFT and vLLM take it beside its model");
    if (is_bottleneck(model.adapter()->type))
      throw Error(
          Fault::usage, "export.open",
          fmt::format("'{}' is an adapter with activations of its own ({}), which no sum of "
                      "weights stands for",
                      model.path().string(), name_of(model.adapter()->type)),
          "use it as it is: ferry eval, predict, generate and serve take it, with its model");
    const auto task = kind_of_model(model.config()).of_model(model.config(), {});
    const JsonReader& fields = model.config().fields();
    ModelTable table = make_table(fields, {.head = head_in_files(family_of(fields), task->head()),
                                           .n_labels = task->n_labels()});
    if (task->head() == HeadKind::prompt) add_prompt(model.config(), task->n_labels(), {}, table);
    const std::vector<HfEntry> entries = table.hf_names;
    add_adapter_of(model, table);
    check_adapter(table, adapter_);
    for (const HfEntry& entry : entries)
      if (entry.is_first_part()) add(entry, *model.adapter());
  }

  void write(const std::filesystem::path& to) {
    std::vector<TensorSpec> specs;
    for (const Tensor& tensor : tensors_)
      specs.emplace_back(tensor.name, type_of(tensor), tensor.stored->shape);
    CheckpointWriter writer(to, specs, kShard_bytes_max);
    for (const Tensor& tensor : tensors_)
      read(tensor, [&](std::span<const std::byte> bytes, size_t first_byte) {
        writer.write_at(tensor.name, static_cast<int64_t>(first_byte), bytes);
      });
    writer.finish();
  }

  void check(const std::filesystem::path& written) const {
    const CheckpointReader copy = CheckpointReader::open(written);
    for (const Tensor& tensor : tensors_) {
      const StoredTensor& its = copy.get(tensor.name, tensor.stored->shape);
      read(tensor, [&](std::span<const std::byte> bytes, size_t first_byte) {
        CheckpointReader::check_written(its, first_byte, bytes);
      });
    }
  }

 private:
  struct Tensor {
    std::string name;
    const CheckpointReader* file = nullptr;
    const StoredTensor* stored = nullptr;
    StoredType type = {};
    std::optional<Delta> delta;
  };

  static const StoredTensor* find(const CheckpointReader& file,
                                  const std::vector<std::string>& names,
                                  const std::string& prefix) {
    for (const std::string& name : names)
      if (const StoredTensor* found = file.find(prefix + name)) return found;
    return nullptr;
  }

  void add(const HfEntry& entry, const PeftConfig& settings) {
    // A tied name in the adapter is a copy, as check_adapter() has seen.
    std::vector<std::string> own_names = entry.also_named;
    own_names.insert(own_names.begin(), entry.hf_name);
    const StoredTensor* found = find(base_, names_of(entry), "");
    Tensor tensor = {.name = entry.hf_name};
    if (const StoredTensor* whole = find(adapter_, own_names, kPeftPrefix)) {
      tensor.file = &adapter_, tensor.stored = whole;
      tensor.type = found ? found->type : whole->type;
    } else if (found) {
      tensor.file = &base_, tensor.stored = found;
      tensor.type = found->type;
      tensor.delta = delta_of(entry, *found, settings);
    } else {
      throw Error(Fault::data, "export.open",
                  fmt::format("'{}' has no tensor '{}', and neither has its adapter",
                              base_.path().string(), entry.hf_name),
                  "is it an adapter of this model?");
    }
    tensors_.push_back(std::move(tensor));
  }

  std::optional<Delta> delta_of(const HfEntry& entry,
                                const StoredTensor& stored,
                                const PeftConfig& settings) {
    if (stored.shape.size() != 2) return std::nullopt;
    const std::string module = module_of(entry);
    const std::string a = fmt::format("{}{}{}", kPeftPrefix, module, kLoraA),
                      b = fmt::format("{}{}{}", kPeftPrefix, module, kLoraB);
    const StoredTensor* of_a = adapter_.find(a);
    if (!of_a) return std::nullopt;
    Delta delta = {.rank = of_a->shape.empty() ? 0 : of_a->shape[0],
                   .rows = stored.shape[0],
                   .columns = stored.shape[1],
                   .left = {},
                   .right = {},
                   .transposed = entry.transposed,
                   .scale = {}};
    const int64_t out = entry.transposed ? delta.columns : delta.rows,
                  in = entry.transposed ? delta.rows : delta.columns;
    const int64_t shape_of_a[] = {delta.rank, in}, shape_of_b[] = {out, delta.rank};
    std::vector<float> first = values_of(adapter_, a, shape_of_a);
    std::vector<float> second = transposed(values_of(adapter_, b, shape_of_b), out, delta.rank);
    delta.left = std::move(entry.transposed ? first : second);
    delta.right = std::move(entry.transposed ? second : first);
    const auto factor = static_cast<float>(settings.factor(module, delta.rank));
    for (float& value : delta.left)
      value *= factor;
    if (settings.dora) find_scale(delta, module, stored, out);
    return delta;
  }

  /** m / |W + s B A|, a norm for each output. */
  void find_scale(Delta& delta,
                  const std::string& module,
                  const StoredTensor& stored,
                  int64_t outputs) const {
    const int64_t shape[] = {outputs};
    delta.scale =
        values_of(adapter_, fmt::format("{}{}{}", kPeftPrefix, module, kLoraMagnitude), shape);
    std::vector<double> squares(static_cast<size_t>(outputs));
    std::vector<float> sum;
    base_.read_f32(stored, [&](std::span<const float> values, int64_t first) {
      sum.assign(values.begin(), values.end());
      delta.add_to(sum, first);
      for (size_t i = 0; i < sum.size(); ++i) {
        const auto value = static_cast<double>(sum[i]);
        squares[static_cast<size_t>(delta.output_of(first + static_cast<int64_t>(i)))] +=
            value * value;
      }
    });
    for (size_t i = 0; i < squares.size(); ++i)
      delta.scale[i] =
          squares[i] > 0 ? delta.scale[i] / static_cast<float>(std::sqrt(squares[i])) : 1.0f;
  }

  StoredType type_of(const Tensor& tensor) const {
    return dtype_ ? stored_type_of(*dtype_) : tensor.type;
  }

  void read(const Tensor& tensor, const CheckpointReader::TakeBytes& take) const {
    const StoredType type = type_of(tensor);
    if (!tensor.delta && type == tensor.stored->type)
      return tensor.file->read(*tensor.stored, take);
    const std::optional<DType> to = dtype_ ? dtype_ : dtype_of(type);
    if (!to)
      throw Error(
          Fault::data, "export.open",
          fmt::format("tensor '{}' is of a type that nothing can be added to", tensor.stored->name),
          "give a type: --dtype fp32");
    std::vector<float> sum;
    std::vector<std::byte> rounded;
    tensor.file->read_f32(*tensor.stored, [&](std::span<const float> values, int64_t first) {
      sum.assign(values.begin(), values.end());
      if (tensor.delta) tensor.delta->apply(sum, first);
      rounded.resize(sum.size() * size_of(*to));
      simd::convert(rounded.data(), *to, sum.data(), DType::f32, std::ssize(sum));
      take(rounded, static_cast<size_t>(first) * size_of(*to));
    });
  }

  std::optional<DType> dtype_;
  CheckpointReader base_, adapter_;
  std::vector<Tensor> tensors_;
};

}  // namespace

void write_merged(const HfDirectory& model,
                  std::optional<DType> dtype,
                  const std::filesystem::path& to) {
  Merger merger(model, dtype);
  merger.write(to);
  merger.check(to);
}

}  // namespace ferry
