#pragma once
// NVML, opened at run time. Private to src/service/machine.

#include <dlfcn.h>

#include <memory>

namespace ferry::service::nvml {

// The few prototypes of NVML's stable C interface that are used.
using Return = int;  // 0: success
using Device = void*;
struct Memory {
  unsigned long long total, free, used;  // bytes
};
constexpr unsigned kTextSize = 96;

struct CloseLibrary {
  void operator()(void* library) const { dlclose(library); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

template <typename Function>
Function* symbol(const Library& library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library.get(), name));
}

/** Calls a function of the library when it has it; anything else is a failure. */
template <typename... Arguments>
bool succeeds(const Library& library, const char* name, Arguments... arguments) {
  auto* function = symbol<Return(Arguments...)>(library, name);
  return function && function(arguments...) == 0;
}

inline Library open_library() {
  for (const char* name : {"libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1"})
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return Library(library);
  return nullptr;
}

/** Begins to use it: nvmlReturn_t, -1 where the library is too old. */
inline Return start(const Library& library) {
  auto* init = symbol<Return()>(library, "nvmlInit_v2");
  return init ? init() : -1;
}

}  // namespace ferry::service::nvml
