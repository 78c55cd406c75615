// Ranks that are processes.

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "src/base/error.h"
#include "src/comm/addresses.h"
#include "src/comm/rank_environment.h"
#include "src/comm/rendezvous.h"
#include "tests/comm/every_call.h"
#include "tests/comm/rank_process.h"

/** In place of the C library's, for LibTorch, too. With TEST_HOLDS_CONNECTIONS a rank never
 * connects to another one, but to the store: it died before, and no packet says so. */
extern "C" int connect(int socket, const sockaddr* address, socklen_t n_bytes) {
  int type = 0;
  socklen_t length = sizeof type;
  ::getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &length);
  const char* const port = std::getenv("MASTER_PORT");
  if (std::getenv("TEST_HOLDS_CONNECTIONS") && port && type == SOCK_STREAM &&
      address->sa_family == AF_INET &&
      ntohs(reinterpret_cast<const sockaddr_in*>(address)->sin_port) != std::stoi(port))
    while (true)
      ::pause();
  return static_cast<int>(::syscall(SYS_connect, socket, address, n_bytes));
}

namespace ferry {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

// --- What the ranks do ---

constexpr size_t kLarge_bytes = size_t{32} << 20;
constexpr auto kShort = 2s;  // a deadline that passes in the test
constexpr auto kSoon = 30s;  // half of the deadline that options give

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/** What a call throws; empty where it returns. */
std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

std::unique_ptr<Comm> connect_rank() {
  const RankEnvironment environment = *read_rank_environment(std::getenv);
  ConnectOptions options;
  if (const std::string seconds = variable("TEST_CONNECT_S"); !seconds.empty())
    options.connect_deadline = std::chrono::seconds(std::stoi(seconds));
  options.interface = variable("TEST_INTERFACE");
  if (environment.rank == 0 && variable("TEST_LISTENER") == "passed")
    options.listener = UniqueFd(RankProcess::kPassedFd);
  return connect(environment, std::move(options));
}

void call_everything() {
  const auto comm = connect_rank();
  // Gloo may write to a connection that a rank has closed: that must not end this process.
  if (comm->world() > 1) ::raise(SIGPIPE);
  check_every_call(*comm);
  check_sizes(*comm, (comm->world() == 3 ? 64 : 2) << 20);
  check_groups(*comm);
}

/** Two calls that fail, when the rank is told to make them; it ends when it is told to. */
void fail_twice() {
  const auto comm = connect_rank();
  comm->barrier();
  say("ready");
  hear();
  if (variable("TEST_DEADLINE") == "short") comm->set_deadline(kShort);
  say(message_of([&] { comm->barrier(); }));
  say(message_of([&] { comm->gather_values(1); }));
  hear();
}

/** Messages around a ring until a rank is missing. */
void ring() {
  const auto comm = connect_rank();
  const int world = comm->world();
  std::vector<std::byte> sent(kLarge_bytes), received(kLarge_bytes);
  std::vector<Comm::SentBytes> sends(world);
  std::vector<Comm::ReceivedBytes> receives(world);
  sends[(comm->rank() + 1) % world] = sent;
  receives[(comm->rank() + world - 1) % world] = received;
  comm->exchange(sends, receives);
  say("ready");
  say(message_of([&] {
    for (;;)
      comm->exchange(sends, receives);
  }));
}

/** Messages from rank 0 to rank 1 until one of them is missing. */
void one_way() {
  const auto comm = connect_rank();
  std::vector<std::byte> bytes(kLarge_bytes);
  const auto move = [&] {
    if (comm->rank() == 0)
      comm->send(bytes, 1);
    else
      comm->receive(bytes, 0);
  };
  move();
  say("ready");
  say(message_of([&] {
    for (;;)
      move();
  }));
}

/** Rank 1 sends what rank 0 does not expect. */
void mismatch() {
  const auto comm = connect_rank();
  comm->barrier();
  comm->set_deadline(kShort);
  std::vector<std::byte> bytes(comm->rank() == 0 ? 8 : 16);
  say(message_of([&] {
    if (comm->rank() == 0)
      comm->receive(bytes, 1);
    else
      comm->send(bytes, 0);
  }));
}

/** Ends the meeting once a rank is gone, like a run that watches its ranks. */
void connect_until_noticed() {
  const auto noticed = Clock::now() + 1500ms;
  ConnectOptions options;
  options.while_waiting = [noticed] {
    if (Clock::now() > noticed) throw Error(Fault::machine, "test.rank", "a rank is gone");
  };
  const RankEnvironment environment = *read_rank_environment(std::getenv);
  if (environment.rank == 0) options.listener = UniqueFd(RankProcess::kPassedFd);
  const auto start = Clock::now();
  say(message_of([&] { connect(environment, std::move(options)); }));
  EXPECT_LT(Clock::now() - start, kSoon);
}

void only_connect() {
  say("here");
  say(message_of(connect_rank));
  hear();
}

// --- What is expected of them ---

Variables variables_of(int rank, int world, int port) {
  return {{"RANK", std::to_string(rank)},       {"WORLD_SIZE", std::to_string(world)},
          {"LOCAL_RANK", std::to_string(rank)}, {"LOCAL_WORLD_SIZE", std::to_string(world)},
          {"MASTER_ADDR", "127.0.0.1"},         {"MASTER_PORT", std::to_string(port)},
          {"TORCHELASTIC_USE_AGENT_STORE", ""}, {"TORCHELASTIC_RUN_ID", ""},
          {"TORCHELASTIC_RESTART_COUNT", ""}};
}

/** Rank 0 gets a socket that listens: nobody else can have its port. */
std::vector<RankProcess> start_ranks(void (*program)(), int world, Variables more = {}) {
  const StoreSocket socket = listen_for_ranks("127.0.0.1", 0);
  more["TEST_LISTENER"] = "passed";
  std::vector<RankProcess> ranks;
  for (int rank = 0; rank < world; ++rank) {
    Variables variables = variables_of(rank, world, socket.port);
    variables.insert(more.begin(), more.end());
    ranks.emplace_back(program, variables, rank == 0 ? socket.fd.get() : -1);
  }
  return ranks;
}

/** All of them say "ready". */
std::vector<RankProcess> start_ready_ranks(void (*program)(),
                                           int world,
                                           const Variables& more = {}) {
  std::vector<RankProcess> ranks = start_ranks(program, world, more);
  for (RankProcess& rank : ranks)
    EXPECT_EQ(rank.line(), "ready");
  return ranks;
}

/** A rank that has said all; it ends well and has written nothing to standard error. */
void expect_quiet_end(RankProcess& rank) {
  EXPECT_EQ(rank.end(), "");
}

class Gloo : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_gloo()) GTEST_SKIP() << "built without Gloo's headers";
  }
};
class GlooWorld : public Gloo, public testing::WithParamInterface<int> {};
class KilledRank : public Gloo, public testing::WithParamInterface<int> {};

TEST_P(GlooWorld, EveryCall) {
  std::vector<RankProcess> ranks = start_ranks(call_everything, GetParam());
  for (RankProcess& rank : ranks)
    expect_quiet_end(rank);
}

INSTANTIATE_TEST_SUITE_P(OfRanks, GlooWorld, testing::Values(1, 2, 3, 4));

TEST_F(Gloo, ALateRankIsNamed) {
  std::vector<RankProcess> ranks =
      start_ready_ranks(fail_twice, 3, {{"TEST_INTERFACE", "lo"}, {"TEST_DEADLINE", "short"}});
  ranks[0].tell();
  ranks[2].tell();
  for (int rank : {0, 2}) {
    EXPECT_THAT(ranks[rank].line(),
                AllOf(StartsWith("[comm.barrier] "), HasSubstr("rank 1 did not come within 2 s")));
    EXPECT_THAT(ranks[rank].line(),
                AllOf(StartsWith("[comm.all_gather] "), HasSubstr("lost before: "),
                      HasSubstr("rank 1 did not come within 2 s")));
  }
  ranks[1].tell();
  EXPECT_THAT(ranks[1].line(), HasSubstr("stopped: rank 1 did not come within 2 s"));
  for (int rank : {1, 2, 0}) {
    ranks[rank].tell();
    expect_quiet_end(ranks[rank]);
  }
}

/** Nobody answers from the store, which a stopped rank 0 serves. */
TEST_F(Gloo, AStoppedRankIsNamed) {
  std::vector<RankProcess> ranks = start_ready_ranks(fail_twice, 3, {{"TEST_DEADLINE", "short"}});
  ranks[0].kill(SIGSTOP);
  for (int rank : {1, 2})
    ranks[rank].tell();
  for (int rank : {1, 2})
    EXPECT_THAT(ranks[rank].line(), HasSubstr("rank 0 did not come within 2 s"));
  for (int rank : {1, 2}) {
    ranks[rank].tell();
    expect_quiet_end(ranks[rank]);
  }
}

/** Kills a rank and hears that the others name it, long before their deadline. */
void kill_one(std::vector<RankProcess>& ranks, int killed, const std::vector<int>& others) {
  const auto start = Clock::now();
  ranks[killed].kill(SIGKILL);
  const std::string name = "rank " + std::to_string(killed);
  for (int rank : others)
    EXPECT_THAT(ranks[rank].line(), HasSubstr(name + " is gone: ")) << "rank " << rank;
  EXPECT_LT(Clock::now() - start, kSoon);
}

TEST_P(KilledRank, IsNamedByThoseThatWaitForIt) {
  const int killed = GetParam();
  std::vector<RankProcess> ranks = start_ready_ranks(fail_twice, 3);
  const std::vector<int> others = {(killed + 1) % 3, (killed + 2) % 3};
  for (int rank : others)
    ranks[rank].tell();
  std::this_thread::sleep_for(100ms);  // most often they wait by then
  kill_one(ranks, killed, others);
  for (int rank : others) {
    ranks[rank].tell();
    expect_quiet_end(ranks[rank]);
  }
}

/** Messages that are on their way when a rank dies end, too. A rank that is stopped first leaves
 * the others in the middle of them. */
TEST_P(KilledRank, EndsMessagesOnTheirWay) {
  const int killed = GetParam();
  std::vector<RankProcess> ranks = start_ready_ranks(ring, 3);
  std::this_thread::sleep_for(50ms);
  ranks[killed].kill(SIGSTOP);
  std::this_thread::sleep_for(200ms);
  const std::vector<int> others = {(killed + 1) % 3, (killed + 2) % 3};
  kill_one(ranks, killed, others);
  for (int rank : others)
    expect_quiet_end(ranks[rank]);
}

INSTANTIATE_TEST_SUITE_P(First, KilledRank, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(Last, KilledRank, testing::Values(2));

TEST_F(Gloo, ASenderAndAReceiverAloneSeeADeath) {
  for (int killed : {0, 1}) {
    std::vector<RankProcess> ranks = start_ready_ranks(one_way, 2);
    ranks[killed].kill(SIGSTOP);
    std::this_thread::sleep_for(200ms);
    kill_one(ranks, killed, {1 - killed});
    expect_quiet_end(ranks[1 - killed]);
  }
}

TEST_F(Gloo, AMessageOfAnotherSizeIsNotTaken) {
  std::vector<RankProcess> ranks = start_ranks(mismatch, 2);
  // Each waits for the other; who gives up first tells the other so.
  for (RankProcess& rank : ranks)
    EXPECT_THAT(rank.line(), HasSubstr("did not come within 2 s"));
  for (RankProcess& rank : ranks)
    expect_quiet_end(rank);
}

// --- Meeting ---

TEST_F(Gloo, AMissingRankIsNamed) {
  const StoreSocket socket = listen_for_ranks("127.0.0.1", 0);
  const auto start = [&](int rank) {
    Variables variables = variables_of(rank, 3, socket.port);
    variables["TEST_CONNECT_S"] = rank == 0 ? "3" : "60";
    variables["TEST_LISTENER"] = "passed";
    return RankProcess(only_connect, variables, socket.fd.get());
  };
  RankProcess last = start(2);
  EXPECT_EQ(last.line(), "here");
  RankProcess first = start(0);
  EXPECT_EQ(first.line(), "here");
  EXPECT_THAT(first.line(),
              HasSubstr("[comm.connect] rank 1 did not come to 127.0.0.1:" +
                        std::to_string(socket.port) + " within 3 s; ranks 0 and 2 are there"));
  first.tell();
  expect_quiet_end(first);
  EXPECT_THAT(last.line(), HasSubstr("[comm.connect] rank 0 gave up: rank 1 did not come to "));
}

/** A rank may die between its arrival and its connections to the others. */
TEST_F(Gloo, MayBeEndedWhileRanksConnect) {
  auto ranks = start_ranks(connect_until_noticed, 2, {{"TEST_HOLDS_CONNECTIONS", "1"}});
  for (RankProcess& rank : ranks)
    EXPECT_THAT(rank.line(), HasSubstr("a rank is gone"));
  for (RankProcess& rank : ranks)
    expect_quiet_end(rank);
}

TEST_F(Gloo, ARankThatIsTakenIsRefused) {
  const StoreSocket socket = listen_for_ranks("127.0.0.1", 0);
  Variables variables = variables_of(0, 3, socket.port);
  variables["TEST_LISTENER"] = "passed";
  RankProcess first(only_connect, variables, socket.fd.get());
  RankProcess second(only_connect, variables_of(1, 3, socket.port));
  RankProcess third(only_connect, variables_of(1, 3, socket.port));
  EXPECT_EQ(second.line(), "here");
  EXPECT_EQ(third.line(), "here");
  EXPECT_THAT(RankProcess::next_of(second, third).line(),
              HasSubstr("another process at 127.0.0.1:" + std::to_string(socket.port) +
                        " is rank 1 already"));
}

/** A free port of which programs do not get by chance. */
int quiet_port() {
  for (int port = 20'000 + ::getpid() % 10'000;; ++port) {
    try {
      return listen_for_ranks("127.0.0.1", port).port;
    } catch (const Error&) {
      if (port > 32'000) throw;
    }
  }
}

TEST_F(Gloo, AWorldOfAnotherSizeIsRefused) {
  const int port = quiet_port();
  RankProcess first(only_connect, variables_of(0, 2, port));
  RankProcess second(only_connect, variables_of(1, 3, port));
  EXPECT_EQ(first.line(), "here");
  EXPECT_THAT(first.line(), HasSubstr("rank 1 counts 3 ranks, rank 0 counts 2"));
}

/** A launcher serves one store for all starts of a run. */
TEST_F(Gloo, EachStartOfARunMeetsAnew) {
  const StoreSocket socket = listen_for_ranks("127.0.0.1", 0);
  // Rank 0 of another run, which is not complete, is the launcher here.
  Variables variables = variables_of(0, 3, socket.port);
  variables["TEST_LISTENER"] = "passed";
  RankProcess launcher(only_connect, variables, socket.fd.get());
  const auto start = [&](int rank, const std::string& restart) {
    Variables more = variables_of(rank, 2, socket.port);
    more["TORCHELASTIC_USE_AGENT_STORE"] = "True";
    more["TORCHELASTIC_RUN_ID"] = "mine";
    more["TORCHELASTIC_RESTART_COUNT"] = restart;
    return RankProcess(only_connect, more);
  };
  for (const std::string restart : {"0", "1"}) {
    RankProcess ranks[] = {start(0, restart), start(1, restart)};
    for (RankProcess& rank : ranks) {
      EXPECT_EQ(rank.line(), "here");
      EXPECT_EQ(rank.line(), "");
      rank.tell();
      expect_quiet_end(rank);
    }
  }
  RankProcess again = start(0, "1");
  EXPECT_EQ(again.line(), "here");
  EXPECT_THAT(again.line(), HasSubstr("is rank 0 already"));
}

/** What connect() says of a rank of two that finds nobody. */
std::string refusal_of(int rank, const std::string& address, int port) {
  Variables variables = variables_of(rank, 2, port);
  variables["MASTER_ADDR"] = address;
  variables["TEST_CONNECT_S"] = "1";
  RankProcess process(only_connect, variables);
  EXPECT_EQ(process.line(), "here");
  std::string line = process.line();
  process.tell();
  expect_quiet_end(process);
  return line;
}

TEST_F(Gloo, APortThatIsTakenIsRefused) {
  const StoreSocket socket = listen_for_ranks("127.0.0.1", 0);
  EXPECT_THAT(refusal_of(0, "127.0.0.1", socket.port),
              AllOf(HasSubstr("port " + std::to_string(socket.port)), HasSubstr("is taken")));
}

TEST_F(Gloo, AMasterThatIsNotThereIsNamed) {
  const int port = quiet_port();
  EXPECT_THAT(refusal_of(1, "127.0.0.1", port),
              AllOf(HasSubstr("rank 1 cannot reach the store at 127.0.0.1:" + std::to_string(port)),
                    HasSubstr("MASTER_ADDR")));
  EXPECT_THAT(refusal_of(1, "nosuchhost.invalid", port),
              AllOf(HasSubstr("rank 1 cannot reach the store at nosuchhost.invalid:"),
                    HasSubstr("does not know that name")));
}

TEST_F(Gloo, AnInterfaceThatIsNotThereIsRefused) {
  std::vector<RankProcess> ranks = start_ranks(only_connect, 2, {{"TEST_INTERFACE", "nosuch0"}});
  for (RankProcess& rank : ranks) {
    EXPECT_EQ(rank.line(), "here");
    EXPECT_THAT(rank.line(), HasSubstr("cannot listen at interface 'nosuch0'"));
    rank.tell();
    rank.end();
  }
}

TEST(GlooAlone, OneRankNeedsNoStore) {
  const auto comm = connect({0, 1, 0, 1, "nosuchhost.invalid", 1, false, "", 0}, {});
  EXPECT_EQ(comm->world(), 1);
}

}  // namespace
}  // namespace ferry
