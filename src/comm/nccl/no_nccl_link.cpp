// Stands in for nccl_link.cpp in a build without CUDA or without NCCL's header.

#include "src/base/error.h"
#include "src/comm/nccl/nccl_link.h"

namespace ferry {

std::unique_ptr<RankLink> make_nccl_link(const Ranks&, RankLink&, const NcclOptions&) {
  throw Error(Fault::machine, "nccl", "this build has no NCCL, so it cannot use several GPUs",
              "build with CUDA and LibTorch's wheel: scripts/setup brings both");
}

}  // namespace ferry
