#include "tests/train/start_ferry.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

namespace ferry::test {

pid_t start_ferry(const std::filesystem::path& root,
                  std::vector<std::string> arguments,
                  const std::string& prefix,
                  const std::function<void()>& first) {
  const pid_t child = fork();
  if (child != 0) return child;
  arguments.insert(arguments.begin(), FERRY_BINARY);
  std::vector<char*> pointers;
  for (std::string& word : arguments)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  setenv("FERRY_TRAINER", FERRY_TRAINER_BINARY, 1);
  setenv("XDG_DATA_HOME", (root / "data").c_str(), 1);    // an index of runs of its own
  setenv("XDG_CACHE_HOME", (root / "cache").c_str(), 1);  // and tokens
  if (chdir(root.c_str()) != 0) _exit(126);
  for (auto [name, target] : {std::pair{"out", 1}, {"err", 2}})
    dup2(open((prefix + name).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666), target);
  if (first) first();
  execv(FERRY_BINARY, pointers.data());
  _exit(127);
}

}  // namespace ferry::test
