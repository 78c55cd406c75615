// A libnvidia-ml.so.1 for tests: FAKE_NVML says what the driver would ("ok", "old", "maxwell",
// "hot", "two" for a second GPU of another model, or an error code).

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {
std::string wish() {
  const char* text = std::getenv("FAKE_NVML");
  return text ? text : "ok";
}
struct Memory {
  unsigned long long total, free, used;
};
struct Utilization {
  unsigned gpu, memory;
};
}  // namespace

extern "C" {
int nvmlInit_v2() {
  return std::atoi(wish().c_str());
}
int nvmlShutdown() {
  return 0;
}
const char* nvmlErrorString(int code) {
  return code == 18 ? "Driver/library version mismatch" : "Some error";
}
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::snprintf(text, size, "%s", wish() == "old" ? "535.183.01" : "580.65.06");
  return 0;
}
int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = wish() == "old" ? 12020 : 13000;
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = wish() == "two" ? 2 : 1;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = reinterpret_cast<void*>(static_cast<unsigned long>(index + 1));
  return 0;
}
int nvmlDeviceGetName(void* device, char* text, unsigned size) {
  const bool is_second = device == reinterpret_cast<void*>(2UL);
  std::snprintf(text, size, "NVIDIA GeForce RTX %s", is_second ? "3060" : "2080 Ti");
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, Memory* memory) {
  *memory = {11ull << 30, 10ull << 30, 1ull << 30};
  return 0;
}
int nvmlDeviceGetCudaComputeCapability(void*, int* major, int* minor) {
  *major = wish() == "maxwell" ? 5 : 7;
  *minor = wish() == "maxwell" ? 2 : 5;
  return 0;
}
int nvmlDeviceGetMaxPcieLinkGeneration(void*, unsigned* generation) {
  *generation = 3;
  return 0;
}
int nvmlDeviceGetMaxPcieLinkWidth(void*, unsigned* width) {
  *width = 16;
  return 0;
}
int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* milliwatts) {
  *milliwatts = 250000;
  return 0;
}
int nvmlDeviceGetUtilizationRates(void*, Utilization* busy) {
  *busy = {wish() == "hot" ? 100u : 37u, 5u};
  return 0;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 123500;
  return 0;
}
int nvmlDeviceGetTemperature(void*, unsigned sensor, unsigned* celsius) {
  if (sensor != 0 || wish() == "old") return 3;  // not supported
  *celsius = wish() == "hot" ? 91 : 48;
  return 0;
}
// nvmlDeviceGetDisplayActive is missing on purpose: an older library.
}
