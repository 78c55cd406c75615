#include "gui/models/latest_worker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>

#include "tests/gui/waiting.h"

namespace ferry::gui {
namespace {

using test::wait_until;

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
  QElapsedTimer timer;
  timer.start();
  worker.reset();
  receiver.reset();
  EXPECT_LT(timer.elapsed(), 1000);
  *may_end = true;
  ASSERT_TRUE(wait_until([&] { return has_ended->load(); }));
  QCoreApplication::processEvents();
}

}  // namespace
}  // namespace ferry::gui
