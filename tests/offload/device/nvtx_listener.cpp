// A profiler, as NVTX sees one: a library that NVTX_INJECTION64_PATH names. Writes the name of each
// range to the file in FERRY_NVTX_LOG as it begins, "end" as it ends.

#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>

namespace {

FILE* log_file() {
  static FILE* const file = std::fopen(std::getenv("FERRY_NVTX_LOG"), "w");
  return file;
}

void write(const char* text) {
  std::fprintf(log_file(), "%s\n", text);
  std::fflush(log_file());
}

nvtxDomainHandle_t on_domain(const char* name) {
  static char handle;
  write(name);
  return reinterpret_cast<nvtxDomainHandle_t>(&handle);
}
int on_push(nvtxDomainHandle_t, const nvtxEventAttributes_t* attributes) {
  write(attributes->message.ascii);
  return 0;
}
int on_pop(nvtxDomainHandle_t) {
  write("end");
  return 0;
}

}  // namespace

extern "C" int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table) {
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned int size = 0;
  if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size))
    return 0;
  *table[NVTX_CBID_CORE2_DomainCreateA] = reinterpret_cast<NvtxFunctionPointer>(&on_domain);
  *table[NVTX_CBID_CORE2_DomainRangePushEx] = reinterpret_cast<NvtxFunctionPointer>(&on_push);
  *table[NVTX_CBID_CORE2_DomainRangePop] = reinterpret_cast<NvtxFunctionPointer>(&on_pop);
  return 1;
}
