#include "offload/nvme/disk_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

#include "src/base/error.h"
#include "src/base/process/movement.h"

namespace ferry {
namespace {

/** Failures beside errno: the file has no bytes there, or the drive gave no answer in time. */
constexpr int kFileEnded = -1, kNoAnswer = -2;

std::string_view name_of(DiskOperation operation) {
  switch (operation) {
    case DiskOperation::read:
      return "read";
    case DiskOperation::write:
      return "written";
    case DiskOperation::flush:
      break;
  }
  return "flushed";
}

std::string_view hint_for(int code) {
  switch (code) {
    case EIO:
      return "the drive or its connection failed: see `dmesg` and `smartctl -a`; the run goes on "
             "from its last checkpoint once the drive is well or its data is on another one";
    case ENOSPC:
    case EDQUOT:
      return "free some space there, or choose a directory on another drive";
    case kNoAnswer:
      return "see `dmesg` for the drive; once it answers, the run goes on from its last checkpoint";
    case ENODEV:
    case ENXIO:
      return "the drive is gone: connect it again, and resume the run";
    case kFileEnded:
      return "another program has cut it short; resume the run from a checkpoint that is whole";
    case EROFS:
      return "the file system turned read-only, mostly after a fault of the drive: see `dmesg`";
    default:
      return "see `dmesg` for the drive and its file system";
  }
}

/** Nothing where `piece` now is what is left. Else the piece has ended, with 0 or a code. */
std::optional<int> advance(DiskPiece& piece, int64_t result) {
  if (result == -EAGAIN || result == -EINTR) return std::nullopt;
  if (result < 0) return static_cast<int>(-result);
  if (piece.operation == DiskOperation::flush || result >= piece.n_bytes) return 0;
  // The rest starts at a sector again; a part of one is moved twice.
  const int64_t n_moved = result / kDiskAlignment_bytes * kDiskAlignment_bytes;
  if (n_moved == 0) return piece.operation == DiskOperation::read ? kFileEnded : EIO;
  piece.offset_bytes += n_moved;
  piece.memory += n_moved;
  piece.n_bytes -= n_moved;
  return std::nullopt;
}

}  // namespace

DiskRequests::DiskRequests(Options options)
    : options_(std::move(options)),
      stripes_{static_cast<int>(options_.files.size())},
      flights_(static_cast<size_t>(options_.n_flights)),
      last_end_(Clock::now()) {
  for (int flight = options_.n_flights; flight-- > 0;)
    free_flights_.push_back(flight);
}

DiskTicket DiskRequests::add(DiskOperation operation,
                             int64_t offset_bytes,
                             std::byte* memory,
                             int64_t n_bytes) {
  std::function<void()> wake;
  DiskTicket ticket;
  {
    std::lock_guard lock(mutex_);
    if (free_requests_.empty()) {
      free_requests_.push_back(requests_.size());
      requests_.emplace_back();
    }
    const size_t i = free_requests_.back();
    free_requests_.pop_back();
    Request& request = requests_[i];
    request = {.generation = request.generation + 1,
               .operation = operation,
               .offset_bytes = offset_bytes,
               .memory = memory,
               .n_bytes = operation == DiskOperation::flush ? stripes_.n_files : n_bytes,
               .added = Clock::now()};
    ticket = DiskTicket{request.generation} << 32 | i;
    waiting_.push_back(i);
    if (std::exchange(wants_wake_, false)) wake = wake_;
  }
  may_cut_.notify_all();
  if (wake) wake();
  return ticket;
}

void DiskRequests::wait(DiskTicket ticket) {
  const auto i = static_cast<size_t>(ticket & UINT32_MAX);
  std::unique_lock lock(mutex_);
  FERRY_CHECK(i < requests_.size() && requests_[i].generation == ticket >> 32,
              "ticket {:#x} was waited for, or is of another disk", ticket);
  Request& request = requests_[i];
  while (!request.has_ended() && lost_code_ == 0 && !sees_loss(request.added))
    ended_.wait_until(lock, patience_end(request.added));
  const Request outcome = request;
  ++request.generation;  // the ticket is used up
  // Where its pieces may still come back, its place stays taken.
  if (!outcome.has_ended())
    fail(outcome, lost_code_,
         outcome.operation == DiskOperation::flush
             ? next_place(outcome)
             : stripes_.find(outcome.offset_bytes, outcome.n_bytes));
  free_requests_.push_back(i);
  if (outcome.code != 0) fail(outcome, outcome.code, outcome.failed);
}

bool DiskRequests::close() {
  std::unique_lock lock(mutex_);
  is_closed_ = true;
  may_cut_.notify_all();
  const auto began = Clock::now();
  const auto is_idle = [&] { return std::ssize(free_flights_) == options_.n_flights; };
  while (!is_idle() && lost_code_ == 0 && !sees_loss(began))
    ended_.wait_until(lock, patience_end(began));
  const bool is_over = is_idle();
  const std::function<void()> wake = wake_;
  lock.unlock();
  if (wake) wake();
  return is_over;
}

std::optional<DiskPiece> DiskRequests::next_piece() {
  std::lock_guard lock(mutex_);
  std::optional<DiskPiece> piece = cut_piece();
  // Where a flight is missing, the queue asks again after the next end.
  wants_wake_ = !piece && !free_flights_.empty();
  return piece;
}

void DiskRequests::on_wake(std::function<void()> wake) {
  std::lock_guard lock(mutex_);
  wake_ = std::move(wake);
}

std::optional<DiskPiece> DiskRequests::await_piece() {
  std::unique_lock lock(mutex_);
  std::optional<DiskPiece> piece;
  may_cut_.wait(lock, [&] { return (piece = cut_piece()) || is_closed_; });
  return piece;
}

std::optional<DiskPiece> DiskRequests::cut_piece() {
  if (waiting_.empty() || free_flights_.empty() || is_closed_ || lost_code_ != 0)
    return std::nullopt;
  Request& request = requests_[waiting_.front()];
  DiskPiece piece{
      .operation = request.operation, .request = waiting_.front(), .flight = free_flights_.back()};
  const Stripes::Place place = next_place(request);
  piece.file = place.file;
  if (request.operation == DiskOperation::flush) {
    request.n_cut += 1;
  } else {
    piece.offset_bytes = place.offset_bytes;
    piece.memory = request.memory + request.n_cut;
    piece.n_bytes = std::min(options_.piece_bytes, place.n_bytes);
    request.n_cut += piece.n_bytes;
  }
  ++request.n_under_way;
  if (request.n_cut == request.n_bytes) waiting_.pop_front();
  free_flights_.pop_back();
  flights_[static_cast<size_t>(piece.flight)] = {true, Clock::now()};
  return piece;
}

bool DiskRequests::take_result(DiskPiece& piece, int64_t result) {
  std::optional<int> code = advance(piece, result);
  if (!code) {
    {
      std::lock_guard lock(mutex_);
      if (lost_code_ != 0) code = lost_code_;  // nobody waits for it any more
    }
    // The system was short of something: it is not asked without a pause.
    if (!code && result == -EAGAIN) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (code) end(piece, *code);
  return code.has_value();
}

void DiskRequests::end(const DiskPiece& piece, int code) {
  note_movement();
  std::lock_guard lock(mutex_);
  Request& request = requests_[piece.request];
  --request.n_under_way;
  if (code != 0 && request.code == 0) {
    request.code = code;
    request.failed = {piece.file, piece.offset_bytes, piece.n_bytes};
    if (request.n_cut < request.n_bytes) waiting_.pop_front();
    request.n_cut = request.n_bytes;
  }
  flights_[static_cast<size_t>(piece.flight)].is_under_way = false;
  free_flights_.push_back(piece.flight);
  last_end_ = Clock::now();
  has_news_ = has_news_ || request.has_ended() || is_closed_;
}

void DiskRequests::announce() {
  {
    std::lock_guard lock(mutex_);
    if (!std::exchange(has_news_, false)) return;
  }
  ended_.notify_all();
}

void DiskRequests::lose(int code) {
  {
    std::lock_guard lock(mutex_);
    if (lost_code_ == 0) lost_code_ = code;
  }
  ended_.notify_all();
}

bool DiskRequests::is_closed() const {
  std::lock_guard lock(mutex_);
  return is_closed_;
}

Stripes::Place DiskRequests::next_place(const Request& request) const {
  if (request.operation == DiskOperation::flush)
    return {static_cast<int>(std::min<int64_t>(request.n_cut, stripes_.n_files - 1)), 0, 0};
  const int64_t at = std::min(request.n_cut, request.n_bytes - 1);
  return stripes_.find(request.offset_bytes + at, request.n_bytes - at);
}

/** The moment from which on the drive counts as lost if nothing changes. */
DiskRequests::Clock::time_point DiskRequests::patience_end(Clock::time_point added) const {
  auto since = Clock::time_point::max();
  for (const Flight& flight : flights_)
    if (flight.is_under_way) since = std::min(since, flight.began);
  // Not even asked for: the queue itself is held up.
  if (since == Clock::time_point::max()) since = std::max(added, last_end_);
  return since + options_.deadline;
}

bool DiskRequests::sees_loss(Clock::time_point added) {
  if (Clock::now() < patience_end(added)) return false;
  lost_code_ = kNoAnswer;
  ended_.notify_all();
  return true;
}

void DiskRequests::fail(const Request& request, int code, const Stripes::Place& place) const {
  const std::string& file = options_.files[static_cast<size_t>(place.file)];
  std::string cause;
  if (code == kFileEnded)
    cause = "the file ends before";
  else if (code == kNoAnswer)
    cause = fmt::format("the drive gave no answer for {:g} s",
                        std::chrono::duration<double>(options_.deadline).count());
  else
    cause = std::generic_category().message(code);
  const std::string where =
      request.operation == DiskOperation::flush
          ? ""
          : fmt::format(" at byte {} ({})", place.offset_bytes, format_bytes(place.n_bytes));
  throw Error(
      Fault::machine, "nvme",
      fmt::format("'{}' could not be {}{}: {}", file, name_of(request.operation), where, cause),
      hint_for(code));
}

}  // namespace ferry
