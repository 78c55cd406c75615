#include "offload/step/step_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "src/base/error.h"

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
  std::array<Intervals, kQueues> by_queue;
  Intervals beside;
  double last = actions.front().end_s;
  for (const TimedAction& action : actions) {
    by_queue[static_cast<size_t>(action.queue)].push_back({action.begin_s, action.end_s});
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
  overlap.hidden_s = common_length(beside, by_queue[static_cast<size_t>(QueueId::compute)]);
  return overlap;
}

void write_chrome_trace(const std::filesystem::path& file, std::span<const TimedAction> actions) {
  std::string text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
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
  std::ofstream out(file);
  if (!(out << text).flush())
    throw Error(Fault::machine, "trace", fmt::format("'{}' cannot be written", file.string()),
                "name a file in a directory that exists and has room");
}

}  // namespace ferry
