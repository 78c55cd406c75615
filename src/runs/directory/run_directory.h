#pragma once
// The directory of one run: config.toml, run.json, metrics.jsonl, checkpoint-N/, final/. The
// trainer holds it locked while it lives; everybody else reads.

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/json/json_value.h"
#include "src/runs/directory/run_place.h"
#include "src/runs/heartbeat.h"

namespace ferry::runs {

/** The phase of a run. A reader concludes of a process that is gone that the run is `lost`, or
 * `unstarted` where it had not come to its first step. */
enum class Phase : uint8_t {
  preparing,
  training,
  evaluating,
  saving,
  finished,
  stopped,
  failed,
  lost,
  paused,
  unstarted,
  sampling
};
std::string_view name_of(Phase phase);
/** nullopt: no phase that this Ferry knows. */
std::optional<Phase> phase_named(std::string_view name);

/** Key of run.json: true where the run makes samples when it is asked to. */
inline constexpr const char* kSamplesOnRequest = "samples_on_request";

class RunDirectory {
 public:
  /** Makes the directory where need be (0700) and locks it. Throws Error(machine) where that cannot
   * be, Error(usage) where another process trains in it (with its pid). */
  explicit RunDirectory(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return place_.path(); }
  /** Throws Error(machine) where the directory was moved or removed. Whoever tells that a file
   * could not be written asks this first: it says why. */
  void check() const { place_.check(); }
  /** run.json, rewritten whole; throws Error(machine) where the directory was moved or removed.
   * What a full disk does not take is said once and written with the next change. Keys of `more`
   * are kept from now on. */
  void set_phase(Phase phase, const nlohmann::ordered_json& more);
  void set_phase(Phase phase);
  /** One more key of run.json, kept from now on and by who resumes; null: the key goes. get() is
   * null for none. */
  void set(const std::string& key, nlohmann::ordered_json value);
  nlohmann::ordered_json get(const std::string& key) const;
  /** Writes run.json once more where a full disk did not take the last change; throws DiskFull
   * where it still does not. */
  void settle();

 private:
  void claim();
  void beat();
  void write();

  RunPlace place_;
  mutable std::mutex mutex_;  // the heartbeat writes, too
  JsonValue record_;
  bool has_written_ = false, is_failing_ = false, is_taken_ = false;
  std::optional<Heartbeat> heartbeat_;  // last: it ends first
};

/** The run of which this model directory is the final one or a checkpoint: `run`, its `id`, `model`
 * (the directory's name). null where it is of none. */
nlohmann::ordered_json parent_of(const std::filesystem::path& model);

/** True if a process trains in it now. Takes a while where the file system has no locks and the run
 * is of another machine. */
bool has_trainer(const std::filesystem::path& run);

/** run.json of a run as it stands there. Throws Error(data). */
nlohmann::ordered_json read_record(const std::filesystem::path& run);
/** The name of its phase, `lost` or `unstarted` where its process is gone. */
std::string concluded_phase(const nlohmann::ordered_json& record, bool has_trainer);

/** run.json of a run, its phase `lost` or `unstarted` where its process is gone. Throws
 * Error(data). */
nlohmann::ordered_json read_run(const std::filesystem::path& run);

/** The advice that a failed run prints last, at exit codes from this one on: how to send it to
 * somebody. */
inline constexpr int kFirstReportedExit = 3;
std::string report_advice(const std::filesystem::path& run);

}  // namespace ferry::runs
