#include "tests/comm/rank_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <utility>

namespace ferry {
namespace {

constexpr int kPatience_ms = 60'000;

/** A pipe's two ends: to read from and to write to. */
std::pair<UniqueFd, UniqueFd> open_pipe() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::pipe(ends), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

[[noreturn]] void run(const std::function<void()>& program, const Variables& variables) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const auto& [name, value] : variables)
    ::setenv(name.c_str(), value.c_str(), 1);
  try {
    program();
  } catch (const std::exception& e) {
    ADD_FAILURE() << e.what();
  }
  std::fflush(nullptr);
  ::_exit(testing::Test::HasFailure() ? 1 : 0);
}

}  // namespace

RankProcess::RankProcess(const std::function<void()>& program,
                         const Variables& variables,
                         int passed_fd)
    : errors_(::memfd_create("errors", 0)) {
  auto [in_read, in_write] = open_pipe();
  auto [out_read, out_write] = open_pipe();
  std::fflush(nullptr);  // else both processes write what is there
  pid_ = ::fork();
  EXPECT_GE(pid_, 0);
  if (pid_ == 0) {
    ::dup2(in_read.get(), STDIN_FILENO);
    ::dup2(out_write.get(), STDOUT_FILENO);
    ::dup2(errors_.get(), STDERR_FILENO);
    if (passed_fd >= 0) ::dup2(passed_fd, kPassedFd);
    ::close_range(passed_fd >= 0 ? kPassedFd + 1 : kPassedFd, ~0u, 0);
    run(program, variables);
  }
  in_ = std::move(in_write);
  out_ = std::move(out_read);
}

RankProcess::RankProcess(RankProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      in_(std::move(other.in_)),
      out_(std::move(other.out_)),
      errors_(std::move(other.errors_)),
      said_(std::move(other.said_)) {}

RankProcess::~RankProcess() {
  if (pid_ < 0) return;
  kill(SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void RankProcess::tell() {
  EXPECT_EQ(::write(in_.get(), "\n", 1), 1);
}

/** False at the end of what it says, or where it says nothing for long. */
bool RankProcess::read_more() {
  pollfd polled = {out_.get(), POLLIN, 0};
  char buffer[4096];
  const ssize_t n =
      ::poll(&polled, 1, kPatience_ms) == 1 ? ::read(out_.get(), buffer, sizeof buffer) : 0;
  if (n > 0) said_.append(buffer, n);
  return n > 0;
}

std::string RankProcess::line() {
  size_t end = 0;
  while ((end = said_.find('\n')) == said_.npos) {
    if (read_more()) continue;
    ADD_FAILURE() << "a rank says nothing more than '" << said_ << "'; it wrote: " << errors();
    return {};
  }
  std::string line = said_.substr(0, end);
  said_.erase(0, end + 1);
  return line;
}

RankProcess& RankProcess::next_of(RankProcess& one, RankProcess& other) {
  for (RankProcess* process : {&one, &other})
    if (!process->said_.empty()) return *process;
  pollfd polled[] = {{one.out_.get(), POLLIN, 0}, {other.out_.get(), POLLIN, 0}};
  EXPECT_GT(::poll(polled, 2, kPatience_ms), 0);
  return polled[0].revents ? one : other;
}

void RankProcess::kill(int signal) const {
  ::kill(pid_, signal);
}

std::string RankProcess::end() {
  while (read_more()) {
  }
  int status = 0;
  const pid_t pid = std::exchange(pid_, -1);
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << said_ << errors();
  return errors();
}

std::string RankProcess::errors() const {
  std::string text(std::max<off_t>(0, ::lseek(errors_.get(), 0, SEEK_END)), '\0');
  text.resize(std::max<ssize_t>(0, ::pread(errors_.get(), text.data(), text.size(), 0)));
  return text;
}

void hear() {
  std::getchar();
}

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

}  // namespace ferry
