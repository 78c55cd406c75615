// Runs that several hosts share by options: each has the bits of one process's run, and each host
// says how it ended. The hosts are network namespaces where those can be made, else processes of
// this one.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sched.h>

#include <functional>

#include "src/base/unique_fd.h"
#include "src/comm/addresses.h"
#include "tests/train/run_test.h"

namespace ferry::test {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

/** Two hosts with a cable between them. */
class TwoHosts {
 public:
  TwoHosts() {
    const std::string id = std::to_string(::getpid());
    names_ = {"ferry_a" + id, "ferry_b" + id};
    const std::string cables[] = {"fa" + id, "fb" + id};
    is_there_ = runs("ip netns add " + names_[0]) && runs("ip netns add " + names_[1]) &&
                runs("ip link add " + cables[0] + " netns " + names_[0] + " type veth peer name " +
                     cables[1] + " netns " + names_[1]);
    for (size_t host = 0; host < names_.size(); ++host)
      is_there_ = is_there_ && runs_at(host, "ip link set lo up") &&
                  runs_at(host, "ip address add 10.77.0." + std::to_string(host + 1) + "/24 dev " +
                                    cables[host]) &&
                  runs_at(host, "ip link set " + cables[host] + " up");
  }
  ~TwoHosts() {
    for (const std::string& name : names_)
      runs("ip netns del " + name);
  }
  TwoHosts(const TwoHosts&) = delete;
  TwoHosts& operator=(const TwoHosts&) = delete;

  bool is_there() const { return is_there_; }
  /** This process is on that host from now on. */
  void enter(size_t host) const {
    if (!is_there_) return;
    const UniqueFd file(::open(("/run/netns/" + names_[host]).c_str(), O_RDONLY | O_CLOEXEC));
    if (::setns(file.get(), CLONE_NEWNET) != 0) _exit(126);
  }
  std::string first_address() const { return is_there_ ? "10.77.0.1" : "127.0.0.1"; }
  std::string second_address() const { return is_there_ ? "10.77.0.2" : "127.0.0.2"; }
  /** Begins a command line that runs the rest of it there. */
  std::string command_on(size_t host) const {
    return is_there_ ? "ip netns exec " + names_[host] : "";
  }

 private:
  static bool runs(const std::string& command) {
    return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
  }
  bool runs_at(size_t host, const std::string& command) const {
    return runs("ip netns exec " + names_[host] + " " + command);
  }

  std::vector<std::string> names_;
  bool is_there_ = false;
};

class SeveralHosts : public RunTest {
 protected:
  static void SetUpTestSuite() {
    RunTest::SetUpTestSuite();
    hosts_ = std::make_unique<TwoHosts>();
    ASSERT_EQ(ferry(new_run("one")).code(), 0) << text_of(root_ / "err");
  }
  static void TearDownTestSuite() {
    hosts_.reset();
    RunTest::TearDownTestSuite();
  }

  static std::vector<std::string> host_options(int host, const std::string& port) {
    return {"--nnodes=2", "--node-rank=" + std::to_string(host),
            "--master-addr=" + hosts_->first_address(), "--master-port=" + port,
            "--rank-timeout=1min"};
  }
  static pid_t start_host(int host,
                          std::vector<std::string> words,
                          const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return start_ferry(root_, words, "host" + std::to_string(host),
                       [host] { hosts_->enter(static_cast<size_t>(host)); });
  }
  /** The same command on both hosts. */
  static std::vector<pid_t> start_hosts(const std::vector<std::string>& words) {
    const std::string at = port();
    return {start_host(0, words, host_options(0, at)), start_host(1, words, host_options(1, at))};
  }
  static Outcome end_of(pid_t process, int host) {
    return await_end(process, "host" + std::to_string(host));
  }
  static std::string refusal(const std::vector<std::string>& more) {
    const Outcome outcome = ferry(new_run("refused", more));
    EXPECT_EQ(outcome.code(), 2) << outcome.err;
    EXPECT_FALSE(fs::exists(root_ / "refused"));
    return outcome.err;
  }
  static nlohmann::json record_of(const std::string& run) {
    return nlohmann::json::parse(text_of(root_ / run / "run.json"));
  }
  static pid_t leader_of(const std::string& run) { return record_of(run).value("pid", -1); }
  static int n_restarts(const std::string& run) {
    return static_cast<int>(record_of(run).value("restarts", nlohmann::json::array()).size());
  }
  /** The child of a process that watches it. */
  static pid_t trainer_under(pid_t watcher) {
    const std::string pid = std::to_string(watcher);
    return std::stoi(text_of("/proc/" + pid + "/task/" + pid + "/children"));
  }

  static inline std::unique_ptr<TwoHosts> hosts_;
};

TEST_F(SeveralHosts, HaveTheBitsOfOneProcess) {
  const auto hosts = start_hosts(new_run("shared", {"--gpus=2"}));
  const Outcome first = end_of(hosts[0], 0), second = end_of(hosts[1], 1);
  EXPECT_EQ(first.code(), 0) << first.err;
  EXPECT_THAT(first.err, HasSubstr("4 processes of 2 hosts share each step"));
  EXPECT_EQ(second.code(), 0) << second.err;
  EXPECT_THAT(second.err, AllOf(HasSubstr("host 1 of 2 (from 0) has ranks 2 and 3; it waits for "
                                          "host 0, which leads, at " +
                                          hosts_->first_address() + ":"),
                                HasSubstr("host 1: the run is finished")));
  expect_same_run("one", "shared");
  EXPECT_THAT(text_of(root_ / "shared" / "config.toml"),
              AllOf(HasSubstr("nnodes = 1\n"), HasSubstr("node_rank = \"auto\"\n"),
                    HasSubstr("master_addr = \"\"\n")));
}

TEST_F(SeveralHosts, TimeTheRanksOfAll) {
  const auto hosts = start_hosts(new_run("timed", {"--gpu-shares=auto"}));
  const Outcome first = end_of(hosts[0], 0), second = end_of(hosts[1], 1);
  EXPECT_EQ(first.code(), 0) << first.err;
  EXPECT_THAT(first.err, HasSubstr("their shares of a step are "));
  EXPECT_EQ(second.code(), 0) << second.err;
  EXPECT_EQ(record_of("timed")["plan"]["gpu_pass_ms"].size(), 2u) << record_of("timed");
  expect_same_run("one", "timed");
}

/** The other host has neither model nor data nor the run. */
TEST_F(SeveralHosts, StopAndGoOnWithAnotherNumber) {
  const std::string at = port();
  const pid_t leader = start_host(0, new_run("stopped"), host_options(0, at));
  const pid_t other = start_host(1, {"train"}, host_options(1, at));
  wait_for_line("stopped", 10);
  ::kill(other, SIGINT);  // says where to stop, and goes on
  wait_for_line("stopped", 14);
  ::kill(leader, SIGINT);
  EXPECT_EQ(end_of(leader, 0).code(), 130);
  const Outcome second = end_of(other, 1);
  EXPECT_EQ(second.code(), 130);
  EXPECT_THAT(second.err, AllOf(HasSubstr("stop the run on host 0"),
                                HasSubstr("ended on host 0 with exit code 130")));
  ASSERT_EQ(ferry(go_on("stopped")).code(), 0) << text_of(root_ / "err");
  expect_same_run("one", "stopped");
}

TEST_F(SeveralHosts, EndTogetherWhereOneDies) {
  const auto hosts = start_hosts(new_run("lost", {"--gpus=2"}));
  wait_for_line("lost", 10);
  ::kill(hosts[1], SIGKILL);
  const Outcome first = end_of(hosts[0], 0);
  EXPECT_EQ(first.code(), 5) << first.err;
  // Rank 3 ends with the process that started it, and may be missed first.
  EXPECT_THAT(first.err, AnyOf(HasSubstr("rank 2 is gone"), HasSubstr("rank 3 is gone")));
  EXPECT_TRUE(end_of(hosts[1], 1).was_killed());

  const auto again = start_hosts(go_on("lost", {"--gpus=2"}));
  wait_for_line("lost", 30);
  ::kill(again[0], SIGKILL);
  EXPECT_TRUE(end_of(again[0], 0).was_killed());
  const Outcome second = end_of(again[1], 1);
  EXPECT_EQ(second.code(), 5) << second.err;
  EXPECT_THAT(second.err, HasSubstr("rank 0 is gone"));
  ASSERT_EQ(ferry(go_on("lost")).code(), 0) << text_of(root_ / "err");
  expect_same_run("one", "lost");
}

TEST_F(SeveralHosts, StartAnewTogether) {
  const auto hosts = start_hosts(new_run("anew", {"--gpus=2", "--max-restarts=2"}));
  wait_for_line("anew", 10);
  ::kill(leader_of("anew"), SIGKILL);
  wait_until([] { return n_restarts("anew") == 1; });
  wait_for_line("anew", 40);
  ::kill(trainer_under(hosts[1]), SIGKILL);
  const Outcome first = end_of(hosts[0], 0), second = end_of(hosts[1], 1);
  EXPECT_EQ(first.code(), 0) << first.err;
  EXPECT_EQ(second.code(), 0) << second.err;
  EXPECT_EQ(n_restarts("anew"), 2);
  expect_same_run("one", "anew");
}

/** A failure on the first host before the run has begun is said on the others. */
TEST_F(SeveralHosts, HearWhyTheFirstOneFails) {
  std::ofstream(root_ / "mixed.tsv") << "text\tlabel\na\t0\nb\n";
  std::vector<std::string> words = new_run("failed");
  std::ranges::replace(words, "--dataset=train.tsv", "--dataset=mixed.tsv");
  const auto hosts = start_hosts(words);
  const Outcome first = end_of(hosts[0], 0), second = end_of(hosts[1], 1);
  EXPECT_EQ(first.code(), 4) << first.err;
  EXPECT_EQ(second.code(), 4) << second.err;
  EXPECT_THAT(second.err,
              AllOf(HasSubstr("ended on host 0 with exit code 4"), HasSubstr("mixed.tsv")));
}

TEST_F(SeveralHosts, NameAHostThatDoesNotCome) {
  auto options = host_options(0, port());
  options.back() = "--rank-timeout=2s";
  const Outcome first = end_of(start_host(0, new_run("alone", {"--gpus=2"}), options), 0);
  EXPECT_EQ(first.code(), 5) << first.err;
  EXPECT_THAT(first.err, HasSubstr("ranks 2 and 3 (host 1) did not come to"));
  options[1] = "--node-rank=1";
  const Outcome second = end_of(start_host(1, new_run("alone", {"--gpus=2"}), options), 1);
  EXPECT_EQ(second.code(), 5) << second.err;
  EXPECT_THAT(second.err, HasSubstr("cannot reach the store at"));
  EXPECT_FALSE(fs::exists(root_ / "alone"));
}

TEST_F(SeveralHosts, RefuseOtherNumbersOfGpus) {
  const std::string at = port();
  const pid_t leader = start_host(0, new_run("unlike", {"--gpus=2"}), host_options(0, at));
  const pid_t other = start_host(1, new_run("unlike", {"--gpus=1"}), host_options(1, at));
  const Outcome first = end_of(leader, 0), second = end_of(other, 1);
  EXPECT_NE(first.code(), 0);
  EXPECT_NE(second.code(), 0);
  EXPECT_THAT(first.err + second.err, HasSubstr("the same --nnodes and as many --gpus"));
}

TEST_F(SeveralHosts, RefuseAPlaceThatCannotBeMetAt) {
  const StoreSocket taken = listen_for_ranks("127.0.0.1", 0);
  EXPECT_THAT(refusal({"--nnodes=2", "--node-rank=0", "--master-addr=192.0.2.1"}),
              HasSubstr("no address of this host"));
  const Outcome outcome =
      ferry(new_run("refused", {"--nnodes=2", "--node-rank=0", "--master-addr=127.0.0.1",
                                "--master-port=" + std::to_string(taken.port)}));
  EXPECT_EQ(outcome.code(), 5);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("is taken"), HasSubstr("--master-port")));
}

/** Hosts that one command starts. In place of ssh there is a program that runs the command in the
 * other network namespace, or refuses, as ssh does. */
class HostsBySsh : public SeveralHosts {
 protected:
  static void SetUpTestSuite() {
    SeveralHosts::SetUpTestSuite();
    fs::create_directories(root_ / "bin");
    std::ofstream(root_ / "bin" / "ssh")
        << "#!/bin/sh\n"
           "while [ \"${1#-}\" != \"$1\" ]; do [ \"$1\" = -o ] && shift; shift; done\n"
           "host=$1; shift\n"
           "[ $host = refused ] && { echo 'port 22: Connection refused' >&2; exit 255; }\n"
           "exec "
        << hosts_->command_on(1) << " sh -c \"$*\"\n";
    fs::permissions(root_ / "bin" / "ssh", fs::perms::owner_all);
  }
  static pid_t start_by_ssh(std::vector<std::string> words,
                            const std::vector<std::string>& more,
                            const std::string& path = (root_ / "bin").string() + ":" +
                                                      std::getenv("PATH")) {
    words.insert(words.end(), more.begin(), more.end());
    return start_ferry(root_, words, "", [&] {
      hosts_->enter(0);
      ::setenv("PATH", path.c_str(), 1);
    });
  }
  static std::string both() { return "--hosts=" + hosts_->first_address() + "," + second(); }
  static std::string second() { return hosts_->second_address(); }
};

TEST_F(HostsBySsh, HaveTheBitsOfOneProcess) {
  std::ofstream(root_ / "hosts") << hosts_->first_address() << " slots=2\n" << second() << "\n";
  const Outcome outcome =
      await_end(start_by_ssh(new_run("by_ssh", {"--gpus=2"}), {"--hosts=@hosts"}));
  EXPECT_EQ(outcome.code(), 0) << outcome.err;
  const std::string name = "[" + second() + "] ferry: host 1";
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("4 processes of 2 hosts share each step"),
                                 HasSubstr(name + " of 2 (from 0) has ranks 2 and 3"),
                                 HasSubstr(name + ": the run is finished")));
  expect_same_run("one", "by_ssh");
}

TEST_F(HostsBySsh, StartAnew) {
  const pid_t started = start_by_ssh(new_run("again"), {both(), "--max-restarts=1"});
  wait_for_line("again", 10);
  ::kill(leader_of("again"), SIGKILL);
  const Outcome outcome = await_end(started);
  EXPECT_EQ(outcome.code(), 0) << outcome.err;
  EXPECT_EQ(n_restarts("again"), 1);
  expect_same_run("one", "again");
}

TEST_F(HostsBySsh, NameWhatSshCannotDo) {
  const auto refusal_of = [](const std::vector<std::string>& more, int code,
                             const std::string& path =
                                 (root_ / "bin").string() + ":" + std::getenv("PATH")) {
    const Outcome outcome = await_end(start_by_ssh(new_run("none"), more, path));
    EXPECT_EQ(outcome.code(), code) << outcome.err;
    EXPECT_FALSE(fs::exists(root_ / "none"));
    return outcome.err;
  };
  EXPECT_THAT(refusal_of({"--hosts=" + hosts_->first_address() + ",refused"}, 5),
              AllOf(HasSubstr("[refused] port 22: Connection refused"),
                    HasSubstr("ssh does not reach host 'refused'")));
  EXPECT_THAT(refusal_of({both(), "--hosts-program=/no/such/ferry"}, 2),
              AllOf(HasSubstr("has no program '/no/such/ferry'"), HasSubstr("--hosts-program")));
  EXPECT_THAT(refusal_of({both()}, 5, "/nowhere"),
              HasSubstr("ssh cannot be started for host '" + second() + "': No such file"));
}

TEST_F(HostsBySsh, RefuseWhatContradictsItself) {
  EXPECT_THAT(refusal({"--hosts=a,a"}), HasSubstr("named twice"));
  EXPECT_THAT(refusal({"--hosts=a,-oProxyCommand=x"}), HasSubstr("no name of a host"));
  EXPECT_THAT(refusal({"--hosts=a,b", "--nnodes=3"}), HasSubstr("names 2 hosts, and nnodes is 3"));
  EXPECT_THAT(refusal({"--hosts=a,b", "--node-rank=1"}), HasSubstr("both given"));
  EXPECT_THAT(refusal({"--hosts-program=ferry"}), HasSubstr("without hosts"));
}

TEST_F(SeveralHosts, RefuseWhatContradictsItself) {
  const std::string address = "--master-addr=127.0.0.1";
  EXPECT_THAT(refusal({"--nnodes=2", "--node-rank=2", address}),
              AllOf(HasSubstr("node_rank is 2"), HasSubstr("from 0 to 1")));
  EXPECT_THAT(refusal({"--nnodes=2", "--node-rank=1"}),
              HasSubstr("give each host the same --master-addr"));
  EXPECT_THAT(refusal({"--nnodes=2", address}),
              HasSubstr("give --node-rank 0 on the host that leads"));
  EXPECT_THAT(refusal({"--node-rank=0"}), HasSubstr("--node-rank is given without nnodes"));
  EXPECT_THAT(refusal({address}), HasSubstr("--master-addr is given without nnodes"));
  EXPECT_THAT(refusal({"--nnodes=1000", "--node-rank=0", address, "--gpus=8"}),
              HasSubstr("more than 1024 ranks"));
  const pid_t launched = start_ferry(root_, new_run("refused", {"--nnodes=2"}), "", [] {
    for (const auto& [name, value] :
         {std::pair("RANK", "0"), std::pair("LOCAL_RANK", "0"), std::pair("WORLD_SIZE", "2"),
          std::pair("LOCAL_WORLD_SIZE", "2"), std::pair("MASTER_ADDR", "127.0.0.1"),
          std::pair("MASTER_PORT", "29500")})
      ::setenv(name, value, 1);
  });
  const Outcome outcome = await_end(launched);
  EXPECT_EQ(outcome.code(), 2) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("--nnodes is given"), HasSubstr("torchrun")));
  // A file may have all options as they are: they say nothing then.
  std::ofstream(root_ / "all.toml") << "nnodes = 1\nnode_rank = \"auto\"\nmaster_addr = \"\"\n"
                                       "master_port = 29500\nhosts = \"\"\nhosts_program = \"\"\n"
                                       "max_restarts = 0\n";
  EXPECT_EQ(ferry(new_run("plain", {"--config=all.toml"})).code(), 0) << text_of(root_ / "err");
  // One host is one host, whoever says so.
  EXPECT_EQ(ferry(new_run("single", {"--nnodes=1", "--node-rank=0", address})).code(), 0);
}

}  // namespace
}  // namespace ferry::test
