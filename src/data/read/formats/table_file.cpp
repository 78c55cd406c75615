#include "src/data/read/formats/table_file.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <string>

#include "src/base/error.h"
#include "src/files/plain_file.h"

namespace ferry {
namespace {

namespace stdfs = std::filesystem;

/** Beside the program, where it is installed, and in build directories. */
constexpr const char* kPlaces[] = {".", "../libexec/ferry", "../data/parquet",
                                   "../../src/data/parquet"};
constexpr const char* kLibrary = "libferry_arrow.so";

/** As Python writes a text in quotes, inside of a shell's double quotes: a file's name must not
 * become a command where the line is pasted. */
std::string python_text(std::string_view text) {
  std::string out = "'";
  for (const char c : text)
    if (const auto byte = static_cast<unsigned char>(c);
        byte < 0x20 || byte == 0x7f || std::string_view("'\"\\$`!").find(c) != text.npos)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  return out + "'";
}

std::string conversion_of(const stdfs::path& path, DatasetFormat format) {
  stdfs::path to = path;
  to.replace_extension(".jsonl");
  return fmt::format(
      "convert it: python3 -c \"import pandas; pandas.read_{}({}).to_json({}, "
      "orient='records', lines=True)\"",
      format == DatasetFormat::parquet ? "parquet" : "feather", python_text(path.string()),
      python_text(to.string()));
}

[[noreturn]] void refuse_without_arrow(const DatasetOptions& options, std::string_view why) {
  throw Error(Fault::data, "data.arrow",
              fmt::format("'{}' needs Arrow to be read, and {}", options.path.string(), why),
              fmt::format("install it and build again: .venv/bin/pip install 'pyarrow<={}' && "
                          "scripts/build; or {}",
                          FERRY_PYARROW, conversion_of(options.path, options.format)));
}

/** The library's functions. */
struct Arrow {
  FerryTableOpen* open;
  FerryTableNext* next;
  FerryTableMetadata* metadata;
  FerryTableClose* close;
};

template <typename Function>
Function* find_function(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

/** It stays loaded until the process ends: Arrow's threads may. */
Arrow open_library(const DatasetOptions& options) {
  std::error_code code;
  const stdfs::path here = stdfs::read_symlink("/proc/self/exe", code).parent_path();
  for (const char* place : kPlaces) {
    const stdfs::path file = (here / place / kLibrary).lexically_normal();
    if (!stdfs::exists(file, code)) continue;
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) refuse_without_arrow(options, fmt::format("does not load: {}", dlerror()));
    const Arrow arrow = {
        .open = find_function<FerryTableOpen>(library, kFerryTableOpenName),
        .next = find_function<FerryTableNext>(library, kFerryTableNextName),
        .metadata = find_function<FerryTableMetadata>(library, kFerryTableMetadataName),
        .close = find_function<FerryTableClose>(library, kFerryTableCloseName)};
    if (!arrow.open || !arrow.next || !arrow.metadata || !arrow.close)
      refuse_without_arrow(options, fmt::format("'{}' is another's", file.string()));
    return arrow;
  }
  refuse_without_arrow(options, "this build has none");
}

[[noreturn]] void refuse_damaged(const std::string& path, bool is_parquet, const char* fault) {
  throw Error(
      Fault::data, "data.read",
      fmt::format("'{}' cannot be read as {}: {}", path, is_parquet ? "Parquet" : "Arrow", fault),
      "is it complete, and of that format?");
}

using FaultText = std::array<char, 1024>;

}  // namespace

TableFile::TableFile(const DatasetOptions& options)
    : next_(nullptr),
      table_(nullptr, nullptr),
      path_(options.path.string()),
      is_parquet_(options.format == DatasetFormat::parquet) {
  open_plain_file(options.path);  // it refuses what is no file
  const Arrow arrow = open_library(options);
  next_ = arrow.next;
  FaultText fault = {};
  table_ = {arrow.open(path_.c_str(), is_parquet_ ? kFerryParquet : kFerryArrow,
                       {fault.data(), fault.size()}),
            arrow.close};
  if (!table_) refuse_damaged(path_, is_parquet_, fault.data());
  const char* metadata = nullptr;
  size_t n_bytes = 0;
  arrow.metadata(table_.get(), &metadata, &n_bytes);
  metadata_ = {metadata, n_bytes};
}

std::string_view TableFile::next() {
  FaultText fault = {};
  FerryTableRows rows = {};
  if (!next_(table_.get(), &rows, {fault.data(), fault.size()}))
    refuse_damaged(path_, is_parquet_, fault.data());
  share_ = rows.share;
  return {rows.text, rows.n_bytes};
}

}  // namespace ferry
