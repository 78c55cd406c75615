#include "src/data/read/formats/table_file.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "src/base/error.h"
#include "src/base/host_memory.h"
#include "src/data/parquet/table_rows.h"
#include "src/files/plain_file.h"

namespace ferry {
namespace {

namespace stdfs = std::filesystem;

/** Beside the program, where it is installed, and in build directories. */
constexpr const char* kPlaces[] = {".", "../libexec/ferry", "../data/parquet",
                                   "../../src/data/parquet"};
constexpr const char* kLibrary = "libferry_arrow.so";

std::string conversion_of(const stdfs::path& path, DatasetFormat format) {
  stdfs::path to = path;
  to.replace_extension(".jsonl");
  return fmt::format(
      "convert it: python3 -c \"import pandas; pandas.read_{}('{}').to_json('{}', "
      "orient='records', lines=True)\"",
      format == DatasetFormat::parquet ? "parquet" : "feather", path.string(), to.string());
}

[[noreturn]] void refuse_without_arrow(const DatasetOptions& options, std::string_view why) {
  throw Error(Fault::data, "data.arrow",
              fmt::format("'{}' needs Arrow to be read, and {}", options.path.string(), why),
              fmt::format("install it and build again: .venv/bin/pip install 'pyarrow<={}' && "
                          "scripts/build; or {}",
                          FERRY_PYARROW, conversion_of(options.path, options.format)));
}

/** It stays loaded until the process ends: Arrow's threads may. */
FerryTableRows* open_library(const DatasetOptions& options) {
  std::error_code code;
  const stdfs::path here = stdfs::read_symlink("/proc/self/exe", code).parent_path();
  for (const char* place : kPlaces) {
    const stdfs::path file = (here / place / kLibrary).lexically_normal();
    if (!stdfs::exists(file, code)) continue;
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) refuse_without_arrow(options, fmt::format("does not load: {}", dlerror()));
    void* function = dlsym(library, kFerryTableRowsName);
    if (!function) refuse_without_arrow(options, fmt::format("'{}' is another's", file.string()));
    return reinterpret_cast<FerryTableRows*>(function);
  }
  refuse_without_arrow(options, "this build has none");
}

/** False where memory would run out: the system promises what it does not have. */
bool append_text(void* to, const char* text, size_t n_bytes) {
  auto& all = *static_cast<std::string*>(to);
  const size_t wanted = all.size() + n_bytes;
  if (wanted > all.capacity()) {
    const size_t more = std::max(wanted, 2 * all.capacity());
    if (more > static_cast<size_t>(read_host_memory().free_bytes())) return false;
    all.reserve(more);
  }
  all.append(text, n_bytes);
  return true;
}

}  // namespace

bool has_objects(DatasetFormat format) {
  return format == DatasetFormat::jsonl || format == DatasetFormat::parquet ||
         format == DatasetFormat::arrow;
}

TextFile load_objects(const DatasetOptions& options) {
  const bool is_parquet = options.format == DatasetFormat::parquet;
  if (!is_parquet && options.format != DatasetFormat::arrow)
    return load_text_file(options.path, options.encoding);
  open_plain_file(options.path);
  FerryTableRows* rows = open_library(options);
  TextFile file;
  std::array<char, 1024> fault = {};
  if (!rows(options.path.c_str(), is_parquet ? kFerryParquet : kFerryArrow, &file.text, append_text,
            fault.data(), fault.size()))
    throw Error(Fault::data, "data.read",
                fmt::format("'{}' cannot be read as {}: {}", options.path.string(),
                            is_parquet ? "Parquet" : "Arrow", fault.data()),
                "is it complete, and of that format?");
  return file;
}

}  // namespace ferry
