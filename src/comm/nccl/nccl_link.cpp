#include "src/comm/nccl/nccl_link.h"

#include <algorithm>
#include <array>
#include <bit>

#include "offload/device/cuda/cuda_memory.h"
#include "src/comm/nccl/nccl_meeting.h"

namespace ferry {
namespace {

/** Values of the host are doubles: the id is carried bit by bit in some. */
void share_id(RankLink& host, ncclUniqueId& id) {
  using IdAsDoubles = std::array<double, sizeof(ncclUniqueId) / sizeof(double)>;
  const auto mine = std::bit_cast<IdAsDoubles>(id);
  const std::vector<std::vector<double>> all = host.gather(mine);
  IdAsDoubles first;
  std::copy_n(all.front().begin(), first.size(), first.begin());
  id = std::bit_cast<ncclUniqueId>(first);
}

class NcclLink final : public RankLink {
 public:
  NcclLink(const Ranks& ranks, RankLink& host, const NcclOptions& options)
      : host_(host), meeting_(ranks, options, [&](ncclUniqueId& id) { share_id(host, id); }) {}

  void exchange(std::span<const std::span<const std::byte>> sends,
                std::span<const std::span<std::byte>> receives,
                void* stream) override {
    constexpr const char* kMessage = "a message";
    const auto start = [](ncclResult_t result) { NcclMeeting::start(result, kMessage); };
    const auto queue = static_cast<cudaStream_t>(stream);
    start(nccl().group_start());
    for (size_t peer = 0; peer < sends.size(); ++peer) {
      const auto rank = static_cast<int>(peer);
      if (!sends[peer].empty())
        start(nccl().send(sends[peer].data(), sends[peer].size(), ncclUint8, rank, meeting_.get(),
                          queue));
      if (!receives[peer].empty())
        start(nccl().receive(receives[peer].data(), receives[peer].size(), ncclUint8, rank,
                             meeting_.get(), queue));
    }
    start(nccl().group_end());
    meeting_.finish(kMessage);
  }

  std::vector<std::vector<double>> gather(std::span<const double> values) override {
    return host_.gather(values);
  }

 private:
  RankLink& host_;
  NcclMeeting meeting_;
};

}  // namespace

std::unique_ptr<RankLink> make_nccl_link(const Ranks& ranks,
                                         RankLink& host,
                                         const NcclOptions& options) {
  return std::make_unique<NcclLink>(ranks, host, options);
}

}  // namespace ferry
