#pragma once
// The messages between the rank that leads and the others. Private to this folder.

#include <cstddef>
#include <cstdint>
#include <span>

#include "src/comm/comm.h"
#include "src/engine/ranks/rank_commands.h"
#include "src/engine/session.h"

namespace ferry {

enum class RankVerb : int32_t {
  end,
  step,
  rehearse,
  evaluate,
  write,
  read,
  restore,
  change,
  leave_gpu,
  return_to_gpu,
  save,
};

template <class Value>
std::span<const std::byte> message_of(const Value& value) {
  return std::as_bytes(std::span(&value, 1));
}
inline constexpr int kLeader = 0;

template <class Value>
void receive_value(Comm& comm, Value& value, int from = kLeader) {
  comm.receive(std::as_writable_bytes(std::span(&value, 1)), from);
}

/** A request for bytes of a block's states; none: the block is written. */
struct StateRequest {
  int32_t block = -1, segment = -1;
  int64_t offset = 0, n_bytes = 0;
};

/** What all commands have room for; what follows it depends on the verb. */
struct RankLeader::Command {
  RankVerb verb{};
  int32_t block = -1, segment = -1;
  int32_t n = 0;  ///< micro-batches of the rank, or whether a rehearsal settles
  int64_t offset = 0, n_bytes = 0;
  double value = 0;
  char key[32] = {};
  SessionState state;
};

}  // namespace ferry
