#pragma once
// Tokenized sequences, in memory or in a mapped file: both are the same arrays of bytes. A
// TokenWriter (token_writer.h) makes it, datasets (src/data/tokenized.h) are views of it. Nothing
// changes it; any thread reads it.
//
//   data     records of sequences and examples, each on an 8-byte boundary
//   index    an entry for each sequence, in the order in which they were added
//   examples where each example's record begins; empty where none are kept

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "src/data/example.h"
#include "src/files/mapped_file.h"

namespace ferry {

/** A sequence, as the index has it. Its record: labels, values, ids, types. */
struct SequenceEntry {
  uint64_t offset = 0;  // of its record in the data
  uint64_t hash = 0;    // of all that its record says, however wide the ids are
  int64_t example = 0;  // the place of the example that it was cut from; places do not fall
  uint32_t n_ids = 0;
  uint32_t n_labels = 0;
  uint32_t n_values = 0;
  uint32_t flags = 0;

  static constexpr uint32_t kHasTypes = 1;  // else all are 0
  static constexpr uint32_t kTruncated = 2;

  bool has_types() const { return (flags & kHasTypes) != 0; }
  bool is_truncated() const { return (flags & kTruncated) != 0; }
  size_t n_bytes(size_t id_bytes) const {
    return sizeof(int32_t) * n_labels + sizeof(float) * n_values +
           (id_bytes + (has_types() ? 1 : 0)) * n_ids;
  }
};
static_assert(sizeof(SequenceEntry) == 40);

/** Facts that hold for all of a store. */
struct TokenFacts {
  int64_t n_tokens = 0;
  int64_t n_examples = 0;
  int64_t n_left_out = 0;  // examples that have no sequence, and no place among the others
  int32_t id_bytes = 4;    // 2 or 4
  int32_t max_type_id = 0;
  bool has_labels = false;      // the examples had some
  bool keeps_examples = false;  // their texts are there, too
};

/** Pieces of a mapped file, each compared with its checksum when it is first asked for. */
class CheckedPieces {
 public:
  static constexpr size_t kPiece_bytes = 256 << 10;

  /** `checksums` lie in the file, whose first piece begins at `begin`. */
  CheckedPieces(MappedFile file, size_t begin, size_t end, std::span<const uint32_t> checksums);

  const MappedFile& file() const { return file_; }
  /** True where the pieces that hold these bytes of the file are as they were written. */
  bool are_good(size_t offset, size_t n_bytes) const;
  /** Error(data) where they are not; the file is then removed, so that it is made again. */
  void check(size_t offset, size_t n_bytes) const;

 private:
  bool is_good(size_t piece) const;

  MappedFile file_;
  size_t begin_, end_;
  std::span<const uint32_t> checksums_;
  std::unique_ptr<std::atomic<bool>[]> is_checked_;  // by piece
};

class TokenStore {
 public:
  /** In memory. */
  TokenStore(const TokenFacts& facts,
             std::vector<std::byte> data,
             std::vector<SequenceEntry> index,
             std::vector<uint64_t> examples);
  /** In a file; offsets count from its first byte. */
  TokenStore(const TokenFacts& facts,
             std::unique_ptr<CheckedPieces> pieces,
             std::span<const SequenceEntry> index,
             std::span<const uint64_t> examples);
  TokenStore(const TokenStore&) = delete;
  TokenStore& operator=(const TokenStore&) = delete;

  const TokenFacts& facts() const { return facts_; }
  int64_t n_sequences() const { return std::ssize(index_); }
  const SequenceEntry& entry(int64_t sequence) const {
    return index_[static_cast<size_t>(sequence)];
  }
  /** Appends (n_ids) each. */
  void append_tokens(int64_t sequence,
                     std::vector<int32_t>& ids,
                     std::vector<int32_t>& types) const;
  std::span<const int32_t> labels(int64_t sequence) const;
  std::span<const float> values(int64_t sequence) const;
  /** An example that is kept. */
  Example example(int64_t place) const;

  /** Memory that is this store's own: pages of a file are the system's, which takes them back. */
  int64_t held_bytes() const;
  /** The file; null in memory. */
  const MappedFile* file() const { return pieces_ ? &pieces_->file() : nullptr; }

 private:
  std::span<const std::byte> record(uint64_t offset, size_t n_bytes) const;

  TokenFacts facts_;
  std::vector<std::byte> held_data_;
  std::vector<SequenceEntry> held_index_;
  std::vector<uint64_t> held_examples_;
  std::unique_ptr<CheckedPieces> pieces_;
  std::span<const std::byte> data_;
  std::span<const SequenceEntry> index_;
  std::span<const uint64_t> examples_;
};

/** An example as bytes, and back. */
void append_record(const Example& example, std::vector<std::byte>& to);
Example example_of_record(std::span<const std::byte> record);

}  // namespace ferry
