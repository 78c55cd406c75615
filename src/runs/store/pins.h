#pragma once
// The pins of a run's store follow its checkpoints: each has one, and a pin without a checkpoint,
// left by a kill or by a checkpoint that was removed, holds room for nothing.

#include <filesystem>
#include <string>

#include "offload/store/store.h"

namespace ferry::runs {

/** Unpins what no checkpoint of the run names, whole or put aside. No checkpoint is being written.
 */
void unpin_unused(const std::filesystem::path& run, ExtentStore& store);

/** Where the store has no room for a pin: removes checkpoints that were put aside, oldest first,
 * until it has. */
void make_room_for_pin(const std::filesystem::path& run, ExtentStore& store);

/** "checkpoint-N", or a name like it that the store has not: the run came by this step before. */
std::string name_of_pin(int64_t step, const ExtentStore& store);

}  // namespace ferry::runs
