#pragma once
// Work that takes longer than an event handler may, in a thread of its own. The latest question
// wins: one that waits is dropped for it, and an answer that comes too late is not heard.
//
//   latest.ask<ModelFacts>([config] { return read_model_facts(config); },
//                          [this](ModelFacts facts) { show(facts); });

#include <QObject>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

namespace ferry::gui {

class Latest : public QObject {
 public:
  explicit Latest(QObject* parent = nullptr);
  /** Waits for the work that goes on. */
  ~Latest() override;

  /** `work` runs in the thread and may not throw; `take` runs in this object's thread. */
  template <typename Answer>
  void ask(std::function<Answer()> work, std::function<void(Answer)> take) {
    put([work = std::move(work), take = std::move(take)]() -> std::function<void()> {
      auto answer = std::make_shared<Answer>(work());
      return [take, answer] { take(std::move(*answer)); };
    });
  }
  /** Nobody wants the answer any more. */
  void forget();
  /** A question has no answer yet. */
  bool is_busy() const { return answered_ != asked_; }

 private:
  using Work = std::function<std::function<void()>()>;
  void put(Work work);
  void run(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any wake_;
  Work waiting_;
  uint64_t waiting_number_ = 0;
  uint64_t asked_ = 0, answered_ = 0;  // of this object's thread
  std::jthread thread_;                // started by the first question
};

}  // namespace ferry::gui
