#pragma once
// Watches one run by its directory, whoever started it: what it does, whether its process lives,
// what can be done with it. A look takes some microseconds and never waits, so that an app looks at
// hundreds of runs every second.

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "src/base/json/json_value.h"
#include "src/files/file_stamp.h"
#include "src/service/runs/run_actions.h"

namespace ferry::service {

/** For one thread. */
class RunWatch {
 public:
  using Clock = std::chrono::steady_clock;

  explicit RunWatch(std::filesystem::path run) : run_(std::move(run)) {}

  /** Looks again. Never throws: what is wrong is in facts and trouble(). */
  const RunFacts& look(Clock::time_point now = Clock::now());

  const RunFacts& facts() const { return facts_; }
  /** run.json as it was read last; null where it could not be read. */
  const nlohmann::ordered_json& record() const { return *record_; }
  /** Why run.json cannot be read; empty: it can. */
  const std::string& trouble() const { return trouble_; }
  const std::filesystem::path& run() const { return run_; }

  /** The run was asked to stop: a minute later, if it does not save, force_quit is allowed. */
  void note_stop(Clock::time_point now = Clock::now()) { stop_asked_ = now; }

 private:
  void read_record(Clock::time_point now);
  Trainer find_trainer(Clock::time_point now);
  Trainer by_heartbeat(Clock::time_point now) const;
  bool is_overdue(Clock::time_point now);

  std::filesystem::path run_;
  RunFacts facts_;
  JsonValue record_;
  std::string trouble_;
  std::optional<FileStamp> record_stamp_, directory_stamp_;
  std::optional<Clock::time_point> first_look_, last_beat_, stop_asked_;
};

}  // namespace ferry::service
