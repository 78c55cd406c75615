#include "src/config/options/tuning.h"

#include <algorithm>

namespace ferry::config {

bool is_of_adapters(const Option& option) {
  return option.group == "Adapters" && option.key != "tuning";
}

bool suits_tuning(const Option& option, std::string_view tuning) {
  const std::string_view key = option.key;
  if (key == "num_virtual_tokens" || key.starts_with("prompt_tuning"))
    return tuning == "soft_prompt";
  if (!is_of_adapters(option)) return true;
  if (key == "modules_to_save" || key == "quantization" || key == "double_quantization")
    return tuning != "full";
  if (key == "adapter_size") return tuning.ends_with("adapter") || tuning == "compacter";
  if (key == "adapter_scale") return tuning == "parallel_adapter";
  if (key == "compacter_division") return tuning == "compacter";
  return tuning == "lora";
}

std::vector<std::string_view> tunings_of(const Option& option) {
  std::vector<std::string_view> tunings;
  for (const std::string_view tuning : find_option("tuning").option->choices)
    if (suits_tuning(option, tuning)) tunings.push_back(tuning);
  return tunings;
}

}  // namespace ferry::config
