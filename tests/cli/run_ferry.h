#pragma once
// Runs the built ferry (or a shell) as a user would: arguments, environment, standard input; gives
// exit code and both outputs.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace ferry::cli {

struct Outcome {
  int exit_code = -1;
  std::string out, err;
};

using Environment = std::vector<std::pair<std::string, std::string>>;

struct Start {
  std::vector<std::string> arguments;
  Environment environment = {};  // added
  std::string directory = {};    // empty: the test's
  std::string out_file = {};     // standard output goes here instead
  std::string program = {};      // empty: ferry; else looked for in PATH
};

/** The program under test, from FERRY_BINARY. */
inline std::string ferry_binary() {
  const char* path = std::getenv("FERRY_BINARY");
  return path ? path : "";
}

/** Meson puts the folder of a test's libraries into LD_LIBRARY_PATH; ferry must find the fake
 * driver only where a test says so. */
inline void forget_fake_driver() {
  const char *paths = std::getenv("LD_LIBRARY_PATH"), *fake = std::getenv("FAKE_NVML_DIRECTORY");
  if (!paths || !fake) return;
  std::stringstream all(paths);
  std::string kept;
  for (std::string path; std::getline(all, path, ':');)
    if (path != fake) kept += (kept.empty() ? "" : ":") + path;
  setenv("LD_LIBRARY_PATH", kept.c_str(), 1);
}

inline void read_both(std::array<int, 2> descriptors, std::array<std::string*, 2> texts) {
  std::array<pollfd, 2> polled = {pollfd{descriptors[0], POLLIN, 0},
                                  pollfd{descriptors[1], POLLIN, 0}};
  for (int n_open = 2; n_open > 0;) {
    if (poll(polled.data(), 2, -1) < 0) break;
    for (size_t i = 0; i < 2; ++i) {
      if (polled[i].fd < 0 || polled[i].revents == 0) continue;
      char buffer[4096];
      ssize_t n = read(polled[i].fd, buffer, sizeof buffer);
      if (n > 0) {
        texts[i]->append(buffer, static_cast<size_t>(n));
        continue;
      }
      close(polled[i].fd);
      polled[i].fd = -1;
      --n_open;
    }
  }
}

inline Outcome run_ferry(const Start& start) {
  Outcome outcome;
  int out[2], err[2];
  if (pipe(out) != 0 || pipe(err) != 0) {
    ADD_FAILURE() << "no pipe";
    return outcome;
  }
  std::vector<std::string> words = {start.program.empty() ? ferry_binary() : start.program};
  words.insert(words.end(), start.arguments.begin(), start.arguments.end());
  const pid_t child = fork();
  if (child == 0) {
    int in = open("/dev/null", O_RDONLY);
    dup2(in, 0);
    dup2(start.out_file.empty() ? out[1] : open(start.out_file.c_str(), O_WRONLY), 1);
    dup2(err[1], 2);
    for (int descriptor : {out[0], out[1], err[0], err[1]})
      close(descriptor);
    if (!start.directory.empty() && chdir(start.directory.c_str()) != 0) _exit(99);
    forget_fake_driver();
    for (const auto& [name, value] : start.environment)
      setenv(name.c_str(), value.c_str(), 1);
    std::vector<char*> pointers;
    for (std::string& word : words)
      pointers.push_back(word.data());
    pointers.push_back(nullptr);
    execvp(pointers[0], pointers.data());
    _exit(98);
  }
  close(out[1]);
  close(err[1]);
  read_both({out[0], err[0]}, {&outcome.out, &outcome.err});
  int status = 0;
  waitpid(child, &status, 0);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

}  // namespace ferry::cli
