// A libcuda.so.1 for tests: a driver of CUDA 12.2, which is all that a runtime asks one before it
// refuses it. Tests put it under that name where LD_LIBRARY_PATH leads to it.

#include <cstring>

extern "C" {
int cuDriverGetVersion(int* version) {
  *version = 12020;
  return 0;
}
int cuGetExportTable(const void** table, const void*) {
  *table = nullptr;
  return 1;
}
int cuInit(unsigned) {
  return 0;
}
/** The runtime finds even the version by name; a driver that knows no names counts as none. */
int cuGetProcAddress_v2(
    const char* name, void** function, int, unsigned long long, int* /*symbolStatus*/) {
  constexpr int kNotFound = 500;
  const auto is = [name](const char* other) { return std::strcmp(name, other) == 0; };
  *function = is("cuDriverGetVersion") ? reinterpret_cast<void*>(&cuDriverGetVersion)
              : is("cuGetExportTable") ? reinterpret_cast<void*>(&cuGetExportTable)
              : is("cuInit")           ? reinterpret_cast<void*>(&cuInit)
              : is("cuGetProcAddress") ? reinterpret_cast<void*>(&cuGetProcAddress_v2)
                                       : nullptr;
  return *function ? 0 : kNotFound;
}
}
