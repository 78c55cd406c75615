#include "models/blocks/shared_tokens.h"

#include <fmt/format.h>

#include "src/base/error.h"

namespace ferry {

void share_tokens(ModelTable& model, int sp_size) {
  if (sp_size == 1) return;
  if (!is_language_model(model.head) && model.head != HeadKind::token_classification)
    throw Error(Fault::usage, "config.sp_size",
                fmt::format("sp_size is {}, and the head of this task reads whole texts", sp_size),
                "leave sp_size out: the GPUs share the samples or the blocks");
  model.sp_size = sp_size;
  model.streams = {{.name = "tokens of this rank"}, {.name = "tokens of all ranks"}};
}

void check_heads_to_share(const ModelTable& model, int64_t n_heads, int64_t n_kv_heads) {
  for (const int64_t n : {n_heads, n_kv_heads})
    if (n % model.sp_size != 0)
      throw Error(Fault::usage, "config.sp_size",
                  fmt::format("sp_size is {}, and attention has {} heads{}", model.sp_size, n,
                              n == n_heads ? "" : " of keys and values"),
                  "sp_size is a divisor of the number of heads");
}

}  // namespace ferry
