// Names of queues, verbs and actions, for messages and traces.

#include <fmt/format.h>

#include <array>

#include "offload/step/action.h"
#include "offload/step/step_shape.h"

namespace ferry {

std::string_view name_of(QueueId queue) {
  constexpr std::array<std::string_view, kQueues> names = {
      "compute", "h2d", "d2h", "collective", "host", "decision", "save", "nvme_read", "nvme_write"};
  return names[static_cast<size_t>(queue)];
}

std::string_view name_of(Verb verb) {
  constexpr std::array<std::string_view, kVerbs> names = {
      "fetch_batch",      "fetch_weights",     "send_saved",     "fetch_saved",
      "send_layer_input", "fetch_layer_input", "send_grads",     "fetch_grads",
      "send_weights",     "send_step_sums",    "gather_weights", "exchange_grads",
      "pass_value",       "forward",           "recompute",      "backward",
      "accumulate",       "combine",           "square_sum",     "decide",
      "update",           "read_weights",      "write_grads",    "read_grads",
      "fetch_states",     "send_states",       "commit"};
  return names[static_cast<size_t>(verb)];
}

std::string describe(const Action& a, const StepShape& shape) {
  std::string where = a.block >= 0 ? shape.blocks[a.block].name : "step";
  if (a.piece >= 0) where += fmt::format(", piece {}", a.piece);
  if (a.micro >= 0) where += fmt::format(", micro-batch {}", a.micro);
  return fmt::format("{}({}) on {}", name_of(a.verb), where, name_of(a.queue));
}

}  // namespace ferry
