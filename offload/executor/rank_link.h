#pragma once
// A RankLink carries the bytes that ranks send each other while a step runs. Any two ranks name
// what passes between them in the same order.

#include <cstddef>
#include <span>
#include <vector>

namespace ferry {

class RankLink {
 public:
  virtual ~RankLink() = default;
  /** Sends bytes of the device's memory to each rank, and receives others there. Both are by rank;
   * this rank's own are empty, and any may be. What one rank sends to another is as long as what
   * that rank receives. Called inside work of the queue `collective`: on a GPU the bytes move on
   * its stream, else they have moved when the call returns. */
  virtual void exchange(std::span<const std::span<const std::byte>> sends,
                        std::span<const std::span<std::byte>> receives,
                        void* stream) = 0;
  /** Each rank's values, by rank: as many as each gives. Called inside work of the queue
   * `decision`. */
  virtual std::vector<std::vector<double>> gather(std::span<const double> values) = 0;
};

}  // namespace ferry
