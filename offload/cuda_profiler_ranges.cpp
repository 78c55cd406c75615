#include <nvtx3/nvToolsExt.h>

#include "offload/profiler_ranges.h"

namespace ferry {
namespace {

nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t ours = nvtxDomainCreateA("ferry");
  return ours;
}

}  // namespace

void push_profiler_range(const char* name) {
  nvtxEventAttributes_t attributes = {};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name;
  nvtxDomainRangePushEx(domain(), &attributes);
}

void pop_profiler_range() {
  nvtxDomainRangePop(domain());
}

}  // namespace ferry
