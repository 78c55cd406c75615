#include "src/comm/nccl/nccl_collectives.h"

#include <cstdlib>
#include <string_view>
#include <vector>

#include "offload/device/cuda/cuda_memory.h"
#include "offload/device/cuda/cuda_stream.h"
#include "src/base/error.h"
#include "src/comm/nccl/nccl_meeting.h"

namespace ferry {
namespace {

class NcclCollectives final : public Collectives {
 public:
  NcclCollectives(Comm& comm, int gpu)
      : rank_(comm.rank()),
        world_(comm.world()),
        meeting_({.rank = rank_, .world = world_}, {.device = gpu}, [&](ncclUniqueId& id) {
          comm.broadcast(std::as_writable_bytes(std::span(&id, 1)), 0);
        }) {}
  ~NcclCollectives() override {
    for (float* const memory : memory_)
      cudaFree(memory);
  }

  float* reserve(int64_t n) override {
    float* memory = nullptr;
    FERRY_CUDA(cudaMalloc(&memory, bytes_of(n)));
    memory_.push_back(memory);
    return memory;
  }
  void write(float* to, std::span<const float> from) override {
    FERRY_CUDA(
        cudaMemcpyAsync(to, from.data(), from.size_bytes(), cudaMemcpyHostToDevice, stream_.get()));
    wait();
  }
  void read(std::span<float> to, const float* from) override {
    FERRY_CUDA(
        cudaMemcpyAsync(to.data(), from, to.size_bytes(), cudaMemcpyDeviceToHost, stream_.get()));
    wait();
  }

  void all_gather(const float* mine, float* all, int64_t n) override {
    start(nccl().all_gather(mine, all, count(n), ncclFloat, meeting_.get(), stream_.get()));
    finish();
  }
  void reduce_scatter(const float* all, float* mine, int64_t n) override {
    start(nccl().reduce_scatter(all, mine, count(n), ncclFloat, ncclSum, meeting_.get(),
                                stream_.get()));
    finish();
  }
  void all_reduce(const float* mine, float* sum, int64_t n) override {
    start(
        nccl().all_reduce(mine, sum, count(n), ncclFloat, ncclSum, meeting_.get(), stream_.get()));
    finish();
  }
  void all_to_all(const float* sends, float* receives, int64_t n) override {
    start(nccl().group_start());
    for (int rank = 0; rank < world_; ++rank) {
      send(sends + rank * n, n, rank);
      receive(receives + rank * n, n, rank);
    }
    start(nccl().group_end());
    finish();
  }
  void send_on(const float* mine, float* received, int64_t n) override {
    start(nccl().group_start());
    send(mine, n, (rank_ + 1) % world_);
    receive(received, n, (rank_ + world_ - 1) % world_);
    start(nccl().group_end());
    finish();
  }
  void wait() override { FERRY_CUDA(cudaStreamSynchronize(stream_.get())); }

 private:
  static constexpr const char* kCollective = "a collective";
  static size_t count(int64_t n) { return static_cast<size_t>(n); }
  static size_t bytes_of(int64_t n) { return count(n) * sizeof(float); }
  static void start(ncclResult_t result) { NcclMeeting::start(result, kCollective); }
  void finish() { meeting_.finish(kCollective); }
  void send(const float* from, int64_t n, int rank) {
    start(nccl().send(from, count(n), ncclFloat, rank, meeting_.get(), stream_.get()));
  }
  void receive(float* to, int64_t n, int rank) {
    start(nccl().receive(to, count(n), ncclFloat, rank, meeting_.get(), stream_.get()));
  }

  int rank_, world_;
  NcclMeeting meeting_;  // first: it chooses the GPU
  Stream stream_;
  std::vector<float*> memory_;
};

}  // namespace

int n_gpus_for_nccl() {
  int n = 0;
  if (cudaGetDeviceCount(&n) == cudaSuccess) return n;
  cudaGetLastError();  // no driver
  return 0;
}

bool have_peer_access(std::span<const int> gpus) {
  const char* const disabled = std::getenv("NCCL_P2P_DISABLE");
  if (disabled && std::string_view(disabled) == "1") return false;
  for (const int from : gpus)
    for (const int to : gpus) {
      int can = 1;
      if (from != to) FERRY_CUDA(cudaDeviceCanAccessPeer(&can, from, to));
      if (can == 0) return false;
    }
  return true;
}

std::unique_ptr<Collectives> make_nccl_collectives(Comm& comm, int gpu) {
  return std::make_unique<NcclCollectives>(comm, gpu);
}

}  // namespace ferry
