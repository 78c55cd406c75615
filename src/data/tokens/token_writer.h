#pragma once
// Makes a TokenStore of sequences as they come, in memory or as a file. Called by one thread at a
// time: whoever tokenizes.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "src/data/tokenized_example.h"
#include "src/data/tokens/token_store.h"
#include "src/files/write/atomic_file.h"
#include "src/files/write/scratch_file.h"

namespace ferry {

/** Facts that are known before the first sequence. */
struct TokenForm {
  int64_t vocab_size = INT32_MAX;  // ids are below it
  bool has_labels = false;
  bool keeps_examples = false;
};

class TokenWriter {
 public:
  virtual ~TokenWriter() = default;

  /** The next example; its sequences follow. */
  void add_example(const Example& example);
  /** A sequence of the last example. */
  void add(const TokenizedExample& sequence);
  /** An example that has no sequence: it is counted, and gets no place. */
  void leave_out() { ++facts_.n_left_out; }
  /** The store of all that was added, once. */
  virtual std::shared_ptr<const TokenStore> finish() = 0;

  int64_t n_examples() const { return facts_.n_examples; }
  /** Bytes of records so far. */
  int64_t n_bytes() const { return static_cast<int64_t>(end_); }

 protected:
  /** `begin`: where the first record lies. */
  TokenWriter(const TokenForm& form, uint64_t begin);

  virtual void write(std::span<const std::byte> record) = 0;
  virtual void write_entry(const SequenceEntry& entry) = 0;
  virtual void write_example(uint64_t offset) = 0;
  const TokenFacts& facts() const { return facts_; }

 private:
  /** Writes record_, up to the next boundary, and gives the place where it lies. */
  uint64_t write_record();

  TokenFacts facts_;
  int64_t vocab_size_;
  uint64_t end_;
  std::vector<std::byte> record_;
};

class MemoryWriter : public TokenWriter {
 public:
  explicit MemoryWriter(const TokenForm& form) : TokenWriter(form, 0) {}
  std::shared_ptr<const TokenStore> finish() override;

 private:
  void write(std::span<const std::byte> record) override;
  void write_entry(const SequenceEntry& entry) override { index_.push_back(entry); }
  void write_example(uint64_t offset) override { examples_.push_back(offset); }

  std::vector<std::byte> data_;
  std::vector<SequenceEntry> index_;
  std::vector<uint64_t> examples_;
};

}  // namespace ferry
