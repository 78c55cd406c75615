#include "src/runs/store/pin_record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/print.h"
#include "src/files/plain_file.h"
#include "src/files/write/atomic_file.h"
#include "src/runs/directory/checkpoints.h"

namespace ferry::runs {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr int kRecord_version = 1;
constexpr const char* kOpen = "checkpoint.drive";
constexpr int64_t kMost = int64_t{1} << 50;  // bytes or elements

constexpr DType kComputes[] = {DType::f32, DType::f16, DType::bf16};

ordered_json json_of(const std::vector<StoredStates::Part>& parts) {
  ordered_json list = ordered_json::array();
  for (const StoredStates::Part& part : parts)
    list.push_back({{"tensor", part.tensor},
                    {"first_byte", part.first_byte},
                    {"n_bytes", part.n_bytes},
                    {"block", part.block},
                    {"offset", part.offset}});
  return list;
}

ordered_json json_of(const StoredStates& states) {
  ordered_json blocks = ordered_json::array();
  for (const StoredStates::Block& block : states.blocks)
    blocks.push_back({{"block", block.number},
                      {"name", block.name},
                      {"n_elements", block.n_elements},
                      {"n_trained_elements", block.n_trained_elements},
                      {"has_weights", block.has_weights}});
  return {
      {"dtype", name_of(states.compute)},    {"states", simd::spec_of(states.optim).stored_name},
      {"split_master", states.split_master}, {"piece_elements", states.piece_elements},
      {"blocks", std::move(blocks)},         {"master", json_of(states.master)},
      {"adam", json_of(states.states)}};  // whatever the optimizer is
}

/** Bytes of the segment that a part may lie in; `block` is one of the shape's. */
int64_t bytes_of(const StepShape& shape, int block, Segment segment) {
  if (segment != Segment::master) return segment_bytes(shape, block, segment);
  return shape.blocks[block].n_trained_elements * static_cast<int64_t>(sizeof(float));
}

std::vector<StoredStates::Part> parts_in(const JsonReader& list,
                                         const StepShape& shape,
                                         Segment segment) {
  std::vector<StoredStates::Part> parts;
  for (size_t i = 0; i < list.size(); ++i) {
    const JsonReader json = list.at(i);
    StoredStates::Part part = {
        .tensor = json.text("tensor"),
        .first_byte = json.integer("first_byte", 0, kMost),
        .n_bytes = json.integer("n_bytes", 1, kMost),
        .block = static_cast<int>(json.integer("block", -1, shape.n_blocks() - 1)),
        .offset = json.integer("offset", 0, kMost)};
    if (part.block >= 0 && (shape.n_state_pieces(part.block) == 0 ||
                            part.offset + part.n_bytes > bytes_of(shape, part.block, segment)))
      json.refuse("bytes of a block that lies on the drive");
    parts.push_back(std::move(part));
  }
  return parts;
}

/** The place in `all` of what the text names. */
size_t index_in(const JsonReader& json, std::string_view key, const auto& all, auto&& name) {
  std::vector<std::string_view> names;
  std::ranges::transform(all, std::back_inserter(names), name);
  const auto found = std::ranges::find(names, json.text(key));
  if (found == names.end()) json.at(key).refuse(fmt::format("{}", fmt::join(names, " or ")));
  return static_cast<size_t>(found - names.begin());
}

StoredStates stored_states_in(const JsonReader& json) {
  constexpr int64_t kBlocks_max = 100'000;
  StoredStates states;
  states.compute =
      kComputes[index_in(json, "dtype", kComputes, [](DType type) { return name_of(type); })];
  states.optim = static_cast<simd::Optim>(
      index_in(json, "states", simd::kOptims, &simd::OptimSpec::stored_name));
  states.split_master = json.flag("split_master");
  states.piece_elements = json.integer("piece_elements", 1, kMost);
  if (states.piece_elements % simd::kStateBlock != 0)
    json.at("piece_elements").refuse(fmt::format("a multiple of {}", simd::kStateBlock));
  const JsonReader blocks = json.at("blocks");
  for (size_t i = 0; i < blocks.size(); ++i) {
    const JsonReader block = blocks.at(i);
    const int64_t n_elements = block.integer("n_elements", 1, kMost);
    states.blocks.push_back(
        {.name = block.text("name"),
         .number = static_cast<int>(block.integer("block", 0, kBlocks_max)),
         .n_elements = n_elements,
         .n_trained_elements = block.integer("n_trained_elements", 0, n_elements),
         .has_weights = block.flag("has_weights")});
  }
  const StepShape shape = shape_of(states);
  states.master = parts_in(json.at("master"), shape, Segment::master);
  states.states = parts_in(json.at("adam"), shape, Segment::state_0);
  return states;
}

/** Throws Error(data) where the store has not what the record says. */
const Generation& generation_of(const PinRecord& record,
                                const StepShape& shape,
                                const ExtentStore& store) {
  const auto refuse = [&](const std::string& what) {
    throw Error(Fault::data, kOpen, fmt::format("'{}' {} '{}'", store.name(), what, record.pin),
                "is it an older copy of the store? Resume from another checkpoint");
  };
  const auto pins = store.pins();
  const bool is_pinned = !record.pin.empty();
  if (is_pinned && std::ranges::find(pins, record.pin) == pins.end()) refuse("keeps no");
  const Generation& generation = is_pinned ? store.pinned(record.pin) : store.committed();
  if (is_pinned && generation.number != record.generation) refuse("keeps another generation as");
  if (!StateStore::has_states_of(shape, store.layout())) refuse("has other blocks than those of");
  return generation;
}

/** The pin of a directory in this store; empty where it has none. */
std::string pin_in(const fs::path& checkpoint, const ExtentStore& store) {
  const auto record = pin_record_of(checkpoint);
  return record && record->store.uuid == store.identity().uuid ? record->pin : std::string();
}

}  // namespace

void write_pin_record(const fs::path& checkpoint, const PinRecord& record) {
  write_json_file(checkpoint / kPinRecordName, {{"format_version", kRecord_version},
                                                {"store", to_json(record.store)},
                                                {"pin", record.pin},
                                                {"generation", record.generation},
                                                {"head", record.head},
                                                {"n_labels", record.n_labels},
                                                {"holds", json_of(record.states)}});
}

bool has_pin_record(const fs::path& checkpoint) {
  return path_exists(checkpoint / kPinRecordName);
}

std::optional<PinRecord> pin_record_of(const fs::path& checkpoint) {
  if (!has_pin_record(checkpoint)) return std::nullopt;
  const fs::path file = checkpoint / kPinRecordName;
  const JsonReader json = JsonReader::parse(
      read_text_file(file),
      {file.string(), "checkpoint.read", "resume from an earlier checkpoint, and check the disk"});
  json.integer("format_version", kRecord_version, kRecord_version);
  return PinRecord{.store = parse_store_place(json.at("store")),
                   .pin = json.text("pin"),
                   .generation = json.integer("generation", 0, INT64_MAX),
                   .head = json.text("head"),
                   .n_labels = json.integer("n_labels", 0, INT32_MAX),
                   .states = stored_states_in(json.at("holds"))};
}

StorePlace find_pinned_store(const fs::path& checkpoint,
                             const StorePlace& place,
                             const std::vector<fs::path>& directories) {
  if (!directories.empty()) return find_store(place, directories);
  const fs::path run = fs::absolute(checkpoint).lexically_normal().parent_path();
  try {
    const auto now = store_place_of(run);
    if (now && now->uuid == place.uuid) return find_store(*now, {});
  } catch (const Error&) {  // a checkpoint without its run will do
  }
  return find_store(place, {});
}

PinnedStates::PinnedStates(PinRecord record, const StorePlace& place)
    : record_(std::move(record)),
      shape_(shape_of(record_.states)),
      disk_(open_disk(place.paths(), place.n_bytes, {.must_exist = true, .reads_only = true})),
      extents_(*disk_,
               {.run = record_.store.run, .uuid = record_.store.uuid},
               ExtentStore::Access::read_only),
      generation_(generation_of(record_, shape_, extents_)),
      store_(shape_, extents_),
      reader_(shape_, store_, generation_) {}

void PinnedStates::check() const {
  const std::vector<StoreDamage> damages = extents_.check(record_.pin);
  if (damages.empty()) return;
  throw Error(Fault::data, "store.check",
              damages.size() == 1
                  ? damages.front().what
                  : fmt::format("{}; and {} more", damages.front().what, damages.size() - 1),
              "resume from another checkpoint, and check the drive");
}

void unpin_unused(const fs::path& run, ExtentStore& store) {
  std::vector<std::string> used;
  try {
    for (const fs::path& checkpoint : checkpoint_directories(run))
      used.push_back(pin_in(checkpoint, store));
  } catch (const Error& error) {
    // Its pin may be any of them.
    return log_line(fmt::format("no room on the drive is given back: {}", error.what()));
  }
  for (const std::string& pin : store.pins())
    if (std::ranges::find(used, pin) == used.end()) store.unpin(pin);
}

void make_room_for_pin(const fs::path& run, ExtentStore& store) {
  for (const Checkpoint& aside : checkpoints_put_aside(run)) {
    if (std::ssize(store.pins()) < store.layout().n_kept()) return;
    if (pin_in(aside.path, store).empty()) continue;
    log_line(fmt::format("{} is removed: the drive has room for {} checkpoints",
                         aside.path.filename().string(), store.layout().n_kept()));
    remove_checkpoint(aside.path);
    unpin_unused(run, store);
  }
}

std::string name_of_pin(int64_t step, const ExtentStore& store) {
  const std::vector<std::string> pins = store.pins();
  const std::string first = fmt::format("checkpoint-{}", step);
  std::string name = first;
  for (int n = 2; std::ranges::find(pins, name) != pins.end(); ++n)
    name = fmt::format("{}.{}", first, n);
  return name;
}

std::optional<LastStep> last_step_of(const fs::path& run,
                                     const std::vector<fs::path>& directories) {
  auto record = pin_record_of(run);
  if (!record) return std::nullopt;
  try {
    const PinnedStates states(*record, find_store(record->store, directories));
    const Generation& generation = states.generation();
    if (generation.number == 0 || generation.metadata.empty()) return std::nullopt;
    if (!generation.damage.empty()) throw Error(Fault::data, "store.read", generation.damage);
    JsonReader state =
        JsonReader::parse(generation.metadata,
                          {fmt::format("generation {} of {}", generation.number,
                                       record->store.files.front().path.string()),
                           "store.read", "resume from a checkpoint of the run: RUN/checkpoint-N"});
    const int64_t step = state.integer("n_steps", 0, INT64_MAX);
    if (step == 0) return std::nullopt;
    record->generation = generation.number;
    return LastStep{step, std::move(*record), std::move(state)};
  } catch (const Error& error) {
    log_line(fmt::format("the last step on the drive is not looked at: {}", error.what()));
    return std::nullopt;
  }
}

}  // namespace ferry::runs
