#pragma once
// A directory of token files (token_file.h), each named by a key: a number that changes with all
// that its tokens depend on. Any number of processes use it at once; whoever wants tokens that
// another is making waits for them. Files that nobody used for a long time go when a new one is
// made. Lines for the user go through src/base/print.h.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <utility>

#include "src/data/tokens/token_store.h"
#include "src/data/tokens/token_writer.h"

namespace ferry {

class TokenCache {
 public:
  /** Made when the first file is written. */
  explicit TokenCache(std::filesystem::path directory) : directory_(std::move(directory)) {}

  static constexpr std::chrono::hours kUnused{90 * 24};

  const std::filesystem::path& directory() const { return directory_; }
  std::filesystem::path file_of(uint64_t key) const;

  struct Tokens {
    std::shared_ptr<const TokenStore> store;
    bool are_new = false;  // they were made by this call
  };
  /** The tokens of a key: from its file, or else `fill` gives them to a writer, and the file is
   * there as a whole afterwards. A file that is damaged is said and made again. What `fill` throws
   * goes on, and leaves no file; Error(machine) where the directory cannot be written or the disk
   * is full. Files of other keys that were not used for kUnused are removed before `fill`. */
  Tokens get(uint64_t key,
             const TokenForm& form,
             const std::function<void(TokenWriter& to)>& fill) const;

 private:
  std::shared_ptr<const TokenStore> find(uint64_t key, bool says_damage) const;
  std::shared_ptr<const TokenStore> make(uint64_t key,
                                         const TokenForm& form,
                                         const std::function<void(TokenWriter& to)>& fill) const;
  void remove_leftovers(uint64_t key) const;
  void remove_unused() const;

  std::filesystem::path directory_;
};

}  // namespace ferry
