#include "src/request/export_target.h"

#include <fmt/format.h>

#include "src/base/error.h"

namespace ferry {

ExportTarget export_target(const config::Config& config) {
  const std::filesystem::path output = config.text("output_dir");
  const bool names_file = output.extension() == ".gguf";
  const std::string& format = config.text("format");
  const bool is_gguf = format == "gguf" || (format == "auto" && names_file);
  if (!is_gguf && names_file)
    throw Error(
        Fault::usage, "config.export",
        fmt::format("'{}' is a GGUF file by its name, and format = {}", output.string(), format),
        "give --format gguf, or the name of a directory");
  const bool has_type = config.text("gguf_type") != "auto";
  if (!is_gguf && has_type)
    throw Error(Fault::usage, "config.export", "gguf_type is set, and no GGUF file is written",
                "add --format gguf; the type of a Hugging Face directory is --dtype");
  if (has_type && config.text("dtype") != "auto")
    throw Error(Fault::usage, "config.export", "gguf_type and dtype are both set",
                "give --gguf-type alone");
  return {.is_gguf = is_gguf, .path = is_gguf && !names_file ? output / "model.gguf" : output};
}

}  // namespace ferry
