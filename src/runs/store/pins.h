#pragma once
// The pins of a run's store follow its checkpoints: each has one, and a pin without a checkpoint,
// left by a kill or by a checkpoint that was removed, holds room for nothing.

#include <filesystem>
#include <string>
#include <vector>

#include "offload/store/store.h"
#include "src/runs/store/store_place.h"

namespace ferry::runs {

/** Unpins what no checkpoint of the run names, whole or put aside. No checkpoint is being written.
 */
void unpin_unused(const std::filesystem::path& run, ExtentStore& store);

/** Where the store has no room for a pin: removes checkpoints that were put aside, oldest first,
 * until it has. */
void make_room_for_pin(const std::filesystem::path& run, ExtentStore& store);

/** The stores that checkpoints of the run name, and its last step: it may have used several.
 * Records that cannot be read name none. */
std::vector<StorePlace> stores_named_in(const std::filesystem::path& run);

/** Removes the files of those stores of `before` that the run names no more and does not use;
 * `own`: the uuid of the one that it uses, or empty. The last step of another store than that is
 * void: a checkpoint is later. */
void remove_left_stores(const std::filesystem::path& run,
                        const std::vector<StorePlace>& before,
                        const std::string& own);

/** "checkpoint-N", or a name like it that the store has not: the run came by this step before. */
std::string name_of_pin(int64_t step, const ExtentStore& store);

}  // namespace ferry::runs
