#pragma once
// The collectives that `ferry bench nccl` times, between ranks that each have memory of a GPU or of
// the host. Training sends what it sends by RankLink; this is for measuring alone. All ranks make
// the same calls in the same order. Work is queued: only wait() says that it is done. No torch.

#include <cstdint>
#include <memory>
#include <span>

#include "src/comm/comm.h"

namespace ferry {

class Collectives {
 public:
  virtual ~Collectives() = default;

  /** Memory that the calls read and write, freed with this object. Throws Error(does_not_fit) or
   * Error(machine) where there is none. */
  virtual float* reserve(int64_t n) = 0;
  virtual void write(float* to, std::span<const float> from) = 0;
  virtual void read(std::span<float> to, const float* from) = 0;

  /** `n` values of each rank, one after the other by rank. */
  virtual void all_gather(const float* mine, float* all, int64_t n) = 0;
  /** The sum of all ranks' values at [rank * n, rank * n + n). */
  virtual void reduce_scatter(const float* all, float* mine, int64_t n) = 0;
  virtual void all_reduce(const float* mine, float* sum, int64_t n) = 0;
  /** `n` values to each rank from its place in `sends`, and from each to its place in `receives`:
   * Ferry's exchanges of weights and gradients. */
  virtual void all_to_all(const float* sends, float* receives, int64_t n) = 0;
  /** To the next rank, from the one before. */
  virtual void send_on(const float* mine, float* received, int64_t n) = 0;
  virtual void wait() = 0;
};

/** In memory of the host, by a group that outlives it. Sums are Ferry's own: ranks exchange parts
 * and add them in the order of ranks. */
std::unique_ptr<Collectives> make_host_collectives(Comm& comm);

}  // namespace ferry
