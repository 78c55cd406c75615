#pragma once
// The handle of another program on the same GPU (gpu_eater.cpp), for tests of builds with CUDA.

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

namespace ferry::test {

/** Runs for as long as this lives. */
class GpuEater {
 public:
  GpuEater() {
    int to[2], from[2];
    if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0) return;
    child_ = fork();
    if (child_ == 0) {
      dup2(to[0], 0);
      dup2(from[1], 1);
      execl(GPU_EATER, GPU_EATER, nullptr);
      _exit(127);
    }
    ::close(to[0]);
    ::close(from[1]);
    commands_ = fdopen(to[1], "w");
    answers_ = fdopen(from[0], "r");
  }
  ~GpuEater() {
    std::fclose(commands_);
    std::fclose(answers_);
    waitpid(child_, nullptr, 0);
  }
  GpuEater(const GpuEater&) = delete;
  GpuEater& operator=(const GpuEater&) = delete;

  /** Bytes it holds now; -1 where it has ended. */
  long long take_all() { return ask('t'); }
  long long free_all() { return ask('f'); }

 private:
  long long ask(char command) {
    std::fputc(command, commands_);
    std::fflush(commands_);
    long long n_bytes = -1;
    return std::fscanf(answers_, "%lld", &n_bytes) == 1 ? n_bytes : -1;
  }
  pid_t child_ = -1;
  std::FILE* commands_ = nullptr;
  std::FILE* answers_ = nullptr;
};

}  // namespace ferry::test
