#include "src/measure/transfers/copy_traffic.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/error.h"

namespace ferry::measure {
namespace {

/** Between two looks at the events; the queues hold several times as much. */
constexpr std::chrono::microseconds kLook{50};
constexpr int kUnderWay = 4;                     ///< groups
constexpr int64_t kGroup_bytes_min = 16 * kMiB;  ///< at least: 0.3 ms at 55 GB/s

}  // namespace

CopyTraffic::CopyTraffic(Bench& bench, const Options& options)
    : device_(bench.device()),
      piece_bytes_(options.piece_bytes),
      n_pieces_(static_cast<int>(
          std::max<int64_t>(1, kGroup_bytes_min / std::max<int64_t>(1, options.piece_bytes)))) {
  const int64_t room_bytes = bench.from_host.n_bytes();
  FERRY_CHECK(piece_bytes_ > 0 && piece_bytes_ <= room_bytes, "pieces of {} bytes in {}",
              piece_bytes_, room_bytes);
  bench.gpu.reset();
  for (const QueueId queue : {QueueId::h2d, QueueId::d2h}) {
    if (!(queue == QueueId::h2d ? options.h2d : options.d2h)) continue;
    Arena& host = queue == QueueId::h2d ? bench.from_host : bench.to_host;
    host.reset();
    Direction direction{.queue = queue, .room_bytes = room_bytes};
    direction.host = host.take(room_bytes);
    direction.gpu = bench.gpu.take(room_bytes);
    for (int i = 0; i < kUnderWay; ++i)
      direction.free.push_back(device_.make_event(direction.queue));
    directions_.push_back(std::move(direction));
  }
  thread_ = std::thread([this] { work(); });
  try {
    await(1);
  } catch (...) {
    stops_ = true;
    thread_.join();
    throw;
  }
}

CopyTraffic::~CopyTraffic() {
  stops_ = true;
  if (thread_.joinable()) thread_.join();
}

void CopyTraffic::work() {
  try {
    while (!stops_) {
      for (Direction& direction : directions_)
        keep_filled(direction);
      std::this_thread::sleep_for(kLook);
    }
    device_.drain();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    progressed_.notify_all();
  }
}

void CopyTraffic::keep_filled(Direction& direction) {
  int n_completed = 0;
  while (!direction.under_way.empty() && device_.happened(direction.under_way.front())) {
    direction.free.push_back(direction.under_way.front());
    direction.under_way.pop_front();
    ++n_completed;
  }
  if (n_completed > 0) {
    device_.wait_host(direction.free.back(), std::chrono::milliseconds(0));  // rethrows
    const std::lock_guard lock(mutex_);
    direction.looks.push_back({Clock::now(), n_completed});
    progressed_.notify_all();
  }
  while (!direction.free.empty())
    submit_group(direction);
}

/** Through all of the memory in turn: what was copied last is in no cache. */
void CopyTraffic::submit_group(Direction& direction) {
  for (int i = 0; i < n_pieces_; ++i) {
    if (direction.at_bytes + piece_bytes_ > direction.room_bytes) direction.at_bytes = 0;
    std::byte *host = direction.host + direction.at_bytes,
              *gpu = direction.gpu + direction.at_bytes;
    const bool is_up = direction.queue == QueueId::h2d;
    device_.submit(direction.queue,
                   [this, queue = direction.queue, to = is_up ? gpu : host,
                    from = is_up ? host : gpu] { device_.copy(queue, to, from, piece_bytes_); });
    direction.at_bytes += piece_bytes_;
  }
  const EventId event = direction.free.back();
  direction.free.pop_back();
  device_.record(event);
  direction.under_way.push_back(event);
}

void CopyTraffic::await(int n, Clock::time_point from) {
  const auto has_enough = [&](const Direction& direction) {
    const auto& looks = direction.looks;
    return std::count_if(looks.begin(), looks.end(),
                         [&](const Look& look) { return look.time > from; }) >= n;
  };
  std::unique_lock lock(mutex_);
  progressed_.wait(lock, [&] {
    return failure_ || std::all_of(directions_.begin(), directions_.end(), has_enough);
  });
  if (failure_) std::rethrow_exception(failure_);
}

void CopyTraffic::stop() {
  stops_ = true;
  if (thread_.joinable()) thread_.join();
  if (failure_) std::rethrow_exception(failure_);
}

double CopyTraffic::bytes_per_s(QueueId queue, Clock::time_point from) const {
  const std::lock_guard lock(mutex_);
  for (const Direction& direction : directions_) {
    if (direction.queue != queue) continue;
    const auto& looks = direction.looks;
    const auto first = std::find_if(looks.begin(), looks.end(),
                                    [&](const Look& look) { return look.time > from; });
    if (looks.end() - first < 2) return 0;
    // From look to look: what was seen at the first had come before.
    int64_t n_groups = 0;
    for (auto look = first + 1; look != looks.end(); ++look)
      n_groups += look->n_groups;
    const double seconds = std::chrono::duration<double>(looks.back().time - first->time).count();
    return static_cast<double>(n_groups * n_pieces_ * piece_bytes_) / seconds;
  }
  return 0;
}

}  // namespace ferry::measure
