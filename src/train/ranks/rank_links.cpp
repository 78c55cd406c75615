#include "src/train/ranks/rank_links.h"

#include "src/comm/nccl/nccl_link.h"

namespace ferry {

RankLinks make_rank_links(Comm& comm, const StepShape& shape, int gpu) {
  RankLinks links;
  links.groups = make_rank_groups(comm, shape.ranks.sp_size);
  links.on_host = make_comm_link(*links.groups.exchanges, *links.groups.decisions);
  Comm* const tokens = links.groups.tokens.get();
  if (tokens) links.tokens_on_host = make_comm_link(*tokens, *tokens);
  if (shape.computes_on_host) return links;
  links.between_gpus = make_nccl_link(shape.ranks, *links.on_host, {.device = gpu});
  if (tokens)
    links.tokens_between_gpus = make_nccl_link({.rank = tokens->rank(), .world = tokens->world()},
                                               *links.tokens_on_host, {.device = gpu});
  return links;
}

}  // namespace ferry
