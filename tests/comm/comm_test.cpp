// Ranks that are threads, and a rank alone. Ranks that are processes have gloo_test.cpp.

#include "src/comm/comm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "src/base/error.h"
#include "src/comm/local_comm.h"
#include "src/comm/names.h"
#include "src/comm/thread_comm.h"
#include "tests/comm/every_call.h"

namespace ferry {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr milliseconds kLong = 120s;

/** Runs a function in a thread of each rank, which owns its Comm. */
void run_ranks(int world,
               milliseconds deadline,
               const std::function<void(std::unique_ptr<Comm> comm)>& work) {
  std::vector<std::unique_ptr<Comm>> comms = make_thread_comms(world, deadline);
  std::vector<std::jthread> threads;
  for (auto& comm : comms)
    threads.emplace_back([&work, comm = std::move(comm)]() mutable { work(std::move(comm)); });
}

/** What a call throws; empty where it returns. */
std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    EXPECT_EQ(e.fault(), Fault::machine);
    return e.what();
  }
  return {};
}

TEST(LocalComm, EveryCallIsTheIdentity) {
  LocalComm comm;
  check_every_call(comm);
  check_sizes(comm, 1 << 20);
  check_groups(comm);
}

class ThreadComms : public testing::TestWithParam<int> {};

TEST_P(ThreadComms, EveryCall) {
  run_ranks(GetParam(), kLong, [](auto comm) { check_every_call(*comm); });
}

TEST_P(ThreadComms, MessagesOfAnySize) {
  run_ranks(GetParam(), kLong,
            [](auto comm) { check_sizes(*comm, (comm->world() == 3 ? 64 : 2) << 20); });
}

TEST_P(ThreadComms, GroupsWorkAtTheSameTime) {
  run_ranks(GetParam(), kLong, [](auto comm) { check_groups(*comm); });
}

INSTANTIATE_TEST_SUITE_P(Worlds, ThreadComms, testing::Values(1, 2, 3, 4));

TEST(ThreadComm, ALateRankIsNamedAndTheOthersStayFailed) {
  std::atomic<int> n_failed = 0;
  run_ranks(3, kLong, [&](auto comm) {
    comm->barrier();
    comm->set_deadline(2s);
    if (comm->rank() == 1) {
      while (n_failed < 2)
        std::this_thread::sleep_for(1ms);
      // It comes too late, and hears why the others are no longer there.
      EXPECT_THAT(message_of([&] { comm->barrier(); }),
                  AllOf(StartsWith("[comm.barrier]"), HasSubstr("stopped: rank 1 did not come")));
      return;
    }
    EXPECT_THAT(message_of([&] { comm->barrier(); }),
                AllOf(StartsWith("[comm.barrier] "), HasSubstr("rank 1 did not come within 2 s")));
    const auto start = std::chrono::steady_clock::now();
    comm->set_deadline(kLong);
    EXPECT_THAT(message_of([&] { comm->gather_values(1); }),
                AllOf(StartsWith("[comm.all_gather] "), HasSubstr("lost before: ")));
    EXPECT_LT(std::chrono::steady_clock::now() - start, kLong);
    ++n_failed;
    while (n_failed < 2)
      std::this_thread::sleep_for(1ms);
  });
}

TEST(ThreadComm, ARankThatIsDestroyedEndsThoseThatWaitForIt) {
  run_ranks(4, kLong, [](auto comm) {
    if (comm->rank() == 2) return;
    // Rank 3 receives from rank 0 alone, which waits for rank 2.
    std::byte byte{};
    if (comm->rank() == 3)
      EXPECT_THAT(message_of([&] {
                    comm->receive({&byte, 1}, 0);
                  }),
                  HasSubstr("[comm.receive] rank 0 stopped: rank 2 is gone"));
    else if (comm->rank() == 0)
      EXPECT_THAT(message_of([&] {
                    comm->receive({&byte, 1}, 2);
                  }),
                  HasSubstr("[comm.receive] rank 2 is gone"));
    else
      EXPECT_THAT(message_of([&] {
                    comm->send({&byte, 1}, 2);
                  }),
                  HasSubstr("[comm.send] rank 2 is gone"));
  });
}

TEST(ThreadComm, AGroupNamesTheRanksOfTheRun) {
  run_ranks(4, kLong, [](auto comm) {
    std::unique_ptr<Comm> group = comm->split(comm->rank() / 2);
    if (comm->rank() == 3)
      group.reset();
    else if (comm->rank() == 2)
      EXPECT_THAT(message_of([&] { group->barrier(); }), HasSubstr("rank 3 is gone"));
    // The others, and the whole, go on.
    else
      group->barrier();
    comm->barrier();
  });
}

/** A rank that fails takes its messages back: nobody reads memory that it has freed. */
TEST(ThreadComm, NoMessageIsLeftBehind) {
  std::atomic<bool> has_failed = false;
  run_ranks(2, kLong, [&](auto comm) {
    if (comm->rank() == 0) {
      comm->set_deadline(50ms);
      const auto bytes = std::make_unique<std::vector<std::byte>>(1000);
      EXPECT_THAT(message_of([&] { comm->send(*bytes, 1); }), HasSubstr("rank 1 did not come"));
      has_failed = true;
      return;
    }
    while (!has_failed)
      std::this_thread::sleep_for(1ms);
    std::vector<std::byte> bytes(1000);
    EXPECT_THAT(message_of([&] { comm->receive(bytes, 0); }), HasSubstr("rank 0 stopped: rank 1"));
  });
}

/** A message may be offered while a rank copies another one. */
TEST(ThreadComm, NoMessageIsOverseen) {
  constexpr int kRounds = 5000;
  run_ranks(3, kLong, [&](auto comm) {
    std::vector<std::vector<std::byte>> out(3, std::vector<std::byte>(2000)), in = out;
    for (int round = 0; round < kRounds; ++round) {
      std::vector<Comm::SentBytes> sends(3);
      std::vector<Comm::ReceivedBytes> receives(3);
      for (size_t peer = 0; peer < 3; ++peer) {
        if (peer == static_cast<size_t>(comm->rank())) continue;
        sends[peer] = out[peer];
        receives[peer] = in[peer];
      }
      comm->exchange(sends, receives);
    }
  });
}

TEST(CommNames, RanksAndTimes) {
  EXPECT_EQ(name_ranks({4}), "rank 4");
  EXPECT_EQ(name_ranks({0, 2}), "ranks 0 and 2");
  EXPECT_EQ(name_ranks({0, 1, 7}), "ranks 0, 1 and 7");
  EXPECT_EQ(name_ranks(std::vector<int>(40, 3)),
            "ranks 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3 and 28 others");
  EXPECT_EQ(name_time(60s), "60 s");
  EXPECT_EQ(name_time(1500ms), "1.5 s");
}

}  // namespace
}  // namespace ferry
