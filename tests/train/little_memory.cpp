// Preloaded into a process, leaves it less memory than a thread's stack takes from the moment its
// first thread is to begin: a machine that is full when a run starts. Not from the start of the
// process, where the loader would end it before its first line.

#include <dlfcn.h>
#include <pthread.h>
#include <sys/resource.h>

#include <cstdio>
#include <mutex>

namespace {

/** The process's own writable memory, as RLIMIT_DATA counts it. 0: not known. */
rlim_t data_bytes() {
  std::FILE* status = std::fopen("/proc/self/status", "r");
  if (!status) return 0;
  unsigned long long kib = 0;
  for (char line[256]; kib == 0 && std::fgets(line, sizeof line, status);)
    std::sscanf(line, "VmData: %llu kB", &kib);
  std::fclose(status);
  return kib * 1024;
}

void take_memory() {
  constexpr rlim_t kLeft_bytes = 4 << 20;
  if (const rlim_t used = data_bytes(); used > 0) {
    const rlimit limit = {used + kLeft_bytes, used + kLeft_bytes};
    ::setrlimit(RLIMIT_DATA, &limit);
  }
}

}  // namespace

extern "C" int pthread_create(pthread_t* thread,
                              const pthread_attr_t* attributes,
                              void* (*start)(void*),
                              void* argument) {
  using Function = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto real = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "pthread_create"));
  static std::once_flag once;
  std::call_once(once, take_memory);
  return real(thread, attributes, start, argument);
}
