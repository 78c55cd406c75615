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

stdfs::path lock_of(stdfs::path file) {
  return file += ".lock";
}

}  // namespace

stdfs::path TokenCache::file_of(uint64_t key) const {
  return directory_ / fmt::format("{:016x}.tokens", key);
}

std::shared_ptr<const TokenStore> TokenCache::find(uint64_t key, bool says_damage) const {
  const stdfs::path file = file_of(key);
  if (!path_exists(file)) return nullptr;
  try {
    return open_token_file(file, key);
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
  make_directories(directory_);
  FileLock lock(lock_of(file_of(key)));
  auto state = lock.try_lock();
  if (state == FileLock::State::of_another) {
    log_line("another process is tokenizing these texts: waiting for it");
    state = lock.lock();
  }
  // Whoever held the lock may have made them.
  if (auto store = find(key, /*says_damage=*/true)) return {.store = std::move(store)};
  if (state == FileLock::State::held) remove_leftovers(key);
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
    constexpr std::string_view kEnding = ".tokens";
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

}  // namespace ferry
