#include "models/adapters/bottleneck.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "models/adapters/block_editor.h"
#include "models/core/compile.h"
#include "models/ops/activation/activation_op.h"
#include "models/ops/add/add_op.h"
#include "models/ops/attention/attention_op.h"
#include "models/ops/dropout/dropout_op.h"
#include "models/ops/gate/gate_op.h"
#include "models/ops/norm/norm_op.h"
#include "models/ops/phm/phm_op.h"
#include "src/base/error.h"

namespace ferry {
namespace {

constexpr std::string_view kMark = ".adapter.";
constexpr double kStd = 0.01;  ///< of matrices that start normal
constexpr const char *kLeft = "left", *kRight = "right";

/** The nearest operation before a value, along first operands, for which `is` holds; null: there is
 * none before the next linear map. */
template <class Is>
const Op* find_before(const BlockProgram& program, ValueId value, const Is& is) {
  while (value != kNone) {
    const int producer = program.producer_of(value);
    if (producer == kNone) return nullptr;
    const Op& op = program.op(producer);
    if (is(op)) return &op;
    if (op.def == &ops::kLinear || op.in.empty()) return nullptr;
    value = op.in[0];
  }
  return nullptr;
}

bool is_attention(const Op& op) {
  return op.def == &ops::kAttention;
}
bool is_activation(const Op& op) {
  return op.def == &ops::kActivation || op.def == &ops::kGate;
}

/** The input of the branch that ends in this linear map; none where it ends no branch. */
std::optional<ValueId> input_of_branch(const BlockProgram& program, const Op& end) {
  const ValueId x = values_of<ops::LinearValues>(end).x;
  const Op* middle = find_before(program, x, is_attention);
  if (!middle) middle = find_before(program, x, is_activation);
  if (!middle) return std::nullopt;
  const Op* first =
      find_before(program, middle->in[0], [](const Op& op) { return op.def == &ops::kLinear; });
  return first ? std::optional(values_of<ops::LinearValues>(*first).x) : std::nullopt;
}

/** The bias that a later operation adds to a value; null: none does. */
ParamId* bias_behind(std::vector<Op>& ops, ValueId value) {
  for (Op& op : ops)
    if (!op.in.empty() && op.in[0] == value) {
      if (op.def == &ops::kDropoutResidual && op.params[0] != kNone) return &op.params[0];
      if (op.def == &ops::kResidualNorm && op.params[2] != kNone) return &op.params[2];
    }
  return nullptr;
}

/** Writes the adapters of one block. */
class BottleneckWriter {
 public:
  BottleneckWriter(ModelTable& model, int block, const Bottleneck& its)
      : editor_(model, block), its_(its) {}

  void run() {
    std::vector<Op> before = editor_.program().ops;
    for (Op& op : before) {
      const auto input =
          editor_.is_own_linear(op) ? input_of_branch(editor_.program(), op) : std::nullopt;
      if (input)
        adapt(op, *input, before);
      else
        editor_.ops.push_back(op);
    }
    editor_.finish();
  }

 private:
  void adapt(const Op& op, ValueId input, std::vector<Op>& before) {
    auto values = values_of<ops::LinearValues>(op);
    auto params = params_of<ops::LinearParams>(op);
    const auto& with = op.with<ops::LinearAttributes>();
    refuse_shared_layer(op);
    if (ParamId* const bias = bias_behind(before, values.y)) {
      FERRY_CHECK(params.bias == kNone && with.factor == 1, "{} has two biases",
                  editor_.program().value(values.y).name);
      params.bias = std::exchange(*bias, kNone);
    }
    const ValueId residual = std::exchange(values.residual, kNone), y = values.y;
    name_ = editor_.program().value(y).name;
    module_ = module_of(*editor_.tensors_of(params.weight).front());
    if (module_.starts_with(kPeftPrefix)) module_.erase(0, std::string_view(kPeftPrefix).size());
    values.y = editor_.like(name_ + ".module", y);
    editor_.ops.push_back(make_op(ops::kLinear, values, params, op.attributes));
    const ValueId sum = residual == kNone ? y : editor_.like(name_ + ".adapted", y);
    // The module gives h times a factor, and the adapter's sum gets the same factor.
    if (its_.kind == BottleneckKind::parallel)
      add(input, 1, values.y, with.factor * its_.scale, sum);
    else
      add(values.y, 1 / with.factor, values.y, with.factor, sum);
    if (residual != kNone)
      editor_.ops.push_back(
          make_op(ops::kAdd, ops::AddValues<ValueId>{.a = sum, .b = residual, .y = y}));
  }

  /** y = h + up_factor (U f(down_factor D x + d) + u). */
  void add(ValueId x, float down_factor, ValueId h, float up_factor, ValueId y) {
    const ValueId down = new_value("down", x, its_.size), z = new_value("z", x, its_.size),
                  active = new_value("active", x, its_.size);
    project("down", x, kNone, kNone, down, down_factor);
    const ParamId bias = add_bias("down", its_.size);
    editor_.ops.push_back(
        make_op(ops::kActivation, ops::ActivationValues<ValueId>{.a = down, .h = z, .g = active},
                ops::ActivationParams<ParamId>{.bias = bias},
                ops::ActivationAttributes{.kind = its_.kind == BottleneckKind::compacter
                                                      ? Activation::relu
                                                      : Activation::gelu_tanh}));
    const ParamId up_bias = add_bias("up", editor_.program().value(y).columns);
    project("up", active, up_bias, h, y, up_factor);
  }

  /** y = factor (x w^T + bias) + residual; bias and residual or kNone. */
  void project(
      const std::string& part, ValueId x, ParamId bias, ValueId residual, ValueId y, float factor) {
    const int64_t in = editor_.program().value(x).columns, out = editor_.program().value(y).columns;
    const auto linear = [&](ValueId from, ParamId weight, ParamId its_bias, ValueId its_residual,
                            ValueId to, float its_factor) {
      editor_.ops.push_back(make_op(
          ops::kLinear, ops::LinearValues<ValueId>{.x = from, .residual = its_residual, .y = to},
          ops::LinearParams<ParamId>{.weight = weight, .bias = its_bias},
          ops::LinearAttributes{.factor = its_factor}));
    };
    switch (its_.kind) {
      case BottleneckKind::adapter:
      case BottleneckKind::parallel: {
        const ParamId w = add_normal(part, "weight", {out, in});
        editor_.name_rows(w, name_of(part, "weight"), 0, {out, in});
        return linear(x, w, bias, residual, y, factor);
      }
      case BottleneckKind::low_rank: {
        const ParamId left = add_line(part, kLeft, {1, in}),
                      right = add_line(part, kRight, {out, 1});
        turn(editor_.name_rows(left, name_of(part, kLeft), 0, {in, 1}));
        turn(editor_.name_rows(right, name_of(part, kRight), 0, {1, out}));
        const ValueId middle = new_value(part + ".one", x, 1);
        linear(x, left, kNone, kNone, middle, 1);
        return linear(middle, right, bias, residual, y, factor);
      }
      case BottleneckKind::compacter:
        return add_phm(part, x, bias, residual, y, factor);
    }
  }

  void add_phm(
      const std::string& part, ValueId x, ParamId bias, ValueId residual, ValueId y, float factor) {
    const int64_t n = its_.division, in = editor_.program().value(x).columns,
                  out = editor_.program().value(y).columns;
    if (in % n != 0 || out % n != 0)
      throw Error(
          Fault::usage, "config.compacter_division",
          fmt::format("Compacter divides {} columns and {} by {}, which leaves a rest", in, out, n),
          "choose adapter_size and compacter_division so that it divides both, and the "
          "model's width");
    const ParamId rule = add_normal(part, "rule", {n, n * n}),
                  left = add_line(part, kLeft, {n, in / n}),
                  right = add_line(part, kRight, {n, out / n});
    editor_.name_rows(rule, name_of(part, "phm_rule"), 0, {n, n, n});
    editor_.name_rows(left, name_of(part, kLeft), 0, {n, in / n, 1});
    editor_.name_rows(right, name_of(part, kRight), 0, {n, 1, out / n});
    const ValueId product =
        residual == kNone ? y : editor_.like(name_ + "." + part + ".product", y);
    editor_.ops.push_back(
        make_op(ops::kPhm, ops::PhmValues<ValueId>{.x = x, .y = product},
                ops::PhmParams<ParamId>{.rule = rule, .left = left, .right = right, .bias = bias},
                ops::PhmAttributes{.factor = factor, .n = n}));
    if (residual != kNone)
      editor_.ops.push_back(
          make_op(ops::kAdd, ops::AddValues<ValueId>{.a = product, .b = residual, .y = y}));
  }

  /** A vector of the file that lies there the other way round. */
  static void turn(HfEntry& entry) {
    entry.transposed = true;
    entry.rows = entry.hf_shape.back();
  }

  std::string name_of(const std::string& part, const char* what) const {
    return fmt::format("{}{}{}{}.{}", kPeftPrefix, module_, kMark, part, what);
  }
  std::string param_name(const std::string& part, const char* what) const {
    return fmt::format("{}.adapter.{}.{}", name_, part, what);
  }
  ParamId add_normal(const std::string& part, const char* what, std::vector<int64_t> shape) {
    const ParamId id =
        editor_.add_param(param_name(part, what), std::move(shape), /*decay=*/true, Init::normal);
    editor_.spec_of(id).normal.factor = kStd / static_cast<double>(editor_.model().init_std);
    return id;
  }
  /** A column or a row, which starts by glorot_bound_of(). */
  ParamId add_line(const std::string& part, const char* what, std::vector<int64_t> shape) {
    return editor_.add_param(param_name(part, what), std::move(shape), /*decay=*/true,
                             Init::fan_in);
  }
  ParamId add_bias(const std::string& part, int64_t n) {
    const ParamId id =
        editor_.add_param(param_name(part, "bias"), {n}, /*decay=*/false, Init::zeros);
    editor_.name_rows(id, name_of(part, "bias"), 0, {n});
    return id;
  }
  ValueId new_value(const std::string& part, ValueId like, int64_t columns) {
    const Value its = editor_.program().value(like);
    return editor_.add_value({.name = name_ + ".adapter." + part,
                              .rows = its.rows,
                              .columns = columns,
                              .type = its.type});
  }

  BlockEditor editor_;
  const Bottleneck& its_;
  std::string name_, module_;  ///< of the map that is adapted now
};

}  // namespace

std::vector<std::string> bottleneck_modules(const ModelTable& model) {
  return modules_of_maps(model, [](const BlockTable& block, const Op& op) {
    return block.kind == BlockKind::layer &&
           input_of_branch(block.compiled->program, op).has_value();
  });
}

std::string bottleneck_module_of(const std::string& hf_name) {
  const std::string_view name = hf_name, prefix = kPeftPrefix;
  const size_t mark = name.rfind(kMark);
  if (!name.starts_with(prefix) || mark == name.npos) return {};
  return std::string(name.substr(prefix.size(), mark - prefix.size()));
}

std::optional<double> glorot_bound_of(const HfEntry& entry) {
  const std::string& name = entry.hf_name;
  if (bottleneck_module_of(name).empty() || !(name.ends_with(kLeft) || name.ends_with(kRight)))
    return std::nullopt;
  const auto n = entry.hf_shape.size();
  return std::sqrt(12.0 / static_cast<double>(entry.hf_shape[n - 2] + entry.hf_shape[n - 1]));
}

void add_bottlenecks(ModelTable& model, const Bottleneck& its) {
  freeze_model(model, its.is_whole);
  for (int b = 0; b < std::ssize(model.blocks); ++b)
    if (model.blocks[b].kind == BlockKind::layer) BottleneckWriter(model, b, its).run();
  plan_frozen(model);
}

}  // namespace ferry
