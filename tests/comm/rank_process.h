#pragma once
// Ranks as processes: a test forks each of them, tells it when to go on, and hears what it says.
// The test itself starts no threads and calls nothing of LibTorch, so a fork of it is sound.

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>

#include "src/base/unique_fd.h"

namespace ferry {

using Variables = std::map<std::string, std::string>;

class RankProcess {
 public:
  /** Runs the program with these variables in its environment. Of the test's files it has
   * `passed_fd` alone, as kPassedFd; -1 passes none. What it EXPECTs and throws fails the test at
   * its end(). */
  RankProcess(const std::function<void()>& program, const Variables& variables, int passed_fd = -1);
  RankProcess(RankProcess&& other) noexcept;
  RankProcess& operator=(RankProcess&&) = delete;
  /** Kills one that has not ended. */
  ~RankProcess();

  /** Lets the program's hear() return. */
  void tell();
  /** The next line that it says; fails the test and gives an empty one where none comes. */
  std::string line();
  /** The one of two that says its next line first. */
  static RankProcess& next_of(RankProcess& one, RankProcess& other);
  void kill(int signal) const;
  /** Waits for its end, which is a good one, and gives what it wrote to standard error. */
  std::string end();

  static constexpr int kPassedFd = 3;

 private:
  bool read_more();
  std::string errors() const;

  pid_t pid_ = -1;
  UniqueFd in_, out_, errors_;
  std::string said_;
};

/** In a rank: waits for tell(). */
void hear();
/** In a rank: a line for line(). */
void say(const std::string& line);

}  // namespace ferry
