#include "gui/models/latest.h"

#include <QMetaObject>

namespace ferry::gui {

Latest::Latest(QObject* parent) : QObject(parent) {}

Latest::~Latest() {
  ++asked_;
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void Latest::put(Work work) {
  {
    const std::lock_guard lock(mutex_);
    waiting_ = std::move(work);
    waiting_number_ = ++asked_;
  }
  if (!thread_.joinable())
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  wake_.notify_one();
}

void Latest::forget() {
  const std::lock_guard lock(mutex_);
  waiting_ = {};
  answered_ = ++asked_;
}

void Latest::run(const std::stop_token& stop) {
  while (true) {
    Work work;
    uint64_t number = 0;
    {
      std::unique_lock lock(mutex_);
      if (!wake_.wait(lock, stop, [this] { return static_cast<bool>(waiting_); })) return;
      work = std::exchange(waiting_, {});
      number = waiting_number_;
    }
    const std::function<void()> take = work([this, number] { return number == asked_; });
    if (stop.stop_requested()) return;
    QMetaObject::invokeMethod(
        this,
        [this, number, take] {
          if (number != asked_) return;
          answered_ = number;
          take();
        },
        Qt::QueuedConnection);
  }
}

}  // namespace ferry::gui
