#include "src/files/growing_lines.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <system_error>
#include <vector>

#include "src/base/error.h"
#include "src/files/plain_file.h"

namespace ferry {
namespace {

constexpr size_t kRead_bytes = size_t{256} << 10;
/** A line of metrics has about 300, and its time is in it. */
constexpr size_t kLast_bytes = 512;

ssize_t read_at(int fd, std::span<char> into, int64_t offset) {
  for (;;) {
    const ssize_t count = ::pread(fd, into.data(), into.size(), offset);
    if (count >= 0 || errno != EINTR) return count;
  }
}

}  // namespace

void LineSplitter::add(std::string_view piece, const UseLine& use) {
  while (!piece.empty()) {
    const size_t end = piece.find('\n');
    const std::string_view part = piece.substr(0, end);
    const bool is_too_long = n_skipped_ + rest_.size() + part.size() > kLine_bytes_max;
    if (end == piece.npos) {
      if (is_too_long)
        n_skipped_ += std::exchange(rest_, {}).size() + part.size();
      else
        rest_ += part;
      return;
    }
    const size_t n_bytes = n_skipped_ + rest_.size() + part.size();
    if (!is_too_long) use(rest_.empty() ? part : (rest_ += part), line_begin_);
    rest_.clear();
    n_skipped_ = 0;
    line_begin_ += static_cast<int64_t>(n_bytes) + 1;
    piece.remove_prefix(end + 1);
  }
}

void read_lines(const std::filesystem::path& file,
                int64_t offset,
                const std::function<bool(std::string_view line, int64_t offset)>& use) {
  const PlainFile opened = open_plain_file(file);
  ::lseek(opened.fd.get(), offset, SEEK_SET);
  LineSplitter splitter(offset);
  std::vector<char> piece(kLine_bytes_max);
  bool goes_on = true;
  const UseLine use_while_wanted = [&](std::string_view line, int64_t at) {
    goes_on = goes_on && use(line, at);
  };
  while (goes_on) {
    const size_t n_read = read_some(opened, file, piece);
    if (n_read == 0) break;
    splitter.add({piece.data(), n_read}, use_while_wanted);
  }
  if (goes_on && !splitter.rest().empty()) use(splitter.rest(), splitter.rest_begin());
}

bool LineFollower::goes_on(int fd, const FileStamp& now) const {
  if (!seen_ || !now.is_of_same_file(*seen_) || now.n_bytes < n_read_) return n_read_ == 0;
  std::array<char, kLast_bytes> there;
  const std::span<char> last = std::span(there).first(last_.size());
  const auto n_bytes = static_cast<int64_t>(last.size());
  return read_at(fd, last, n_read_ - n_bytes) == n_bytes &&
         std::memcmp(last.data(), last_.data(), last.size()) == 0;
}

void LineFollower::read(int fd, size_t bytes_max, const UseLine& use, Growth& growth) {
  const auto n_left = static_cast<size_t>(seen_->n_bytes - n_read_);
  std::vector<char> piece(std::min({kRead_bytes, bytes_max, n_left}));
  while (growth.n_bytes < std::min(bytes_max, n_left)) {
    const ssize_t count = read_at(fd, piece, n_read_);
    if (count < 0) growth.trouble = std::generic_category().message(errno);
    if (count <= 0) return;
    const std::string_view got(piece.data(), static_cast<size_t>(count));
    n_read_ += count;
    growth.n_bytes += got.size();
    last_ += got.substr(got.size() - std::min(got.size(), kLast_bytes));
    last_.erase(0, last_.size() - std::min(last_.size(), kLast_bytes));
    splitter_.add(got, use);
  }
  growth.is_behind = n_read_ < seen_->n_bytes;
}

LineFollower::Growth LineFollower::follow(size_t bytes_max, const UseLine& use) {
  Growth growth;
  const auto found = file_stamp(path_);
  growth.is_there = found.has_value();
  if (!found || (found == seen_ && n_read_ == found->n_bytes)) return growth;
  PlainFile file;
  try {
    file = open_plain_file(path_);
  } catch (const Error& error) {
    growth.is_there = path_exists(path_);
    if (growth.is_there) growth.trouble = error.what();
    return growth;
  }
  struct ::stat status {};
  if (::fstat(file.fd.get(), &status) != 0) return growth;
  const FileStamp now = file_stamp(status);
  if (!goes_on(file.fd.get(), now)) {
    *this = LineFollower(std::move(path_));
    growth.is_anew = growth.is_behind = true;
    return growth;
  }
  seen_ = now;
  read(file.fd.get(), bytes_max, use, growth);
  return growth;
}

}  // namespace ferry
