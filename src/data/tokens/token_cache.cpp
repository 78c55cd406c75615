#include "src/data/tokens/token_cache.h"

#include <fmt/format.h>

#include <system_error>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/print.h"
#include "src/data/tokens/token_file.h"
#include "src/files/plain_file.h"
#include "src/files/write/atomic_file.h"
#include "src/files/write/disk_full.h"
#include "src/files/write/file_lock.h"

namespace ferry {
namespace {

namespace stdfs = std::filesystem;

constexpr std::string_view kEnding = ".tokens";

stdfs::path lock_of(stdfs::path file) {
  return file += ".lock";
}

/** The time of its last change is the time of its last use: the time of reading is not kept by
 * every system. */
void note_use(const stdfs::path& file) {
  std::error_code error;  // of a directory that can only be read
  stdfs::last_write_time(file, stdfs::file_time_type::clock::now(), error);
}

/** True for a name that file_of() gives. */
bool is_token_file(const stdfs::path& file) {
  const std::string stem = file.stem().string();
  return file.extension() == kEnding && stem.size() == 16 &&
         stem.find_first_not_of("0123456789abcdef") == stem.npos;
}

}  // namespace

stdfs::path TokenCache::file_of(uint64_t key) const {
  return directory_ / fmt::format("{:016x}{}", key, kEnding);
}

std::shared_ptr<const TokenStore> TokenCache::find(uint64_t key, bool says_damage) const {
  const stdfs::path file = file_of(key);
  if (!path_exists(file)) return nullptr;
  try {
    auto store = open_token_file(file, key);
    note_use(file);
    return store;
  } catch (const BadTokenFile& bad) {
    if (says_damage)
      log_line(fmt::format("the tokens in '{}' cannot be used: {}; they are made again",
                           file.string(), bad.what()));
    return nullptr;
  } catch (const Error&) {
    if (!path_exists(file)) return nullptr;  // another process has just taken it away
    throw;
  }
}

TokenCache::Tokens TokenCache::get(uint64_t key,
                                   const TokenForm& form,
                                   const std::function<void(TokenWriter& to)>& fill) const {
  if (auto store = find(key, /*says_damage=*/false)) return {.store = std::move(store)};
  make_private_directories(directory_);
  FileLock lock(lock_of(file_of(key)));
  auto state = lock.try_lock();
  if (state == FileLock::State::of_another) {
    log_line("another process is tokenizing these texts: waiting for it");
    state = lock.lock();
  }
  // Whoever held the lock may have made them.
  if (auto store = find(key, /*says_damage=*/true)) return {.store = std::move(store)};
  if (state == FileLock::State::held) remove_leftovers(key);
  remove_unused();
  return {.store = make(key, form, fill), .are_new = true};
}

std::shared_ptr<const TokenStore> TokenCache::make(
    uint64_t key, const TokenForm& form, const std::function<void(TokenWriter& to)>& fill) const {
  FileWriter writer(form, file_of(key), key);
  try {
    fill(writer);
    return writer.finish();
  } catch (const DiskFull&) {
    throw Error(Fault::machine, "data.tokens",
                fmt::format("the disk of '{}' is full after {} of tokens", directory_.string(),
                            format_bytes(writer.n_bytes())),
                "free some space, or name another directory with token_cache; token_cache = off "
                "holds the tokens in memory");
  }
}

/** Removes what processes that were killed have left, which nobody holds a lock for; of this key,
 * the caller does. */
void TokenCache::remove_leftovers(uint64_t key) const {
  std::error_code error;
  for (stdfs::directory_iterator entry(directory_, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const size_t length = name.find(kEnding);
    if (!is_temporary_file(name) || length == name.npos) continue;
    const stdfs::path file = directory_ / name.substr(1, length + kEnding.size() - 1);
    if (file == file_of(key)) {
      remove_what_can_be(entry->path());
      continue;
    }
    FileLock lock(lock_of(file));
    if (lock.try_lock() == FileLock::State::held) remove_what_can_be(entry->path());
  }
}

/** A process that still reads a removed file has it until its end. */
void TokenCache::remove_unused() const {
  const auto limit = stdfs::file_time_type::clock::now() - kUnused;
  int64_t n_files = 0, n_bytes = 0;
  std::error_code error;
  for (stdfs::directory_iterator entry(directory_, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code gone;
    if (!is_token_file(entry->path()) || !entry->is_regular_file(gone)) continue;
    const auto used = entry->last_write_time(gone);
    if (gone || used > limit) continue;
    const auto size = static_cast<int64_t>(entry->file_size(gone));
    if (gone || !stdfs::remove(entry->path(), gone)) continue;
    ++n_files;
    n_bytes += size;
  }
  if (n_files > 0)
    log_line(fmt::format("{} of tokens in '{}' were removed: {} that nobody used for {} days",
                         format_bytes(n_bytes), directory_.string(),
                         n_files == 1 ? "a file" : fmt::format("{} files", n_files),
                         std::chrono::duration_cast<std::chrono::days>(kUnused).count()));
}

}  // namespace ferry
