// Stands in for this folder's other sources in a build without CUDA or without NCCL's header.

#include "src/base/error.h"
#include "src/comm/nccl/nccl_collectives.h"
#include "src/comm/nccl/nccl_link.h"

namespace ferry {
namespace {

[[noreturn]] void refuse() {
  throw Error(Fault::machine, "nccl", "this build has no NCCL, so it cannot use several GPUs",
              "build with CUDA and LibTorch's wheel: scripts/setup brings both");
}

}  // namespace

std::unique_ptr<RankLink> make_nccl_link(const Ranks&, RankLink&, const NcclOptions&) {
  refuse();
}

int n_gpus_for_nccl() {
  return 0;
}
bool have_peer_access(std::span<const int>) {
  return false;
}
std::unique_ptr<Collectives> make_nccl_collectives(Comm&, int) {
  refuse();
}

}  // namespace ferry
