#include "models/blocks/shared_work.h"

#include <fmt/format.h>

#include "src/base/error.h"

namespace ferry {

void share_work(ModelTable& model, const Sharing& sharing) {
  model.sharing = sharing;
  if (sharing.sp_size == 1) return;
  if (!is_language_model(model.head) && model.head != HeadKind::token_classification)
    throw Error(
        Fault::usage, "config.sp_size",
        fmt::format("sp_size is {}, and the head of this task reads whole texts", sharing.sp_size),
        "leave sp_size out: the GPUs share the samples or the blocks");
  model.streams = {{.name = "tokens of this rank"}, {.name = "tokens of all ranks"}};
}

void check_shares(const ModelTable& model, int64_t n, const char* what) {
  const int n_ranks = model.sharing.n_ranks();
  if (n % n_ranks == 0) return;
  const char* const key = model.sharing.tp_size > 1 ? "tp_size" : "sp_size";
  throw Error(Fault::usage, fmt::format("config.{}", key),
              fmt::format("{} is {}, and the model has {} {}", key, n_ranks, n, what),
              fmt::format("{} is a divisor of that number", key));
}

}  // namespace ferry
