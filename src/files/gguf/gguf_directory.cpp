#include "src/files/gguf/gguf_directory.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>

#include "src/base/crc32c.h"
#include "src/base/error.h"
#include "src/files/gguf/gguf.h"
#include "src/files/gguf/gguf_config.h"
#include "src/files/gguf/gguf_tokenizer.h"
#include "src/files/hf/checkpoint_reader.h"
#include "src/files/plain_file.h"
#include "src/files/user_data.h"
#include "src/files/write/atomic_file.h"

namespace ferry {
namespace {

namespace fs = std::filesystem;

/** Counts changes in what is written: an older directory is then left alone. */
constexpr int kForm = 1;

/** Files of a tokenizer that may lie beside the GGUF file; one of the first three is one. */
constexpr const char* kBeside[] = {
    "tokenizer.json",    "tokenizer.model",       "vocab.json",
    "merges.txt",        "tokenizer_config.json", "special_tokens_map.json",
    "added_tokens.json", "chat_template.jinja",   "generation_config.json"};
constexpr size_t kTokenizers = 3;

/** Says which file it is, and whether it was changed. */
std::string mark_of(const fs::path& file) {
  struct stat its = {};
  if (::stat(file.c_str(), &its) != 0) return {};
  return fmt::format("{} {} {} {};", file.string(), its.st_size, its.st_mtim.tv_sec,
                     its.st_mtim.tv_nsec);
}

void write_files(const fs::path& file, bool takes_beside, const fs::path& to) {
  const GgufFile gguf = GgufFile::open(file);
  const nlohmann::ordered_json config = gguf_config(gguf);
  const fs::path beside = file.parent_path();
  const bool has_tokenizer =
      takes_beside && std::any_of(kBeside, kBeside + kTokenizers,
                                  [&](const char* name) { return path_exists(beside / name); });
  if (has_tokenizer) {
    for (const char* name : kBeside)
      if (path_exists(beside / name)) write_text_file(to / name, read_text_file(beside / name));
  } else {
    for (const auto& [name, text] : gguf_tokenizer_files(gguf)) {
      ferry::make_directories((to / name).parent_path());
      write_text_file(to / name, text);
    }
  }
  std::error_code error;
  fs::create_symlink(file, to / kGgufWeightsName, error);
  if (error)
    throw Error(
        Fault::machine, "gguf.model",
        fmt::format("no link to '{}' in '{}': {}", file.string(), to.string(), error.message()),
        "XDG_CACHE_HOME names a directory on a file system that has links");
  write_json_file(to / "config.json", config);  // the last one: a directory that has it is whole
}

}  // namespace

fs::path gguf_directory(const fs::path& given, bool takes_beside) {
  static std::mutex one_at_a_time;  // threads of a process would take the same name meanwhile
  const std::lock_guard lock(one_at_a_time);
  std::error_code error;
  const fs::path file = fs::canonical(given, error);
  if (error)
    throw Error(Fault::data, "gguf.model", fmt::format("'{}' does not exist", given.string()),
                "check the path");
  std::string marks = fmt::format("{} {}", kForm, mark_of(file));
  for (const char* name : kBeside)
    marks += takes_beside ? mark_of(file.parent_path() / name) : std::string("-");
  const fs::path cache = user_cache_file("gguf");
  if (cache.empty())
    throw Error(Fault::machine, "gguf.model", "there is no directory for caches",
                "set XDG_CACHE_HOME, or HOME");
  const fs::path directory =
      cache / fmt::format("{}-{:08x}", file.stem().string(),
                          crc32c(std::as_bytes(std::span<const char>(marks))));
  if (path_exists(directory / "config.json")) return directory;
  ferry::make_directories(cache);
  // Several processes may make it at once: each takes another name, and one name stays.
  const fs::path made = temporary_name(directory);
  fs::remove_all(made, error);
  fs::create_directories(made, error);
  try {
    write_files(file, takes_beside, made);
  } catch (...) {
    remove_what_can_be(made);
    throw;
  }
  // A killed process may have left a part of one.
  if (!path_exists(directory / "config.json")) fs::remove_all(directory, error);
  fs::rename(made, directory, error);
  if (error && !path_exists(directory / "config.json")) {
    remove_what_can_be(made);
    throw Error(Fault::machine, "gguf.model",
                fmt::format("'{}' cannot be made: {}", directory.string(), error.message()),
                "XDG_CACHE_HOME names a directory that can be written");
  }
  if (error) remove_what_can_be(made);
  return directory;
}

}  // namespace ferry
