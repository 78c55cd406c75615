// The control socket: many clients at once, and clients and runs that never answer.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <vector>

#include "src/base/error.h"
#include "src/runs/control_client.h"
#include "tests/runs/control_fixture.h"

namespace ferry::runs {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using ::testing::HasSubstr;

class ControlSocket : public ControlTest {
 protected:
  /** Answers `n` questions with what they ask. */
  static void answer(ControlServer& server, int n) {
    const auto end = Clock::now() + 60s;
    while (n > 0 && Clock::now() < end)
      if (auto request = server.take(10ms)) {
        request->answer(true, request->argument("word"));
        --n;
      }
    EXPECT_EQ(n, 0) << "questions that did not arrive";
  }
};

TEST_F(ControlSocket, ManyClientsGetEachItsAnswer) {
  ControlServer server(directory_ / "run");
  constexpr int kClients = 6, kQuestions = 20;
  std::atomic<int> n_right = 0;
  {
    std::vector<std::jthread> clients;
    for (int client = 0; client < kClients; ++client)
      clients.emplace_back([&, client] {
        for (int i = 0; i < kQuestions; ++i) {
          const std::string word = fmt::format("{}.{}", client, i);
          const auto got = ask_run(server.path(), {{"command", "say"}, {"word", word}});
          n_right += got.is_done && got.text == word;
        }
      });
    answer(server, kClients * kQuestions);
  }
  EXPECT_EQ(n_right, kClients * kQuestions);
}

TEST_F(ControlSocket, ClientsThatNeverSendKeepNobodyOut) {
  ControlServer server(directory_ / "run");
  const UniqueFd silent = connect_to(server.path());
  const UniqueFd dripping = connect_to(server.path());
  std::jthread drips([&dripping](std::stop_token stop) {  // a byte now and then, never a line
    while (!stop.stop_requested()) {
      ::send(dripping.get(), "{", 1, MSG_NOSIGNAL);
      std::this_thread::sleep_for(50ms);
    }
  });
  std::jthread answers([&] { answer(server, 1); });
  const auto start = Clock::now();
  EXPECT_EQ(ask_run(server.path(), {{"command", "say"}, {"word", "heard"}}).text, "heard");
  EXPECT_LT(Clock::now() - start, 30s);
}

TEST_F(ControlSocket, AClientThatNeverReadsHoldsUpNothing) {
  ControlServer server(directory_ / "run");
  const UniqueFd deaf = connect_to(server.path());
  const std::string question = "{\"command\": \"say\"}\n";
  ASSERT_EQ(::send(deaf.get(), question.data(), question.size(), 0),
            static_cast<ssize_t>(question.size()));
  auto request = server.take(30s);
  ASSERT_TRUE(request);
  const auto start = Clock::now();
  request->answer(true, std::string(8 << 20, 'x'));  // more than any socket takes unread
  EXPECT_LT(Clock::now() - start, 30s);
}

TEST_F(ControlSocket, TheEndDoesNotWaitForAClient) {
  const auto start = Clock::now();
  {
    ControlServer server(directory_ / "run");
    const UniqueFd silent = connect_to(server.path());
    std::this_thread::sleep_for(100ms);  // until the server listens to it
  }
  EXPECT_LT(Clock::now() - start, 30s);
}

TEST_F(ControlSocket, ARunThatIsStoppedIsNotWaitedFor) {
  const StoppedRun run(directory_ / "run", directory_ / "ready");
  // Again and again, until the socket takes no more.
  for (int i = 0; i < 12; ++i) {
    if (i > 0 && i < 11) {  // leaves its question there without waiting
      if (const pid_t asker = ::fork(); asker == 0) {
        std::thread([] { std::this_thread::sleep_for(200ms), ::_exit(0); }).detach();
        try {
          ask_run(run.socket(), {{"command", "pause"}});
        } catch (const Error&) {
        }
        ::_exit(0);
      } else {
        ::waitpid(asker, nullptr, 0);
      }
      continue;
    }
    const std::string text = test::error_of(
        [&] {
          ask_run(run.socket(), {{"command", "pause"}});
        },
        Fault::machine);
    EXPECT_THAT(text, HasSubstr("kill -CONT"));
    if (i == 0) {
      EXPECT_THAT(text, HasSubstr(std::to_string(run.pid())));
    }
  }
}

/** A socket may be anybody's: nothing is told to a process of another user. */
TEST_F(ControlSocket, AProcessOfAnotherUserIsNotTheRun) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  std::filesystem::permissions(directory_.path(), std::filesystem::perms::all);
  const std::filesystem::path path = directory_ / "run.sock";
  const UniqueFd listener = listen_at(path, SOCK_NONBLOCK);
  std::filesystem::permissions(path, std::filesystem::perms::all);
  const auto ask_as = [&](uid_t user) {  // 0: another user was found, 1: something else
    const pid_t asker = ::fork();
    if (asker == 0) {
      if (::setresuid(user, user, user) != 0) ::_exit(2);
      std::thread([] { std::this_thread::sleep_for(20s), ::_exit(3); }).detach();
      try {
        ask_run(path, {{"command", "pause"}});
      } catch (const Error& error) {
        const std::string text = error.what();
        ::_exit(text.find("a process of another user listens at") == text.npos);
      }
      ::_exit(1);
    }
    // Root may ask anybody: it hears that its question has no answer.
    UniqueFd asked;
    for (int i = 0; i < 2000 && !asked; ++i) {
      asked = UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!asked) std::this_thread::sleep_for(5ms);
    }
    char question[100];
    const ssize_t n = asked ? ::recv(asked.get(), question, sizeof question, 0) : -1;
    asked = UniqueFd();
    int status = -1;
    ::waitpid(asker, &status, 0);
    return std::pair{WEXITSTATUS(status), n > 0};
  };
  constexpr uid_t kNobody = 65534;
  EXPECT_EQ(ask_as(kNobody), std::pair(0, false));
  EXPECT_EQ(ask_as(0), std::pair(1, true));
}

/** run.json names the socket, and may be somebody else's. */
TEST_F(ControlSocket, IsTheRunsOwn) {
  const std::filesystem::path run = directory_ / "run";
  std::filesystem::create_directory(run);
  ControlServer server(run);
  check_control_socket(run, server.path());
  const auto is_refused = [&](const std::filesystem::path& socket) {
    const std::string what =
        test::error_of([&] { check_control_socket(run, socket); }, Fault::machine);
    return what.find("is not the socket of this run") != std::string::npos;
  };
  const std::filesystem::path name = server.path().filename();
  EXPECT_TRUE(is_refused(server.path().parent_path() / "evil.sock"));
  EXPECT_TRUE(is_refused(directory_ / "evil.sock"));
  EXPECT_TRUE(is_refused(name));
  std::filesystem::create_directory(directory_ / "open");
  std::filesystem::permissions(directory_ / "open", std::filesystem::perms::all);
  EXPECT_TRUE(is_refused(directory_ / "open" / name)) << "others may put a socket there";
  std::filesystem::create_directory_symlink(server.path().parent_path(), directory_ / "link");
  EXPECT_TRUE(is_refused(directory_ / "link" / name));
  EXPECT_TRUE(is_refused({}));
}

}  // namespace
}  // namespace ferry::runs
