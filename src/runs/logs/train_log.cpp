#include "src/runs/logs/train_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <system_error>
#include <utility>

#include "src/base/print.h"
#include "src/base/utf8.h"
#include "src/runs/logs/wall_time.h"

namespace ferry::runs {
namespace {

constexpr size_t kUnwritten_bytes_max = 64 << 10;

bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) ||
         std::string_view("_-./=:,@%+").find(c) != std::string_view::npos;
}

std::string quoted(const std::string& word) {
  if (!word.empty() && std::ranges::all_of(word, is_plain)) return word;
  std::string out = "'";
  for (char c : word)
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/** True if the last line has its end; a kill or a full disk may have cut it. */
bool ends_with_newline(int fd, int64_t n_bytes) {
  char last = '\n';
  return ::pread(fd, &last, 1, n_bytes - 1) == 1 && last == '\n';
}

}  // namespace

std::string shell_line(std::span<const std::string> words) {
  std::string line;
  for (const std::string& word : words)
    line += (line.empty() ? "" : " ") + quoted(word);
  return line;
}

TrainLog::TrainLog(const std::filesystem::path& run, std::span<const std::string> command)
    : path_(run / kTrainLogName),
      // A link could lead to any file; a pipe would wait for its reader.
      fd_(::open(
          path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600)) {
  if (!fd_) {
    complain(errno);
    return;
  }
  struct stat status {};
  const bool goes_on = ::fstat(fd_.get(), &status) == 0 && status.st_size > 0;
  is_cut_ = goes_on && !ends_with_newline(fd_.get(), status.st_size);
  add((goes_on ? "the run is resumed: " : "") + shell_line(command));
}

void TrainLog::add(std::string_view line) {
  if (!fd_) return;
  const std::string time = now_in_words();
  std::string text;
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find('\n', begin), line.size());
    if (end > begin) text += time + " " + escaped(line.substr(begin, end - begin)) + "\n";
    begin = end + 1;
  }
  write(text);
}

void TrainLog::write(std::string text) {
  text.insert(0, std::exchange(unwritten_, {}));
  if (is_cut_) text.insert(text.begin(), '\n');
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(fd_.get(), text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int code = errno;
      text.erase(0, done);
      if (text.size() <= kUnwritten_bytes_max) {
        is_cut_ = is_cut_ && done == 0;
        // The end of a line whose beginning is there goes on with it.
        if (is_cut_) text.erase(0, 1);
        unwritten_ = std::move(text);
      } else {
        is_cut_ |= done > 0;
      }
      return complain(code);
    }
    done += static_cast<size_t>(n);
  }
  is_cut_ = false;
}

void TrainLog::complain(int code) {
  if (std::exchange(has_complained_, true)) return;
  log_line(fmt::format("'{}' cannot be written: {}; training goes on", path_.string(),
                       std::generic_category().message(code)));
}

}  // namespace ferry::runs
