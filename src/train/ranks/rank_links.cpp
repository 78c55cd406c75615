#include "src/train/ranks/rank_links.h"

#include "src/comm/nccl/nccl_link.h"

namespace ferry {

RankLinks make_rank_links(Comm& comm, const StepShape& shape, int gpu) {
  RankLinks links;
  links.groups = make_rank_groups(comm, shape.ranks.sharing.n_ranks());
  links.on_host = make_comm_link(*links.groups.exchanges, *links.groups.decisions);
  Comm* const sharing = links.groups.sharing.get();
  if (sharing) links.sharing_on_host = make_comm_link(*sharing, *sharing);
  if (shape.computes_on_host) return links;
  links.between_gpus = make_nccl_link(shape.ranks, *links.on_host, {.device = gpu});
  if (sharing)
    links.sharing_between_gpus =
        make_nccl_link({.rank = sharing->rank(), .world = sharing->world()}, *links.sharing_on_host,
                       {.device = gpu});
  return links;
}

}  // namespace ferry
