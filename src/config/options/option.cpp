// Names of options: look-up.

#include "src/config/options/option.h"

#include <algorithm>

namespace ferry::config {

std::string_view name_of(Effect effect) {
  return effect == Effect::fixes_bits         ? "fixes the bits"
         : effect == Effect::changes_training ? "changes training"
                                              : "free";
}

NameMatch find_option(std::string_view name) {
  std::string wanted(name);
  std::replace(wanted.begin(), wanted.end(), '-', '_');
  for (const Option& option : option_table()) {
    if (option.key == wanted) return {&option, nullptr};
    for (const Alias& alias : option.aliases)
      if (alias.name == wanted) return {&option, &alias};
  }
  return {};
}

std::vector<std::string_view> option_names(VerbMask verbs) {
  std::vector<std::string_view> names;
  for (const Option& option : option_table()) {
    if ((option.verbs & verbs) == 0) continue;
    names.push_back(option.key);
    for (const Alias& alias : option.aliases)
      names.push_back(alias.name);
  }
  return names;
}

}  // namespace ferry::config
