#pragma once
// Work that may take longer than an event handler may: a thread of its own, and the latest question
// wins. Answers of earlier ones are dropped.
//
//   background_.ask([path] { return read_all(path); },
//                   [this](Rows rows, const QString& trouble) { show(rows, trouble); });

#include <QObject>
#include <QString>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace ferry::gui {

/** A member of its owner. Everything but the work itself happens in the owner's thread. Its end
 * waits for the work in progress. */
class Background {
 public:
  explicit Background(QObject* owner) : owner_(owner) {}
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  ~Background() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
      next_ = nullptr;
    }
    wake_.notify_all();
  }

  /** `use` gets the result, and why there is none: then the result is an empty one. */
  template <typename Work, typename Use>
  void ask(Work work, Use use) {
    using Result = decltype(work());
    const int64_t id = ++asked_;
    is_busy_ = true;
    auto job = [this, id, do_work = std::move(work), use = std::move(use)]() mutable {
      auto result = std::make_shared<Result>();
      QString trouble;
      try {
        *result = do_work();
      } catch (const std::exception& error) {
        trouble = QString::fromUtf8(error.what());
      }
      QMetaObject::invokeMethod(
          owner_,
          [this, id, result, trouble, use = std::move(use)]() mutable {
            if (id != asked_) return;
            is_busy_ = false;
            use(std::move(*result), trouble);
          },
          Qt::QueuedConnection);
    };
    {
      const std::lock_guard lock(mutex_);
      next_ = std::move(job);
    }
    if (!thread_.joinable()) thread_ = std::jthread([this] { take_jobs(); });
    wake_.notify_one();
  }

  /** The answer to what was asked is not wanted any more. */
  void forget() {
    ++asked_;
    is_busy_ = false;
  }
  bool is_busy() const { return is_busy_; }

 private:
  void take_jobs() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return ends_ || next_; });
      if (ends_) return;
      const std::function<void()> job = std::exchange(next_, nullptr);
      lock.unlock();
      job();
      lock.lock();
    }
  }

  QObject* owner_;
  int64_t asked_ = 0;
  bool is_busy_ = false;
  std::mutex mutex_;  // of what both threads touch:
  std::condition_variable wake_;
  std::function<void()> next_;
  bool ends_ = false;
  std::jthread thread_;  // last: it ends first
};

}  // namespace ferry::gui
