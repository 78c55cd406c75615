#include "models/core/describe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/core/compile.h"
#include "models/core/operation.h"

namespace ferry {
namespace {

class Describer {
 public:
  Describer(const BlockTable& table, const CompiledBlock& block)
      : table_(table),
        block_(block),
        saved_(saved_of(block, {.tokens = 1, .n_seqs_max = 1, .max_length = 1})) {}

  std::string pass(std::string_view name, const PassPlan& plan) const {
    std::string text = fmt::format("{}\n", name);
    for (const Call& call : plan.calls)
      text += "  " + line_of(plan, call) + "\n";
    return text;
  }

  std::string saved() const {
    std::string text = "saved\n";
    for (const SavedSpec& spec : saved_)
      text +=
          fmt::format("  {}{}\n", spec.name, spec.recomputed ? ", made again if so chosen" : "");
    return text;
  }

 private:
  std::string line_of(const PassPlan& plan, const Call& call) const {
    const Op& op = block_.plan.op_of(block_.program, call);
    std::vector<std::string> words;
    for (size_t i = 0; i < call.places.size(); ++i)
      if (call.places[i] != kNone)
        words.push_back(fmt::format("{} = {}", call.names[i], name_of(plan, call.places[i])));
    for (size_t i = 0; i < op.params.size(); ++i)
      if (op.params[i] != kNone)
        words.push_back(fmt::format("{}: {}", op.def->params[i], name_of_param(op.params[i])));
    for (const int state : call.states)
      words.push_back(name_of(plan, state));
    return fmt::format("{:18} {:9} {}", op.def->name, name_of(call.part), fmt::join(words, ", "));
  }

  static std::string_view name_of(Part part) {
    constexpr std::string_view kNames[] = {"forward", "again", "backward", "params"};
    return kNames[static_cast<size_t>(part)];
  }

  std::string name_of(const PassPlan& plan, int index) const {
    const PassPlace& place = plan.places[static_cast<size_t>(index)];
    const BlockProgram& program = block_.program;
    switch (place.kind) {
      case PlaceKind::saved:
        return "[" + saved_[place.saved].name + "]";
      case PlaceKind::port:
      case PlaceKind::temp:
      case PlaceKind::columns:
        break;
    }
    const Value& value = program.value(place.value);
    const Port port = value.port == kNone ? Port() : program.ports[value.port];
    const bool is_output = port.forward == PortUse::writes && port.backward == PortUse::none;
    const std::string name = is_output ? "output" : value.name;
    return place.is_gradient ? "d(" + name + ")" : name;
  }

  std::string name_of_param(ParamId id) const {
    const auto n_own = static_cast<ParamId>(table_.params.size());
    if (id < n_own) return table_.params[id].name;
    const BorrowedParam& of = table_.borrowed[id - n_own];
    return fmt::format("parameter {} of block {}", of.param, of.block);
  }

  const BlockTable& table_;
  const CompiledBlock& block_;
  std::vector<SavedSpec> saved_;
};

}  // namespace

std::string describe(const BlockTable& block) {
  const CompiledBlock& compiled = *block.compiled;
  const Describer of(block, compiled);
  std::string text = of.pass("forward", compiled.plan.forward);
  text += of.pass("backward", compiled.plan.backward);
  if (!compiled.plan.recompute.calls.empty()) text += of.pass("recompute", compiled.plan.recompute);
  return text + of.saved();
}

}  // namespace ferry
