#pragma once
// The entries of a zip archive in memory, as torch.save writes it: stored, not compressed, so that
// their bytes are used where they lie. Private to src/files.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

namespace ferry {

/** One plain sentence on what is wrong, and what to do. */
struct TorchFormatError {
  std::string what;
  std::string hint = "fetch or export the file again";
};

[[noreturn]] void refuse_torch_file(std::string what,
                                    std::string hint = "fetch or export the file again");

using ZipIndex = std::unordered_map<std::string_view, std::span<const std::byte>>;

/** Entries by name; names and bytes lie in `file`. Reads zip64, too. Throws TorchFormatError where
 * an entry is compressed, encrypted, named twice, or not inside the file. */
ZipIndex index_zip(std::span<const std::byte> file);

}  // namespace ferry
