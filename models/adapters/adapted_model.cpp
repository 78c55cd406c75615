#include "models/adapters/adapted_model.h"

namespace ferry {

std::string module_of(const HfEntry& entry) {
  constexpr std::string_view kWeight = ".weight";
  std::string name = entry.hf_name;
  if (name.ends_with(kWeight)) name.resize(name.size() - kWeight.size());
  return name;
}

void freeze_model(ModelTable& model, const IsWhole& is_whole) {
  model.has_deltas = true;
  for (HfEntry& entry : model.hf_names) {
    entry.is_delta = is_whole(entry);
    model.blocks[entry.block].params[entry.param].trainable = entry.is_delta;
    if (!entry.is_delta) continue;
    entry.also_named.insert(entry.also_named.begin(), entry.hf_name);
    entry.hf_name = kPeftPrefix + entry.hf_name;
  }
}

}  // namespace ferry
