#include "offload/step/step_trace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <string>
#include <string_view>

#include "src/base/error.h"
#include "src/base/unique_fd.h"

namespace ferry {
namespace {

using Intervals = std::vector<std::pair<double, double>>;

/** The intervals without overlaps, ascending. */
Intervals joined(Intervals intervals) {
  std::ranges::sort(intervals);
  Intervals out;
  for (const auto& [begin, end] : intervals)
    if (!out.empty() && begin <= out.back().second)
      out.back().second = std::max(out.back().second, end);
    else
      out.push_back({begin, end});
  return out;
}

double length_of(const Intervals& joined) {
  double sum = 0;
  for (const auto& [begin, end] : joined)
    sum += end - begin;
  return sum;
}

double common_length(const Intervals& a, const Intervals& b) {
  double sum = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    sum += std::max(0.0, std::min(a[i].second, b[j].second) - std::max(a[i].first, b[j].first));
    ++(a[i].second < b[j].second ? i : j);
  }
  return sum;
}

double first_begin(std::span<const TimedAction> actions) {
  double first = std::numeric_limits<double>::infinity();
  for (const TimedAction& action : actions)
    first = std::min(first, action.begin_s);
  return first;
}

}  // namespace

Overlap overlap_of(std::span<const TimedAction> actions) {
  Overlap overlap;
  if (actions.empty()) return overlap;
  PerQueue<Intervals> by_queue;
  Intervals beside;
  double last = actions.front().end_s;
  for (const TimedAction& action : actions) {
    by_queue[action.queue].push_back({action.begin_s, action.end_s});
    if (action.queue != QueueId::compute && action.queue != QueueId::decision)
      beside.push_back({action.begin_s, action.end_s});
    last = std::max(last, action.end_s);
  }
  for (size_t q = 0; q < kQueues; ++q) {
    by_queue[q] = joined(std::move(by_queue[q]));
    overlap.busy_s[q] = length_of(by_queue[q]);
  }
  beside = joined(std::move(beside));
  overlap.window_s = last - first_begin(actions);
  overlap.beside_s = length_of(beside);
  overlap.hidden_s = common_length(beside, by_queue[QueueId::compute]);
  return overlap;
}

namespace {

constexpr std::string_view kTraceBegin = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";

/** A new file, or the one there where it is a trace: a preset, which may be somebody else's, can
 * name any file of the user. */
UniqueFd open_trace(const std::filesystem::path& file) {
  const auto refuse = [&](std::string_view what) {
    throw Error(Fault::usage, "trace", fmt::format("'{}' {}", file.string(), what),
                "name a new file");
  };
  UniqueFd fd(::open(file.c_str(),
                     O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0666));
  if (!fd && errno == ELOOP) refuse("is a link, and a trace is written through none");
  struct stat found {};
  if (!fd || ::fstat(fd.get(), &found) != 0) return {};
  std::string begin(kTraceBegin.size(), '\0');
  if (!S_ISREG(found.st_mode)) refuse("is no plain file");
  if (found.st_size > 0 &&
      (::pread(fd.get(), begin.data(), begin.size(), 0) != static_cast<ssize_t>(begin.size()) ||
       begin != kTraceBegin))
    refuse("is there and is no trace: it is not overwritten");
  return fd;
}

bool write_whole(int fd, std::string_view text) {
  if (::ftruncate(fd, 0) != 0) return false;
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace

void write_chrome_trace(const std::filesystem::path& file, std::span<const TimedAction> actions) {
  std::string text(kTraceBegin);
  for (int q = 0; q < kQueues; ++q)
    text +=
        fmt::format(R"({{"ph":"M","pid":1,"tid":{},"name":"thread_name","args":{{"name":"{}"}}}},)"
                    "\n",
                    q, name_of(static_cast<QueueId>(q)));
  const double start = actions.empty() ? 0 : first_begin(actions);
  for (const TimedAction& action : actions)
    text += fmt::format(
        R"({{"ph":"X","pid":1,"tid":{},"name":"{}","cat":"{}","ts":{:.3f},"dur":{:.3f},)"
        R"("args":{{"step":{},"block":{}}}}},)"
        "\n",
        static_cast<int>(action.queue), action.name, name_of(action.verb),
        (action.begin_s - start) * 1e6, (action.end_s - action.begin_s) * 1e6, action.step,
        action.block);
  text.erase(text.size() - 2);  // the last comma
  text += "\n]}\n";
  const UniqueFd fd = open_trace(file);
  if (!fd || !write_whole(fd.get(), text))
    throw Error(Fault::machine, "trace", fmt::format("'{}' cannot be written", file.string()),
                "name a file in a directory that exists and has room");
}

}  // namespace ferry
