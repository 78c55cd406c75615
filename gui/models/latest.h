#pragma once
// Work that takes longer than an event handler may, in a thread of its own. The latest question
// wins: one that waits is dropped for it, and an answer that comes too late is not heard.
//
//   latest.ask<ModelFacts>([config] { return read_model_facts(config); },
//                          [this](ModelFacts facts) { show(facts); });

#include <QObject>
#include <atomic>
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

  /** False: nobody will hear the answer, and the work may end early. */
  using IsWanted = std::function<bool()>;

  /** `work` runs in the thread and may not throw; `take` runs in this object's thread. */
  template <typename Answer>
  void ask(std::function<Answer(const IsWanted&)> work, std::function<void(Answer)> take) {
    put([work = std::move(work),
         take = std::move(take)](const IsWanted& is_wanted) -> std::function<void()> {
      auto answer = std::make_shared<Answer>(work(is_wanted));
      return [take, answer] { take(std::move(*answer)); };
    });
  }
  template <typename Answer>
  void ask(std::function<Answer()> work, std::function<void(Answer)> take) {
    ask<Answer>([work = std::move(work)](const IsWanted&) { return work(); }, std::move(take));
  }
  /** Nobody wants the answer any more. */
  void forget();
  /** A question has no answer yet. */
  bool is_busy() const { return answered_ != asked_; }

 private:
  using Work = std::function<std::function<void()>(const IsWanted&)>;
  void put(Work work);
  void run(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any wake_;
  Work waiting_;
  uint64_t waiting_number_ = 0;
  std::atomic<uint64_t> asked_ = 0;  // written by this object's thread
  uint64_t answered_ = 0;            // of this object's thread
  std::jthread thread_;              // started by the first question
};

}  // namespace ferry::gui
