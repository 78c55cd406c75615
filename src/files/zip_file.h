#pragma once
// One zip of a few texts, written with libzip. A library of its own: only `ferry runs report` links
// libzip.

#include <filesystem>
#include <span>
#include <string>

namespace ferry {

struct ZipEntry {
  std::string name;  ///< "config.toml"
  std::string text;
};

/** Writes the zip whole or not at all. Throws Error(usage) where the file exists, Error(machine)
 * where it cannot be written. */
void write_zip(const std::filesystem::path& target, std::span<const ZipEntry> entries);

}  // namespace ferry
