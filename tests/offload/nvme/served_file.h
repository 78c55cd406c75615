#pragma once
// A file that another program serves, and that fails, delays and stops as a bad drive does.

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

extern char** environ;

namespace ferry::test {

/** A file that nbdkit serves through FUSE, with filters that make it a bad drive. */
class ServedFile {
 public:
  /** `path`: made where it is not there. Words of nbdkit. `why` says what is missing. */
  ServedFile(std::filesystem::path path, std::vector<std::string> filters, std::string& why)
      : path_(std::move(path)) {
    std::ofstream(path_, std::ios::app);
    if (::access("/dev/fuse", R_OK | W_OK) != 0) {
      why = "there is no /dev/fuse for this user";
      return;
    }
    // It ends with this process, however that ends.
    std::vector<std::string> words = {"setpriv", "--pdeathsig",  "TERM",
                                      "nbdfuse", path_.string(), "--command",
                                      "nbdkit",  "-s",           "--exit-with-parent"};
    for (std::string& word : filters)
      words.push_back(std::move(word));
    std::vector<char*> pointers;
    for (std::string& word : words)
      pointers.push_back(word.data());
    pointers.push_back(nullptr);
    posix_spawn_file_actions_t quiet;
    ::posix_spawn_file_actions_init(&quiet);
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO})
      ::posix_spawn_file_actions_addopen(&quiet, fd, "/dev/null", O_WRONLY, 0);
    const int code =
        ::posix_spawnp(&server_, words[0].c_str(), &quiet, nullptr, pointers.data(), environ);
    ::posix_spawn_file_actions_destroy(&quiet);
    if (code != 0) {
      server_ = 0;
      why = "setpriv is not installed";
      return;
    }
    for (int i = 0; i < 1000; ++i) {
      if (std::filesystem::file_size(path_) > 0) return;
      if (::waitpid(server_, nullptr, WNOHANG) == server_) {
        server_ = 0;
        break;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    why = "nbdfuse or nbdkit is not installed, or does not start";
  }
  ~ServedFile() {
    if (server_ == 0) return;
    ::kill(server_, SIGTERM);  // unmounts
    ::waitpid(server_, nullptr, 0);
  }
  const std::filesystem::path& path() const { return path_; }
  /** Returns when all of its threads stand still. */
  void stop() {
    ::kill(server_, SIGSTOP);
    for (const auto& thread :
         std::filesystem::directory_iterator("/proc/" + std::to_string(server_) + "/task"))
      while (state_of(thread.path()) != 'T')
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  void go_on() { ::kill(server_, SIGCONT); }

 private:
  static char state_of(const std::filesystem::path& task) {
    std::ifstream status(task / "status");
    for (std::string word; status >> word;)
      if (word == "State:" && status >> word) return word.front();
    return 0;
  }

  std::filesystem::path path_;
  pid_t server_ = 0;
};

}  // namespace ferry::test
