// A run steered from an event loop: replies in any order, several clients, runs that do not answer,
// lie, are stopped or gone.

#include "src/service/runs/run_client.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/runs/control_fixture.h"

namespace ferry::service {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Outcome = RunReply::Outcome;
using ::testing::HasSubstr;

bool is_readable(int fd, std::chrono::milliseconds patience) {
  pollfd watched = {fd, POLLIN, 0};
  return ::poll(&watched, 1, static_cast<int>(patience.count())) > 0;
}

class SteeredRun : public runs::ControlTest {
 protected:
  SteeredRun() { fs::create_directory(run_); }
  void write_record(const std::string& phase, const std::string& socket) {
    nlohmann::json record = {{"format_version", 1}, {"phase", phase}};
    if (!socket.empty()) record["control_socket"] = socket;
    std::ofstream(run_ / "run.json") << record.dump();
  }
  /** The path of the run's socket, where nobody listens now. */
  fs::path own_socket() const { return runs::ControlServer(run_).path(); }
  /** All replies, as an event loop gets them: it sleeps until the descriptor is readable. */
  static std::map<int64_t, RunReply> replies(RunClient& client) {
    std::map<int64_t, RunReply> all;
    const auto end = Clock::now() + 60s;
    while (client.n_waiting() > 0 && Clock::now() < end) {
      EXPECT_TRUE(is_readable(client.descriptor(), 30s)) << "nobody woke the loop";
      for (const RunReply& reply : client.take())
        all[reply.id] = reply;
    }
    EXPECT_EQ(client.n_waiting(), 0u);
    return all;
  }
  static RunReply reply(RunClient& client, int64_t id) { return replies(client)[id]; }
  /** Takes so many requests, then answers them, the last one first. */
  static void answer(runs::ControlServer& server, int n) {
    std::vector<runs::ControlRequest> taken;
    for (const auto end = Clock::now() + 60s; std::ssize(taken) < n && Clock::now() < end;)
      if (auto request = server.take(10ms)) taken.push_back(std::move(*request));
    for (auto request = taken.rbegin(); request != taken.rend(); ++request)
      request->answer(request->argument("key") != "bad",
                      request->command() + request->argument("save") + request->argument("value"));
  }

  const fs::path run_ = directory_ / "run";
};

TEST_F(SteeredRun, EachRequestGetsItsReply) {
  runs::ControlServer server(run_);
  write_record("training", server.path());
  RunClient client(run_);
  EXPECT_FALSE(is_readable(client.descriptor(), 0ms));
  const int64_t pause = client.pause(), save = client.save(), stop = client.stop(false),
                set = client.set("learning_rate", "1e-5"), bad = client.set("bad", "x"),
                sample = client.sample();
  EXPECT_EQ(client.n_waiting(), 6u);
  EXPECT_TRUE(client.take().empty());
  std::jthread run([&] { answer(server, 6); });
  auto all = replies(client);
  EXPECT_EQ(all[pause].text, "pause");
  EXPECT_EQ(all[pause].outcome, Outcome::done);
  EXPECT_EQ(all[save].text, "save");
  EXPECT_EQ(all[sample].text, "sample");
  EXPECT_EQ(all[stop].text, "stopno");
  EXPECT_EQ(all[set].text, "set1e-5");
  EXPECT_EQ(all[bad].outcome, Outcome::refused);
  EXPECT_FALSE(is_readable(client.descriptor(), 0ms));
}

TEST_F(SteeredRun, SeveralClientsSteerIt) {
  runs::ControlServer server(run_);
  write_record("training", server.path());
  constexpr int kClients = 4, kRounds = 10;
  std::atomic<int> n_right = 0;
  {
    std::vector<std::jthread> clients;
    for (int c = 0; c < kClients; ++c)
      clients.emplace_back([&, c] {
        RunClient client(run_);
        for (int round = 0; round < kRounds; ++round) {
          const std::string value = fmt::format("{}.{}", c, round);
          const int64_t id = client.set("key", value), other = client.pause();
          auto all = replies(client);
          n_right += all[id].text == "set" + value && all[other].text == "pause";
        }
      });
    for (int n = 0; n < 2 * kClients * kRounds; ++n)
      answer(server, 1);
  }
  EXPECT_EQ(n_right, kClients * kRounds);
}

TEST_F(SteeredRun, AnAnswerThatNeverComesTimesOut) {
  runs::ControlServer server(run_);
  write_record("training", server.path());
  RunClient client(run_);
  const int64_t late = client.ask({{"command", "pause"}}, 50ms);
  auto all = replies(client);
  EXPECT_EQ(all[late].outcome, Outcome::timed_out);
  EXPECT_THAT(all[late].text, HasSubstr("may still do what was asked"));
  answer(server, 1);  // and hears nothing of it
  std::jthread run([&] { answer(server, 1); });
  EXPECT_EQ(reply(client, client.resume()).text, "resume");
}

TEST_F(SteeredRun, ItsEndIsHeardByWhoWaits) {
  auto server = std::make_optional<runs::ControlServer>(run_);
  write_record("training", server->path());
  RunClient client(run_);
  const int64_t id = client.pause();
  ASSERT_TRUE(server->take(30s));  // destroyed without an answer
  const RunReply heard = reply(client, id);
  EXPECT_EQ(heard.outcome, Outcome::unheard);
  EXPECT_THAT(heard.text, HasSubstr("ended before it answered"));
  server.reset();
  EXPECT_THAT(reply(client, client.pause()).text, HasSubstr("nobody listens"));
}

TEST_F(SteeredRun, WithoutASocketTheReplySaysWhy) {
  RunClient client(run_);
  const int64_t missing = client.pause();
  EXPECT_TRUE(is_readable(client.descriptor(), 30s));
  EXPECT_THAT(replies(client)[missing].text, HasSubstr("run.json"));
  write_record("preparing", "");
  EXPECT_THAT(reply(client, client.save()).text, HasSubstr("no control socket yet"));
  write_record("finished", "");
  EXPECT_THAT(reply(client, client.stop(true)).text, HasSubstr("does not run: it is finished"));
  const std::string own = own_socket();
  write_record("training", own);
  EXPECT_THAT(reply(client, client.pause()).text, HasSubstr("nobody listens at '" + own + "'"));
  write_record("training", "/no/socket");
  EXPECT_THAT(reply(client, client.pause()).text, HasSubstr("is not the socket of this run"));
  std::ofstream(run_ / "run.json") << "{";
  EXPECT_EQ(reply(client, client.pause()).outcome, Outcome::unheard);
}

/** A server of one answer, which is no run. */
class Liar {
 public:
  Liar(const fs::path& path, std::string says) : listening_(runs::listen_at(path)) {
    thread_ = std::jthread([this, says = std::move(says)] {
      const UniqueFd client(::accept(listening_.get(), nullptr, nullptr));
      ::send(client.get(), says.data(), says.size(), MSG_NOSIGNAL);
    });
  }

 private:
  UniqueFd listening_;
  std::jthread thread_;
};

TEST_F(SteeredRun, AnswersThatAreNoneAreSaidToBe) {
  const fs::path socket = own_socket();
  for (const std::string& says :
       {std::string("\n"), std::string("[]\n"), std::string("{\"done\": 1, \"text\": \"\"}\n"),
        std::string("{\"done\": true}\n"), std::string("no line end"), std::string(300'000, 'x'),
        std::string("{\"done\": true, \"text\": \"") + std::string(70'000, 'y')}) {
    fs::remove(socket);
    const Liar liar(socket, says);
    write_record("training", socket);
    RunClient client(run_);
    const RunReply heard = reply(client, client.pause());
    EXPECT_EQ(heard.outcome, Outcome::unheard) << says.substr(0, 40);
    EXPECT_FALSE(heard.text.empty());
  }
}

TEST_F(SteeredRun, AQuestionMayBeLargerThanASocketTakes) {
  runs::ControlServer server(run_);
  write_record("training", server.path());
  RunClient client(run_);
  EXPECT_EQ(reply(client, client.set("learning_rate", std::string(4 << 20, '1'))).outcome,
            Outcome::unheard);  // the run takes 64 KiB
}

TEST_F(SteeredRun, AStoppedProcessIsNotWaitedFor) {
  const runs::StoppedRun stopped(run_, directory_ / "ready");
  write_record("training", stopped.socket());
  RunClient client(run_);
  for (int i = 0; i < 14; ++i)  // more than wait in its socket
    client.pause();
  int n_without_room = 0;
  for (const auto& [id, reply] : replies(client)) {
    EXPECT_EQ(reply.outcome, Outcome::unheard);
    EXPECT_THAT(reply.text, HasSubstr("kill -CONT"));
    n_without_room += reply.text.find("no more questions") != std::string::npos;
  }
  EXPECT_GT(n_without_room, 0);
  EXPECT_LT(n_without_room, 14);
}

}  // namespace
}  // namespace ferry::service
