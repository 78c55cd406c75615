#include "src/runs/directory/checkpoints.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "src/base/crc32c.h"
#include "src/base/error.h"
#include "src/base/json/json_reader.h"
#include "src/files/hf/peft_config.h"
#include "src/files/mapped_file.h"
#include "src/files/write/atomic_file.h"
#include "src/runs/logs/train_log.h"
#include "src/runs/store/pin_record.h"

namespace ferry::runs {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "checkpoint-", kPartial = ".tmp", kReplaced = ".old",
                           kAside = ".left", kComplete = "COMPLETE";

constexpr std::string_view kDamaged_hint = "resume from an earlier checkpoint, and check the disk";

/** N of "checkpoint-N". */
std::optional<int64_t> step_of(const fs::path& directory) {
  const std::string name = directory.filename().string();
  if (!name.starts_with(kPrefix)) return std::nullopt;
  int64_t step = 0;
  const char *begin = name.data() + kPrefix.size(), *end = name.data() + name.size();
  auto [stop, code] = std::from_chars(begin, end, step);
  if (code != std::errc{} || stop != end || step < 0) return std::nullopt;
  return step;
}

bool is_complete(const fs::path& directory) {
  std::error_code error;
  return fs::is_regular_file(directory / kComplete, error);
}

}  // namespace

std::vector<Checkpoint> complete_checkpoints(const fs::path& run) {
  std::vector<Checkpoint> found;
  std::error_code error;
  for (fs::directory_iterator it(run, error), end; !error && it != end; it.increment(error))
    if (auto step = step_of(it->path()); step && is_complete(it->path()))
      found.push_back({*step, it->path()});
  std::ranges::sort(found, {}, &Checkpoint::step);
  return found;
}

std::optional<Checkpoint> find_checkpoint(const fs::path& run, int64_t step) {
  const auto all = complete_checkpoints(run);
  const auto found = std::ranges::find(all, step, &Checkpoint::step);
  return found == all.end() ? std::nullopt : std::optional(*found);
}

ResumePoint find_resume_point(const fs::path& given) {
  const fs::path path = given.has_filename() ? given : given.parent_path();
  std::error_code error;
  if (!fs::is_directory(path, error))
    throw Error(Fault::data, "runs.resume",
                fmt::format("there is no run directory '{}'", path.string()),
                "give a directory under runs/, or one of its checkpoint-N");
  const auto step = step_of(path);
  const fs::path run = !step ? path : path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (!fs::exists(run / "config.toml", error))
    throw Error(Fault::data, "runs.resume", fmt::format("'{}' has no config.toml", run.string()),
                "it is not the directory of a run");
  const auto all = complete_checkpoints(run);
  if (!step) return {run, all.empty() ? std::nullopt : std::optional(all.back())};
  if (is_complete(path)) return {run, Checkpoint{*step, path}};
  throw Error(Fault::data, "runs.resume", fmt::format("'{}' is not complete", path.string()),
              all.empty() ? "the run has no complete checkpoint; give the run itself to start again"
                          : fmt::format("the last complete one is '{}'", all.back().path.string()));
}

NewCheckpoint::NewCheckpoint(const fs::path& run, int64_t step)
    : partial_(run / fmt::format("{}{}{}", kPrefix, step, kPartial)),
      final_(run / fmt::format("{}{}", kPrefix, step)),
      step_(step) {
  std::error_code error;
  fs::remove_all(partial_, error);
  // A resumed run may come by a step at which a process was killed between rename and COMPLETE.
  if (!is_complete(final_)) fs::remove_all(final_, error);
  // Not its parents: a run whose directory was removed does not come back as a checkpoint alone.
  fs::create_directory(partial_, error);
  if (error)
    throw Error(Fault::machine, "checkpoint.save",
                fmt::format("'{}' could not be created: {}", partial_.string(), error.message()),
                "is the run's directory there, and may it be written to?");
}

NewCheckpoint::~NewCheckpoint() {
  if (!is_committed_) remove_what_can_be(partial_);  // the rest goes when the run goes on
}

Checkpoint NewCheckpoint::commit() {
  std::error_code error;
  fs::path replaced;
  sync_directory(partial_);
  // A run that went back to an earlier step and goes on otherwise comes by the same steps again:
  // what it wrote before is replaced. One of the two is there at any time.
  if (is_complete(final_)) {
    write_text_file(partial_ / kComplete, fmt::format("{}\n", step_));
    if (::renameat2(AT_FDCWD, partial_.c_str(), AT_FDCWD, final_.c_str(), RENAME_EXCHANGE) == 0) {
      is_committed_ = true;
      sync_directory(final_.parent_path());
      fs::remove_all(partial_, error);
      return {step_, final_};
    }
    // A file system that cannot swap: who dies in between leaves both, see remove_unfinished.
    replaced = partial_.string() + std::string(kReplaced);
    fs::remove_all(replaced, error);
    fs::rename(final_, replaced, error);
  }
  if (!error) fs::rename(partial_, final_, error);
  if (error) {
    std::error_code ignored;
    if (!replaced.empty()) fs::rename(replaced, final_, ignored);
    throw Error(Fault::machine, "checkpoint.save",
                fmt::format("'{}' cannot be put in place: {}", final_.string(), error.message()));
  }
  is_committed_ = true;
  sync_directory(final_.parent_path());
  write_text_file(final_ / kComplete, fmt::format("{}\n", step_));
  if (!replaced.empty()) fs::remove_all(replaced, error);
  return {step_, final_};
}

namespace {

uint32_t checksum_of(const fs::path& file) {
  const std::string text = read_text_file(file);
  return crc32c(std::as_bytes(std::span(text)));
}

/** Names of what lies beside the weights: config.json, the tokenizer's files. */
std::vector<std::string> small_files(const fs::path& checkpoint) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(checkpoint, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (fs::is_regular_file(it->path(), error) && name != kComplete && !is_temporary_file(name) &&
        it->path().extension() != ".safetensors")
      names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

StoredChecksums read_checksums(const fs::path& checkpoint) {
  const fs::path file = checkpoint / "state" / kChecksumsName,
                 run_state = checkpoint / "state" / kRunStateName;
  StoredChecksums checksums;
  std::map<std::string, uint32_t> of_files = {{kRunStateName, 0}};
  const auto all = JsonReader::parse(
      read_text_file(file), {file.string(), "checkpoint.read", std::string(kDamaged_hint)});
  for (const auto& [name, value] : all.fields())
    if (value.is_object())
      for (const auto& [tensor, checksum] : value.fields())
        checksums[name][tensor] = static_cast<uint32_t>(checksum.integer(0, UINT32_MAX));
    else
      of_files[name] = static_cast<uint32_t>(value.integer(0, UINT32_MAX));
  for (const auto& [name, checksum] : of_files) {
    const fs::path path = name == kRunStateName ? run_state : checkpoint / name;
    if (checksum_of(path) != checksum)
      throw Error(Fault::data, "checkpoint.read", fmt::format("'{}' is damaged", path.string()),
                  kDamaged_hint);
  }
  return checksums;
}

void write_checksums(const fs::path& checkpoint,
                     const StoredChecksums& checksums,
                     const std::string& run_state) {
  nlohmann::ordered_json all = checksums;
  for (const std::string& name : small_files(checkpoint))
    all[name] = checksum_of(checkpoint / name);
  if (has_pin_record(checkpoint)) all[kPinRecordName] = checksum_of(checkpoint / kPinRecordName);
  all[kRunStateName] = crc32c(std::as_bytes(std::span(run_state)));
  write_text_file(checkpoint / "state" / kRunStateName, run_state);
  write_json_file(checkpoint / "state" / kChecksumsName, all);
}

bool check_checkpoint(const fs::path& checkpoint) {
  try {
    for (const auto& [stem, checksums] : read_checksums(checkpoint))
      check_checksums(
          CheckpointReader::open(
              stem == "model" || stem == kAdapterStem ? checkpoint : checkpoint / "state", stem),
          checksums);
    if (const auto record = pin_record_of(checkpoint))
      PinnedStates(*record, find_pinned_store(checkpoint, record->store)).check();
  } catch (const Error&) {
    if (is_complete(checkpoint)) throw;
  }
  return is_complete(checkpoint);
}

std::string advice_on_damaged(const Checkpoint& damaged) {
  auto all =
      complete_checkpoints(damaged.path.has_parent_path() ? damaged.path.parent_path() : ".");
  std::erase_if(all, [&](const Checkpoint& other) { return other.step >= damaged.step; });
  for (auto it = all.rbegin(); it != all.rend(); ++it)
    try {
      if (check_checkpoint(it->path))
        return fmt::format("{}, before it, is intact; continue from there: {}",
                           it->path.filename().string(),
                           shell_line(std::array{std::string("ferry"), std::string("train"),
                                                 std::string("--resume"), it->path.string()}));
    } catch (const Error&) {  // damaged, too
    }
  return all.empty() ? "the run has no checkpoint before it"
                     : "no checkpoint before it is intact, either";
}

void remove_unfinished(const fs::path& run) {
  std::error_code error;
  for (fs::directory_iterator it(run, error), end; !error && it != end; it.increment(error)) {
    const fs::path path = it->path();
    const bool is_replaced = path.extension() == kReplaced;
    const fs::path name = is_replaced ? path.stem() : path.filename();
    const bool is_partial = name.extension() == kPartial;
    if (!step_of(is_partial ? name.stem() : name) || (is_replaced && !is_partial)) continue;
    std::error_code ignored;
    // Complete, and killed while it took the place of an older one.
    const fs::path final = run / name.stem();
    if (is_partial && !is_replaced && is_complete(path) && !fs::exists(final, ignored))
      fs::rename(path, final, ignored);
    else if (is_partial || !is_complete(path))
      fs::remove_all(path, ignored);
  }
}

std::vector<fs::path> checkpoint_directories(const fs::path& run) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(run, error), end; !error && it != end; it.increment(error))
    if (it->path().filename().string().starts_with(kPrefix) && path_is_directory(it->path()))
      found.push_back(it->path());
  std::ranges::sort(found);
  return found;
}

std::vector<Checkpoint> checkpoints_put_aside(const fs::path& run) {
  std::vector<Checkpoint> found;
  for (const fs::path& path : checkpoint_directories(run))
    if (const auto step = step_of(path.stem()); step && path.extension() == kAside)
      found.push_back({*step, path});
  std::ranges::sort(found, {}, &Checkpoint::step);
  return found;
}

void remove_checkpoint(const fs::path& checkpoint) {
  std::error_code error;
  if (fs::is_symlink(fs::symlink_status(checkpoint, error)))
    return;                                   // what it leads to is not ours
  fs::remove(checkpoint / kComplete, error);  // first: from here on nobody takes it for whole
  try {
    sync_directory(checkpoint);  // not after a power cut either, which may keep this name alone
  } catch (const Error&) {
    return;  // the run's next process removes it
  }
  fs::remove_all(checkpoint, error);
}

std::vector<std::string> put_aside_later(const fs::path& run, int64_t step) {
  std::vector<std::string> names;
  for (const Checkpoint& checkpoint : complete_checkpoints(run)) {
    if (checkpoint.step <= step) continue;
    const fs::path aside = checkpoint.path.string() + std::string(kAside);
    std::error_code error;
    fs::remove_all(aside, error);
    fs::rename(checkpoint.path, aside, error);
    if (error)
      throw Error(
          Fault::machine, "checkpoint.resume",
          fmt::format("'{}' cannot be renamed: {}", checkpoint.path.string(), error.message()),
          "move it away: the run would go on from it");
    names.push_back(aside.filename().string());
  }
  if (!names.empty()) sync_directory(run);
  return names;
}

void remove_oldest(const fs::path& run, int64_t keep, const std::vector<int64_t>& wanted) {
  auto all = complete_checkpoints(run);
  for (int64_t step : wanted) {
    const auto found = std::ranges::find(all, step, &Checkpoint::step);
    if (found == all.end()) continue;
    if (std::next(found) != all.end()) {  // the newest stays in any case
      all.erase(found);
      keep = std::max<int64_t>(1, keep - 1);
    }
    break;
  }
  for (int64_t i = 0; i + keep < static_cast<int64_t>(all.size()); ++i)
    remove_checkpoint(all[static_cast<size_t>(i)].path);
}

}  // namespace ferry::runs
