#include "src/data/tokens/token_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "src/base/crc32c.h"
#include "src/base/error.h"

namespace ferry {
namespace {

constexpr uint64_t kMark = 0x31304e4b4f544f46;  // "FOTOKN01" with the layout's number at its end
constexpr size_t kPage_bytes = 4096;
constexpr size_t kOpen_bytes = 1 << 20;  // gathered before they are written

/** The first page. Numbers are in the order of bytes of the machines that Ferry runs on. */
struct Head {
  uint64_t mark = kMark;
  uint64_t key = 0;
  uint64_t n_file_bytes = 0;
  uint64_t index_begin = 0, n_entries = 0;
  uint64_t examples_begin = 0, n_examples_kept = 0;
  uint64_t checksums_begin = 0, n_checksums = 0;
  int64_t n_tokens = 0, n_examples = 0;
  int32_t id_bytes = 0, max_type_id = 0;
  uint32_t has_labels = 0, keeps_examples = 0;
  uint32_t checksum_of_checksums = 0;
  uint32_t zero = 0;
  uint64_t n_left_out = 0;  // 0 in files of versions that left none out
};
static_assert(std::is_trivially_copyable_v<Head> && sizeof(Head) < kPage_bytes);

/** The first page ends with a checksum of all before. */
constexpr size_t kHead_bytes = kPage_bytes - sizeof(uint32_t);

std::vector<std::byte> page_of(const Head& head) {
  std::vector<std::byte> page(kPage_bytes);
  std::memcpy(page.data(), &head, sizeof head);
  const uint32_t checksum = crc32c(std::span(page).first(kHead_bytes));
  std::memcpy(page.data() + kHead_bytes, &checksum, sizeof checksum);
  return page;
}

Head head_of(std::span<const std::byte> file) {
  if (file.size() < kPage_bytes) throw BadTokenFile("it is shorter than its first page");
  Head head;
  std::memcpy(&head, file.data(), sizeof head);
  if (head.mark != kMark) throw BadTokenFile("it is no file of tokens, or of another version");
  uint32_t checksum = 0;
  std::memcpy(&checksum, file.data() + kHead_bytes, sizeof checksum);
  if (checksum != crc32c(file.first(kHead_bytes))) throw BadTokenFile("its first page is damaged");
  return head;
}

template <typename T>
std::span<const T> array_at(std::span<const std::byte> file, uint64_t begin, uint64_t n) {
  return {reinterpret_cast<const T*>(file.data() + begin), n};
}

/** Throws BadTokenFile where the sections do not lie one behind the other. */
void check_head(const Head& head, size_t n_file_bytes, uint64_t key) {
  if (head.key != key) throw BadTokenFile("it has the tokens of other texts");
  if (head.n_file_bytes != n_file_bytes)
    throw BadTokenFile(
        fmt::format("it has {} bytes in place of {}", n_file_bytes, head.n_file_bytes));
  const uint64_t most = head.n_file_bytes;  // of anything: sums stay far from the largest number
  const bool is_whole =
      head.index_begin <= most && head.n_entries <= most && head.n_examples_kept <= most &&
      head.n_checksums <= most && head.index_begin >= kPage_bytes &&
      head.index_begin % alignof(SequenceEntry) == 0 &&
      head.examples_begin == head.index_begin + head.n_entries * sizeof(SequenceEntry) &&
      head.checksums_begin == head.examples_begin + head.n_examples_kept * sizeof(uint64_t) &&
      head.n_file_bytes == head.checksums_begin + head.n_checksums * sizeof(uint32_t) &&
      (head.id_bytes == 2 || head.id_bytes == 4);
  const uint64_t n_checked = head.checksums_begin - kPage_bytes;
  if (!is_whole || head.n_checksums !=
                       (n_checked + CheckedPieces::kPiece_bytes - 1) / CheckedPieces::kPiece_bytes)
    throw BadTokenFile("its first page is damaged");
}

template <typename T>
void append(std::vector<std::byte>& to, const T& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

FileWriter::FileWriter(const TokenForm& form, std::filesystem::path target, uint64_t key)
    : TokenWriter(form, kPage_bytes),
      key_(key),
      file_(target, kPrivateMode),
      index_(target),
      examples_(target),
      end_(kPage_bytes) {}

void FileWriter::write(std::span<const std::byte> record) {
  open_data_.insert(open_data_.end(), record.begin(), record.end());
  if (open_data_.size() >= kOpen_bytes) flush();
}

void FileWriter::flush() {
  file_.write_at(static_cast<int64_t>(end_), open_data_);
  add_to_checksums(open_data_);
  end_ += open_data_.size();
  open_data_.clear();
}

void FileWriter::add_to_checksums(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (checksums_.empty() || n_piece_bytes_ == CheckedPieces::kPiece_bytes) {
      checksums_.push_back(0);
      n_piece_bytes_ = 0;
    }
    const auto part =
        bytes.first(std::min(bytes.size(), CheckedPieces::kPiece_bytes - n_piece_bytes_));
    checksums_.back() = crc32c(part, checksums_.back());
    n_piece_bytes_ += part.size();
    bytes = bytes.subspan(part.size());
  }
}

void FileWriter::write_entry(const SequenceEntry& entry) {
  ++n_entries_;
  append(open_index_, entry);
  if (open_index_.size() < kOpen_bytes) return;
  index_.append(open_index_);
  open_index_.clear();
}

void FileWriter::write_example(uint64_t offset) {
  append(open_examples_, offset);
  if (open_examples_.size() < kOpen_bytes) return;
  examples_.append(open_examples_);
  open_examples_.clear();
}

/** Puts a section behind what is written. */
void FileWriter::copy(const ScratchFile& from) {
  for (int64_t at = 0; at < from.n_bytes();) {
    const int64_t n = std::min<int64_t>(from.n_bytes() - at, kOpen_bytes);
    open_data_.resize(static_cast<size_t>(n));
    from.read_at(at, open_data_);
    flush();
    at += n;
  }
}

std::shared_ptr<const TokenStore> FileWriter::finish() {
  flush();
  index_.append(open_index_);
  examples_.append(open_examples_);
  Head head = {.key = key_,
               .index_begin = end_,
               .n_entries = static_cast<uint64_t>(n_entries_),
               .examples_begin = end_ + static_cast<uint64_t>(index_.n_bytes()),
               .n_examples_kept = static_cast<uint64_t>(examples_.n_bytes()) / sizeof(uint64_t),
               .n_tokens = facts().n_tokens,
               .n_examples = facts().n_examples,
               .id_bytes = facts().id_bytes,
               .max_type_id = facts().max_type_id,
               .has_labels = facts().has_labels,
               .keeps_examples = facts().keeps_examples,
               .n_left_out = static_cast<uint64_t>(facts().n_left_out)};
  copy(index_);
  copy(examples_);
  head.checksums_begin = end_;
  head.n_checksums = checksums_.size();
  const auto checksums = std::as_bytes(std::span(checksums_));
  file_.write_at(static_cast<int64_t>(end_), checksums);
  head.n_file_bytes = end_ + checksums.size();
  head.checksum_of_checksums = crc32c(checksums);
  file_.write_at(0, page_of(head));
  file_.commit();
  return open_token_file(file_.target(), key_);
}

std::shared_ptr<const TokenStore> open_token_file(const std::filesystem::path& path, uint64_t key) {
  MappedFile file = MappedFile::open(path);
  const auto bytes = file.bytes();
  const Head head = head_of(bytes);
  check_head(head, bytes.size(), key);
  const auto checksums = array_at<uint32_t>(bytes, head.checksums_begin, head.n_checksums);
  if (crc32c(std::as_bytes(checksums)) != head.checksum_of_checksums)
    throw BadTokenFile("its checksums are damaged");
  auto pieces = std::make_unique<CheckedPieces>(std::move(file), kPage_bytes, head.checksums_begin,
                                                checksums);
  if (!pieces->are_good(head.index_begin, head.checksums_begin - head.index_begin))
    throw BadTokenFile("its index is damaged");
  const TokenFacts facts = {.n_tokens = head.n_tokens,
                            .n_examples = head.n_examples,
                            .n_left_out = static_cast<int64_t>(head.n_left_out),
                            .id_bytes = head.id_bytes,
                            .max_type_id = head.max_type_id,
                            .has_labels = head.has_labels != 0,
                            .keeps_examples = head.keeps_examples != 0};
  return std::make_shared<TokenStore>(
      facts, std::move(pieces), array_at<SequenceEntry>(bytes, head.index_begin, head.n_entries),
      array_at<uint64_t>(bytes, head.examples_begin, head.n_examples_kept));
}

}  // namespace ferry
