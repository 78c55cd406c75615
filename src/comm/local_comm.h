#pragma once
// A world of one rank: what a rank gathers, adds or splits off is its own.

#include "src/comm/comm.h"

namespace ferry {

class LocalComm final : public Comm {
 public:
  /** `rank_of_run`: of a group with one member, that rank. */
  explicit LocalComm(int rank_of_run = 0);

 private:
  void transfer(std::span<const SentBytes> sends,
                std::span<const ReceivedBytes> receives,
                Clock::time_point until) override;
  std::unique_ptr<Comm> make_group(const std::vector<int>& members,
                                   int n_split,
                                   Clock::time_point until) override;
  void leave(const std::string& cause) noexcept override;
};

}  // namespace ferry
