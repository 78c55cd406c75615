#include "src/comm/nccl/nccl_link.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <nccl.h>

#include <array>
#include <bit>
#include <thread>

#include "offload/device/cuda/cuda_memory.h"
#include "src/base/error.h"
#include "src/comm/rank_lost.h"

namespace ferry {
namespace {

/** The functions of the library. */
struct Nccl {
  decltype(&ncclGetUniqueId) get_unique_id;
  decltype(&ncclCommInitRankConfig) init_rank;
  decltype(&ncclCommGetAsyncError) async_error;
  decltype(&ncclCommAbort) abort;
  decltype(&ncclGetErrorString) error_string;
  decltype(&ncclGetLastError) last_error;
  decltype(&ncclGroupStart) group_start;
  decltype(&ncclGroupEnd) group_end;
  decltype(&ncclSend) send;
  decltype(&ncclRecv) receive;
};

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
  return nccl;
}

const Nccl& nccl() {
  static const Nccl its = load_nccl();
  return its;
}

class NcclLink final : public RankLink {
 public:
  NcclLink(const Ranks& ranks, RankLink& host, const NcclOptions& options)
      : host_(host), deadline_(options.deadline) {
    FERRY_CUDA(cudaSetDevice(options.device));
    // Values of the host are doubles: the id is carried bit by bit in some.
    using IdAsDoubles = std::array<double, sizeof(ncclUniqueId) / sizeof(double)>;
    ncclUniqueId id{};
    if (ranks.rank == 0) check(nccl().get_unique_id(&id), "an id for the meeting");
    const auto mine = std::bit_cast<IdAsDoubles>(id);
    const std::vector<std::vector<double>> all = host_.gather(mine);
    IdAsDoubles first;
    std::copy_n(all.front().begin(), first.size(), first.begin());
    id = std::bit_cast<ncclUniqueId>(first);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;  // so that a rank that does not come is noticed
    // More blocks of the GPU send no faster: BERT-Large on two H100 took 99 % of the steps a second
    // with these, and 0.4 GiB less.
    config.maxCTAs = 8;
    const ncclResult_t result = nccl().init_rank(&comm_, ranks.world, id, ranks.rank, &config);
    if (result != ncclInProgress) check(result, "the meeting of the ranks");
    finish("the meeting of the ranks");
  }
  ~NcclLink() override {
    if (comm_) nccl().abort(comm_);
  }

  void exchange(std::span<const std::span<const std::byte>> sends,
                std::span<const std::span<std::byte>> receives,
                void* stream) override {
    const auto queue = static_cast<cudaStream_t>(stream);
    check(nccl().group_start(), "a message");
    for (size_t peer = 0; peer < sends.size(); ++peer) {
      const auto rank = static_cast<int>(peer);
      if (!sends[peer].empty())
        start(nccl().send(sends[peer].data(), sends[peer].size(), ncclUint8, rank, comm_, queue));
      if (!receives[peer].empty())
        start(nccl().receive(receives[peer].data(), receives[peer].size(), ncclUint8, rank, comm_,
                             queue));
    }
    start(nccl().group_end());
    finish("a message");
  }

  std::vector<std::vector<double>> gather(std::span<const double> values) override {
    return host_.gather(values);
  }

 private:
  /** A call that may go on after it has returned. */
  void start(ncclResult_t result) const {
    if (result != ncclInProgress) check(result, "a message");
  }
  /** Waits until what was started is under way on the GPU. */
  void finish(const char* what) {
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
  static void check(ncclResult_t result, const char* what) {
    if (result == ncclSuccess) return;
    const std::string text =
        fmt::format("{}: {}: {}", what, nccl().error_string(result), nccl().last_error(nullptr));
    constexpr const char* kHint = "NCCL_DEBUG=INFO says more";
    // What a rank that has died shows as.
    if (result == ncclRemoteError || result == ncclSystemError || result == ncclInternalError)
      throw RankLost("nccl", text, kHint);
    throw Error(Fault::machine, "nccl", text, kHint);
  }

  RankLink& host_;
  std::chrono::seconds deadline_;
  ncclComm_t comm_ = nullptr;
};

}  // namespace

std::unique_ptr<RankLink> make_nccl_link(const Ranks& ranks,
                                         RankLink& host,
                                         const NcclOptions& options) {
  return std::make_unique<NcclLink>(ranks, host, options);
}

}  // namespace ferry
