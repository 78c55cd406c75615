#pragma once
// A TokenStore as a file, read through a mapping. Private to src/data/tokens: token_cache.h decides
// which file it is. The layout: a page that says what is in the file, the store's data, index and
// examples, then a checksum (CRC-32C) for each piece of those three.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <vector>

#include "src/data/tokens/token_writer.h"

namespace ferry {

/** The file is none of these, or not as it was written; what() says why. */
class BadTokenFile : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/** Writes beside the target, which appears as a whole when the store is finished. Failures are
 * Error(machine), DiskFull where it is. */
class FileWriter : public TokenWriter {
 public:
  /** `key`: what the file is found by; reading compares it. */
  FileWriter(const TokenForm& form, std::filesystem::path target, uint64_t key);
  std::shared_ptr<const TokenStore> finish() override;

 private:
  void write(std::span<const std::byte> record) override;
  void write_entry(const SequenceEntry& entry) override;
  void write_example(uint64_t offset) override;
  void copy(const ScratchFile& from);
  void flush();
  void add_to_checksums(std::span<const std::byte> bytes);

  uint64_t key_;
  AtomicFile file_;
  ScratchFile index_, examples_;  // they follow the data, which ends when all is added
  std::vector<std::byte> open_data_, open_index_, open_examples_;  // not written yet
  int64_t n_entries_ = 0;
  uint64_t end_;  // of what is written of the file
  std::vector<uint32_t> checksums_;
  size_t n_piece_bytes_ = 0;  // of the last piece
};

/** Throws BadTokenFile where the file is damaged, was cut or is of another key; Error(data) where
 * it is missing. Index and examples are compared with their checksums, data when it is read. */
std::shared_ptr<const TokenStore> open_token_file(const std::filesystem::path& file, uint64_t key);

}  // namespace ferry
