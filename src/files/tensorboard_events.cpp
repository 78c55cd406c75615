#include "src/files/tensorboard_events.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <string_view>
#include <system_error>

#include "src/base/crc32c.h"
#include "src/files/write/atomic_file.h"
#include "src/files/write/write_error.h"

namespace ferry {
namespace {

// The numbers of fields are those of tensorflow/core/util/event.proto and framework/summary.proto.

constexpr std::string_view kPrefix = "events.out.tfevents.";

/** A value's bytes, little-endian as protobuf and the records want them and as every machine Ferry
 * runs on has them. */
template <typename T>
std::string bytes_of(T value) {
  const auto bytes = std::bit_cast<std::array<char, sizeof value>>(value);
  return {bytes.data(), bytes.size()};
}

/** A protobuf message in its wire format, field by field in the order of their numbers. */
class Message {
 public:
  Message& integer(uint32_t field, int64_t value) {
    key(field, 0);
    varint(static_cast<uint64_t>(value));
    return *this;
  }
  Message& fp64(uint32_t field, double value) {
    key(field, 1);
    bytes_ += bytes_of(value);
    return *this;
  }
  Message& text(uint32_t field, std::string_view value) {
    key(field, 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(uint32_t field, const Message& value) { return text(field, value.bytes_); }
  Message& fp32(uint32_t field, float value) {
    key(field, 5);
    bytes_ += bytes_of(value);
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void key(uint32_t field, uint32_t wire_type) { varint(field << 3 | wire_type); }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7)
      bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }

  std::string bytes_;
};

/** Masked so that a checksum over data that holds checksums stays a good one. */
std::string masked_crc32c(std::string_view data) {
  const uint32_t crc = crc32c(std::as_bytes(std::span(data)));
  return bytes_of(std::rotr(crc, 15) + 0xA282EAD8u);
}

std::string record_of(const Message& event) {
  const std::string length = bytes_of(uint64_t{event.bytes().size()});
  return length + masked_crc32c(length) + event.bytes() + masked_crc32c(event.bytes());
}

/** The time in the name of the newest event file there; -1 without one. */
int64_t newest_time_s(const std::filesystem::path& directory) {
  int64_t newest_s = -1;
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  for (; !error && entry != end(entry); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    int64_t time_s = 0;
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), time_s);
    newest_s = std::max(newest_s, time_s);
  }
  if (error) throw_write_error(directory, "listed", error.value());
  return newest_s;
}

std::string host_name() {
  std::array<char, 256> name{};  // longer than any that the system allows
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

/** TensorBoard reads the files in the order of their names, so the time in a new one is later than
 * the newest's: also in the same second, and when the clock was set back. */
std::filesystem::path next_file(const std::filesystem::path& directory, double time_s) {
  make_directories(directory);
  const int64_t name_time_s = std::max(static_cast<int64_t>(time_s), newest_time_s(directory) + 1);
  return directory / fmt::format("{}{:010}.{}.{}.0", kPrefix, name_time_s, host_name(), ::getpid());
}

}  // namespace

TensorboardWriter::TensorboardWriter(const std::filesystem::path& directory,
                                     int64_t n_steps,
                                     double time_s)
    : file_(next_file(directory, time_s), /*n_kept_bytes=*/0) {
  constexpr int64_t kStart = 1;  // SessionLog.START: from `step` on, what files before have is void
  file_.append(record_of(Message().fp64(1, time_s).text(3, "brain.Event:2")) +
               record_of(Message()
                             .fp64(1, time_s)
                             .integer(2, n_steps + 1)
                             .message(7, Message().integer(1, kStart))));
}

void TensorboardWriter::add(int64_t step,
                            double time_s,
                            std::span<const TensorboardScalar> scalars) {
  Message summary;
  for (const TensorboardScalar& scalar : scalars)
    summary.message(1, Message().text(1, scalar.tag).fp32(2, scalar.value));
  unwritten_ += record_of(Message().fp64(1, time_s).integer(2, step).message(5, summary));
  flush();
}

void TensorboardWriter::flush() {
  if (unwritten_.empty()) return;
  file_.append(unwritten_);
  unwritten_.clear();
}

}  // namespace ferry
