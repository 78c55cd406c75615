#include <nvtx3/nvToolsExt.h>

#include <cstdlib>

#include "offload/device/profiler_ranges.h"

namespace ferry {
namespace {

nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t ours = nvtxDomainCreateA("ferry");
  return ours;
}

}  // namespace

bool profiler_listens() {
  // NVTX finds a listening profiler by this variable.
  static const bool listens = std::getenv("NVTX_INJECTION64_PATH") != nullptr;
  return listens;
}

ProfilerRange::ProfilerRange(const char* name) {
  nvtxEventAttributes_t attributes = {};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name;
  nvtxDomainRangePushEx(domain(), &attributes);
}

ProfilerRange::~ProfilerRange() {
  nvtxDomainRangePop(domain());
}

}  // namespace ferry
