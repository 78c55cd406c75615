#include "gui/models/latest_worker.h"

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <utility>

namespace ferry::gui {

namespace {

std::atomic<int> n_abandoned = 0;

/** A thread that is still at work when the program ends must not see what is destroyed then. */
void leave_with_abandoned_threads() {
  static const int once = on_exit(
      [](int status, void*) {
        if (n_abandoned == 0) return;
        std::fflush(nullptr);
        ::_exit(status);
      },
      nullptr);
  static_cast<void>(once);
}

}  // namespace

struct LatestWorker::State {
  std::mutex mutex;
  std::condition_variable is_wanted;
  QObject* receiver = nullptr;  ///< null: it is gone
  std::optional<std::pair<uint64_t, std::function<void(const Turn&)>>> waiting;
  bool is_at_work = false, is_over = false, is_abandoned = false;
  std::atomic<uint64_t> latest = 0;
};

bool LatestWorker::Turn::is_overtaken() const {
  return state_->latest != number_;
}

void LatestWorker::Turn::deliver(std::function<void()> done) const {
  const std::lock_guard lock(state_->mutex);
  if (!state_->receiver || is_overtaken()) return;
  QMetaObject::invokeMethod(
      state_->receiver,
      [turn = *this, done = std::move(done)] {
        if (!turn.is_overtaken()) done();
      },
      Qt::QueuedConnection);
}

LatestWorker::LatestWorker(QObject* receiver) : state_(std::make_shared<State>()) {
  state_->receiver = receiver;
}

LatestWorker::~LatestWorker() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->receiver = nullptr;
    state_->is_over = true;
    state_->waiting.reset();
    ++state_->latest;
    if (state_->is_at_work) {
      leave_with_abandoned_threads();
      state_->is_abandoned = true;
      ++n_abandoned;
    }
  }
  state_->is_wanted.notify_one();
  if (!thread_.joinable()) return;
  if (state_->is_abandoned)
    thread_.detach();
  else
    thread_.join();
}

void LatestWorker::post(std::function<void(const Turn&)> job) {
  is_busy_ = false;
  {
    const std::lock_guard lock(state_->mutex);
    state_->waiting.emplace(++state_->latest, std::move(job));
  }
  if (!thread_.joinable())
    thread_ = std::thread([state = state_] { work(state); });
  else
    state_->is_wanted.notify_one();
}

void LatestWorker::forget() {
  is_busy_ = false;
  const std::lock_guard lock(state_->mutex);
  state_->waiting.reset();
  ++state_->latest;
}

void LatestWorker::work(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  for (;;) {
    state->is_wanted.wait(lock, [&] { return state->is_over || state->waiting; });
    if (state->is_over) break;
    Turn turn;
    turn.state_ = state;
    turn.number_ = state->waiting->first;
    auto job = std::move(state->waiting->second);
    state->waiting.reset();
    state->is_at_work = true;
    lock.unlock();
    job(turn);
    job = nullptr;
    lock.lock();
    state->is_at_work = false;
  }
  if (state->is_abandoned) --n_abandoned;
}

}  // namespace ferry::gui
