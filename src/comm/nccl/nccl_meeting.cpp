#include "src/comm/nccl/nccl_meeting.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <thread>

#include "offload/device/cuda/cuda_memory.h"
#include "src/base/error.h"
#include "src/comm/rank_lost.h"

namespace ferry {
namespace {

Nccl load_nccl() {
  constexpr const char* kLibrary = "libnccl.so.2";
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw Error(Fault::machine, "nccl.load",
                fmt::format("{} cannot be loaded: {}", kLibrary, dlerror()),
                "it comes with LibTorch's CUDA libraries: run scripts/setup again");
  Nccl nccl{};
  const auto find = [&]<class Function>(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (!function)
      throw Error(Fault::machine, "nccl.load", fmt::format("{} has no {}", kLibrary, name),
                  "run scripts/setup again, which brings the version that Ferry was built with");
  };
  find(nccl.get_unique_id, "ncclGetUniqueId");
  find(nccl.init_rank, "ncclCommInitRankConfig");
  find(nccl.async_error, "ncclCommGetAsyncError");
  find(nccl.abort, "ncclCommAbort");
  find(nccl.error_string, "ncclGetErrorString");
  find(nccl.last_error, "ncclGetLastError");
  find(nccl.group_start, "ncclGroupStart");
  find(nccl.group_end, "ncclGroupEnd");
  find(nccl.send, "ncclSend");
  find(nccl.receive, "ncclRecv");
  find(nccl.all_gather, "ncclAllGather");
  find(nccl.reduce_scatter, "ncclReduceScatter");
  find(nccl.all_reduce, "ncclAllReduce");
  return nccl;
}

void check(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  const std::string text =
      fmt::format("{}: {}: {}", what, nccl().error_string(result), nccl().last_error(nullptr));
  constexpr const char* kHint = "NCCL_DEBUG=INFO says more";
  // A rank that has died shows as one of these.
  if (result == ncclRemoteError || result == ncclSystemError || result == ncclInternalError)
    throw RankLost("nccl", text, kHint);
  throw Error(Fault::machine, "nccl", text, kHint);
}

constexpr const char* kMeeting = "the meeting of the ranks";

}  // namespace

const Nccl& nccl() {
  static const Nccl its = load_nccl();
  return its;
}

NcclMeeting::NcclMeeting(const Ranks& ranks,
                         const NcclOptions& options,
                         const std::function<void(ncclUniqueId& id)>& share_id)
    : deadline_(options.deadline) {
  FERRY_CUDA(cudaSetDevice(options.device));
  ncclUniqueId id{};
  if (ranks.rank == 0) check(nccl().get_unique_id(&id), "an id for the meeting");
  share_id(id);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;  // so that a rank that does not come is noticed
  // More blocks of the GPU send no faster: BERT-Large on two H100 took 99 % of the steps a second
  // with these, and 0.4 GiB less.
  config.maxCTAs = 8;
  start(nccl().init_rank(&comm_, ranks.world, id, ranks.rank, &config), kMeeting);
  finish(kMeeting);
}

NcclMeeting::~NcclMeeting() {
  if (comm_) nccl().abort(comm_);
}

void NcclMeeting::start(ncclResult_t result, const char* what) {
  if (result != ncclInProgress) check(result, what);
}

void NcclMeeting::finish(const char* what) {
  const auto end = std::chrono::steady_clock::now() + deadline_;
  for (ncclResult_t state = ncclInProgress; state == ncclInProgress;) {
    check(nccl().async_error(comm_, &state), what);
    if (state != ncclInProgress) check(state, what);
    if (std::chrono::steady_clock::now() > end)
      throw RankLost(
          "nccl", fmt::format("{} did not end within {} s", what, deadline_.count()),
          "see whether every rank runs; NCCL_DEBUG=INFO shows what it waits for, "
          "NCCL_SOCKET_IFNAME names the network, NCCL_P2P_DISABLE=1 goes through memory");
    if (state == ncclInProgress) std::this_thread::yield();
  }
}

}  // namespace ferry
