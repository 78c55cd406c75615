#include "gui/models/latest_worker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "tests/gui/waiting.h"

namespace ferry::gui {
namespace {

TEST(LatestWorker, OnlyTheLatestResultArrives) {
  QObject receiver;
  LatestWorker worker(&receiver);
  std::vector<int> arrived;
  std::atomic<int> n_done = 0;
  for (int i = 0; i < 100; ++i) {
    worker.post([&, i](const LatestWorker::Turn& turn) {
      ++n_done;
      QThread::msleep(1);
      turn.deliver([&, i] { arrived.push_back(i); });
    });
    if (i % 10 == 0) QThread::msleep(2);
  }
  ASSERT_TRUE(wait_until([&] { return !arrived.empty(); }));
  EXPECT_EQ(arrived, std::vector<int>{99});
  EXPECT_LT(n_done, 100) << "those that waited were left out";
}

TEST(LatestWorker, AResultIsDroppedThatIsOvertakenOnItsWay) {
  QObject receiver;
  LatestWorker worker(&receiver);
  std::vector<int> arrived;
  std::atomic<bool> is_sent = false;
  worker.post([&](const LatestWorker::Turn& turn) {
    turn.deliver([&] { arrived.push_back(1); });
    is_sent = true;
  });
  while (!is_sent)
    QThread::msleep(1);
  // The result is in the queue, and the event loop has not run.
  worker.post([&](const LatestWorker::Turn& turn) {
    EXPECT_FALSE(turn.is_overtaken());
    turn.deliver([&] { arrived.push_back(2); });
  });
  ASSERT_TRUE(wait_until([&] { return !arrived.empty(); }));
  EXPECT_EQ(arrived, std::vector<int>{2});
  worker.post([&](const LatestWorker::Turn& turn) { turn.deliver([&] { arrived.push_back(3); }); });
  worker.forget();
  QThread::msleep(20);
  QCoreApplication::processEvents();
  EXPECT_EQ(arrived.size(), 1u);
}

TEST(LatestWorker, AnAnswerComesToTheLatestQuestionAlone) {
  QObject receiver;
  LatestWorker worker(&receiver);
  std::vector<int> answers;
  for (int i = 0; i < 20; ++i)
    worker.ask(
        [i] {
          QThread::msleep(5);
          return i;
        },
        [&](int answer, const QString& trouble) {
          EXPECT_EQ(trouble, "");
          answers.push_back(answer);
        });
  EXPECT_TRUE(worker.is_busy());
  ASSERT_TRUE(wait_until([&] { return !worker.is_busy(); }));
  EXPECT_EQ(answers, std::vector<int>{19});
  worker.ask([](const LatestWorker::Turn& turn) { return turn.is_overtaken() ? 2 : 1; },
             [&](int answer, const QString&) { answers.push_back(answer); });
  ASSERT_TRUE(wait_until([&] { return !worker.is_busy(); }));
  EXPECT_EQ(answers, (std::vector<int>{19, 1}));
  worker.ask([] { return 3; }, [&](int answer, const QString&) { answers.push_back(answer); });
  worker.forget();
  EXPECT_FALSE(worker.is_busy());
  wait_until([] { return false; }, 100);
  EXPECT_EQ(answers.size(), 2u) << "what is forgotten is silent";
}

TEST(LatestWorker, AQuestionThatFailsSaysWhy) {
  QObject receiver;
  LatestWorker worker(&receiver);
  QString said;
  int answer = -1;
  worker.ask([]() -> int { throw std::runtime_error("no disk"); },
             [&](int empty, const QString& trouble) {
               answer = empty;
               said = trouble;
             });
  ASSERT_TRUE(wait_until([&] { return !said.isEmpty(); }));
  EXPECT_EQ(said, "no disk");
  EXPECT_EQ(answer, 0);
}

TEST(LatestWorker, NobodyWaitsForAJobThatIsAtWork) {
  const auto is_at_work = std::make_shared<std::atomic<bool>>(false);
  const auto may_end = std::make_shared<std::atomic<bool>>(false);
  const auto has_ended = std::make_shared<std::atomic<bool>>(false);
  auto receiver = std::make_unique<QObject>();
  auto worker = std::make_unique<LatestWorker>(receiver.get());
  worker->post([=](const LatestWorker::Turn& turn) {
    *is_at_work = true;
    while (!*may_end)
      QThread::msleep(1);
    EXPECT_TRUE(turn.is_overtaken());
    turn.deliver([] { ADD_FAILURE() << "its receiver is gone"; });
    *has_ended = true;
  });
  while (!*is_at_work)
    QThread::msleep(1);
  worker.reset();
  receiver.reset();
  EXPECT_FALSE(*has_ended);  // the job may only end now
  *may_end = true;
  ASSERT_TRUE(wait_until([&] { return has_ended->load(); }));
  QCoreApplication::processEvents();
}

}  // namespace
}  // namespace ferry::gui
