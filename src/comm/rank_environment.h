#pragma once
// What a launcher tells each rank of a run in its environment. No torch.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ferry {

struct RankEnvironment {
  int rank = 0;
  int world = 1;
  int local_rank = 0;   ///< among the ranks of this host
  int local_world = 1;  ///< how many this host has
  std::string master_address;
  int master_port = 0;
  /** The launcher serves the store (torchrun); otherwise rank 0 does. */
  bool agent_store = false;
  std::string run_id;     ///< what a launcher calls the run; empty where it has no name
  int restart_count = 0;  ///< how often a launcher has started the run anew
  /** Every host has local_world ranks, and they are numbered host by host. */
  bool is_by_host = false;

  bool operator==(const RankEnvironment&) const = default;
};

/** A variable of the environment, or null; getenv's form. */
using LookUpVariable = std::function<const char*(const char* name)>;

/** What torchrun, torch.distributed.launch, mpirun (Open MPI, MPICH, Intel MPI) or srun tell a
 * rank; nothing where none of them started this process. MASTER_ADDR and MASTER_PORT count with all
 * of them. Throws Error(usage) that names the variable where one is missing or wrong. */
std::optional<RankEnvironment> read_rank_environment(const LookUpVariable& look_up);

/** The hosts of a list as Slurm writes it: "n[01-03,7],gpu2" is n01, n02, n03, n7, gpu2. Throws
 * Error(usage) where it is no such list. */
std::vector<std::string> expand_host_list(std::string_view list);

}  // namespace ferry
