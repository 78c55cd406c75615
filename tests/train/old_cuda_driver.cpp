// A libcuda.so.1 for tests: a driver of CUDA 12.2, which is all that a runtime asks one before it
// refuses it. Tests put it under that name where LD_LIBRARY_PATH leads to it.

extern "C" {
int cuDriverGetVersion(int* version) {
  *version = 12020;
  return 0;
}
int cuGetExportTable(const void** table, const void*) {
  *table = nullptr;
  return 1;
}
int cuGetProcAddress_v2(
    const char*, void** function, int, unsigned long long, int* /*symbolStatus*/) {
  *function = nullptr;
  return 500;  // CUDA_ERROR_NOT_FOUND
}
int cuInit(unsigned) {
  return 0;
}
}
