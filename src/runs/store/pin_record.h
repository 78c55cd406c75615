#pragma once
// state/drive_states.json of a checkpoint whose states lie on a drive, wholly or in part: the
// store, the pin that keeps the generation there, and what that holds. The trainer writes it;
// `ferry train --resume`, `ferry export` and `ferry runs check` read it. Pins follow the
// checkpoints: one that no checkpoint names, after a kill or where the checkpoint was removed,
// holds room for nothing. A run whose store has all that it trains has such a record of its own:
// every step commits a generation, and the run can go on from that where no checkpoint is as late.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "offload/nvme/open_disk.h"
#include "offload/store/generation_reader.h"
#include "offload/store/stored_states.h"
#include "src/base/json/json_reader.h"
#include "src/files/hf/hf_directory.h"
#include "src/runs/store/store_place.h"

namespace ferry::runs {

struct PinRecord {
  StorePlace store;
  std::string pin;
  int64_t generation = 0;
  std::string head;  ///< name_of(HeadKind), and its labels: for `ferry export`
  int64_t n_labels = 0;
  StoredStates states;
};

/** Writes it into a checkpoint that is being made, or into a run whose store has all that is
 * trained: without a pin it tells of the generation that was committed last. */
void write_pin_record(const std::filesystem::path& directory, const PinRecord& record);

/** True where some of the checkpoint's states, and so its weights, are not in its files. */
bool has_pin_record(const std::filesystem::path& checkpoint);
/** Nothing where all states are in the checkpoint's files. Throws Error(data) where it is damaged.
 */
std::optional<PinRecord> pin_record_of(const std::filesystem::path& directory);

/** The store of a checkpoint as find_store() finds it in these directories; without any where its
 * run says that the store is now, or else where it was. */
StorePlace find_pinned_store(const std::filesystem::path& checkpoint,
                             const StorePlace& place,
                             const std::vector<std::filesystem::path>& directories = {});

/** The generation of a checkpoint, opened to be read; the run may train meanwhile. Without a pin
 * the last one, and the run does not train. */
class PinnedStates {
 public:
  /** Throws Error(data) where it is not there. */
  PinnedStates(PinRecord record, const StorePlace& place);

  const Generation& generation() const { return generation_; }
  const StoredStates& about() const { return record_.states; }
  GenerationReader& reader() { return reader_; }
  /** Reads all of it. Throws Error(data) that names block, segment, generation and place of the
   * first damage, and the number of others. */
  void check() const;

 private:
  const PinRecord record_;
  const StepShape shape_;
  std::unique_ptr<FileDisk> disk_;
  ExtentStore extents_;
  const Generation& generation_;  ///< of extents_
  StateStore store_;
  GenerationReader reader_;
};

/** Unpins what no checkpoint of the run names, whole or put aside. No checkpoint is being written.
 */
void unpin_unused(const std::filesystem::path& run, ExtentStore& store);

/** Where the store has no room for a pin: removes checkpoints that were put aside, oldest first,
 * until it has. */
void make_room_for_pin(const std::filesystem::path& run, ExtentStore& store);

/** "checkpoint-N", or a name like it that the store has not: the run came by this step before. */
std::string name_of_pin(int64_t step, const ExtentStore& store);

struct LastStep {
  int64_t step = 0;  ///< steps taken
  PinRecord record;
  JsonReader state;  ///< the generation's text: as a checkpoint's run_state.json
};

/** The last step that the run's store has committed; nothing where it holds none, or not all of the
 * run. The store's files lie as find_store() says. Where they cannot be read, says so in the log,
 * and gives nothing. */
std::optional<LastStep> last_step_of(const std::filesystem::path& run,
                                     const std::vector<std::filesystem::path>& directories);

}  // namespace ferry::runs
