#pragma once
// Sockets of runs for the tests of both sides: clients that only connect, listeners that are no
// run, a run in a process that is stopped.

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "src/base/unique_fd.h"
#include "src/runs/control.h"
#include "tests/files/test_files.h"

namespace ferry::runs {

inline sockaddr_un address_of(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  return address;
}

inline UniqueFd connect_to(const std::filesystem::path& path) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = address_of(path);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return fd;
}

inline UniqueFd listen_at(const std::filesystem::path& path, int flags = 0) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
  const sockaddr_un address = address_of(path);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::listen(fd.get(), 1), 0);
  return fd;
}

/** A process of its own that holds the socket of a run, and is stopped. */
class StoppedRun {
 public:
  StoppedRun(const std::filesystem::path& run, const std::filesystem::path& ready)
      : child_(::fork()) {
    if (child_ == 0) {
      ControlServer server(run);
      std::ofstream(ready) << server.path().string() << "\n";
      while (true)
        ::pause();
    }
    while (!std::getline(std::ifstream(ready), socket_))
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ::kill(child_, SIGSTOP);
    ::waitpid(child_, nullptr, WUNTRACED);
  }
  StoppedRun(const StoppedRun&) = delete;
  StoppedRun& operator=(const StoppedRun&) = delete;
  ~StoppedRun() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  pid_t pid() const { return child_; }
  const std::string& socket() const { return socket_; }

 private:
  pid_t child_;
  std::string socket_;
};

/** Its sockets lie in the test's directory. */
class ControlTest : public ::testing::Test {
 protected:
  ControlTest() { setenv("XDG_RUNTIME_DIR", directory_.path().c_str(), 1); }
  test::TempDir directory_;
};

}  // namespace ferry::runs
