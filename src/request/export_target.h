#pragma once
// The options of `ferry export` say what it writes and where. The ferry binary checks the place,
// and the trainer writes there.

#include <filesystem>

#include "src/config/config.h"

namespace ferry {

struct ExportTarget {
  bool is_gguf = false;        ///< a file for llama.cpp, else a Hugging Face directory
  std::filesystem::path path;  ///< the file, or the directory
};

/** By `format`, and where that is auto by the ending of output_dir; a directory gets the file
 * model.gguf. Throws Error(usage) where the options say two things. */
ExportTarget export_target(const config::Config& config);

}  // namespace ferry
