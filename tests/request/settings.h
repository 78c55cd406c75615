#pragma once
// Options as a command line gives them.

#include <string>
#include <utility>
#include <vector>

#include "src/config/config.h"

namespace ferry {

using Settings = std::vector<std::pair<std::string, std::string>>;

inline config::Config config_of(const Settings& settings) {
  config::Config config;
  for (const auto& [key, value] : settings)
    config.set(key, value, {config::Source::command_line, "--" + key});
  return config;
}

}  // namespace ferry
