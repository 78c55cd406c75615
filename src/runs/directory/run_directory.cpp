#include "src/runs/directory/run_directory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "src/base/error.h"
#include "src/base/json/json_reader.h"
#include "src/base/print.h"
#include "src/base/version.h"
#include "src/files/mapped_file.h"
#include "src/files/write/atomic_file.h"
#include "src/files/write/disk_full.h"
#include "src/files/write/owned_file.h"
#include "src/runs/directory/checkpoints.h"
#include "src/runs/logs/wall_time.h"

namespace ferry::runs {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kFormat_version = 1;

constexpr std::array<std::string_view, 11> kPhaseNames = {
    "preparing", "training", "evaluating", "saving",    "finished", "stopped",
    "failed",    "lost",     "paused",     "unstarted", "sampling"};

/** Keys that need not be there; one that is has to have the type. */
void check_types(const JsonReader& object,
                 std::initializer_list<const char*> texts,
                 std::initializer_list<const char*> counts) {
  if (!object.is_object()) object.refuse("an object");
  for (const char* key : texts)
    if (object.value().contains(key)) object.at(key).text();
  for (const char* key : counts)
    if (object.value().contains(key)) object.at(key).integer(0, INT64_MAX);
}

/** Checks that what others take out of run.json has the type that they take; the rest is as it may
 * be. */
void check_record(const JsonReader& record) {
  check_types(record,
              {"phase", "id", "host", "created", "started", "changed", "ferry_version",
               "exit_reason", "warning", "model", "dataset"},
              {"pid", "n_steps", "format_version", "host_budget_bytes"});
  if (const auto parent = record.find("parent")) check_types(*parent, {"run"}, {});
  const auto changes = record.find("changes");
  for (size_t i = 0; changes && i < changes->size(); ++i)
    check_types(changes->at(i), {"key", "value", "instead_of"}, {"step"});
  const auto plan = record.find("plan");
  if (!plan) return;
  check_types(*plan, {"why"}, {});
  const auto rows = plan->find("rows");
  for (size_t i = 0; rows && i < rows->size(); ++i)
    check_types(rows->at(i), {"tag", "place"}, {"bytes"});
}

nlohmann::ordered_json parse_run(const fs::path& run) {
  const fs::path file = run / "run.json";
  const auto record = JsonReader::parse(
      read_text_file(file),
      {file.string(), "runs.open", "the other files of the run are not touched by that"});
  const int64_t version = record.integer("format_version", 0, INT64_MAX, kFormat_version);
  if (version > kFormat_version)
    throw Error(
        Fault::data, "runs.open",
        fmt::format("'{}' has format_version {} (written by Ferry {}); this is Ferry {}, which "
                    "reads up to {}",
                    file.string(), version, record.text("ferry_version", "?"), ferry_version(),
                    kFormat_version),
        "use the Ferry that wrote it, or a newer one");
  check_record(record);
  return record.value();
}

bool has_ended(const nlohmann::ordered_json& record) {
  const std::string phase = record.value("phase", "");
  return phase == name_of(Phase::finished) || phase == name_of(Phase::stopped) ||
         phase == name_of(Phase::failed);
}

Error in_use(const fs::path& run) {
  std::error_code error;
  const int64_t pid =
      fs::exists(run / "run.json", error) ? parse_run(run).value("pid", int64_t{0}) : 0;
  return Error(Fault::usage, "runs.lock",
               fmt::format("another process{} is training in '{}'",
                           pid > 0 ? fmt::format(" ({})", pid) : "", run.string()),
               "wait for it, or choose another output_dir");
}

bool is_claimed_by_us(const fs::path& run) {
  const nlohmann::ordered_json record = parse_run(run);
  const auto heartbeat = record.find(kHeartbeat);
  return heartbeat != record.end() &&
         heartbeat->value("process", nlohmann::ordered_json()) == this_process();
}

}  // namespace

std::string_view name_of(Phase phase) {
  return kPhaseNames.at(static_cast<size_t>(phase));
}

std::optional<Phase> phase_named(std::string_view name) {
  const auto found = std::ranges::find(kPhaseNames, name);
  if (found == kPhaseNames.end()) return std::nullopt;
  return static_cast<Phase>(found - kPhaseNames.begin());
}

namespace {

/** A new one is its owner's alone: texts of the data and samples of predictions are in it. */
const fs::path& make_run_directory(const fs::path& path) {
  std::error_code error;
  const bool is_new = !fs::exists(path, error);
  make_directories(path);
  if (is_new) fs::permissions(path, fs::perms::owner_all, error);
  return path;
}

}  // namespace

RunDirectory::RunDirectory(const fs::path& path) : place_(make_run_directory(path)) {
  std::error_code error;
  const bool has_record = fs::exists(path / "run.json", error);
  const RunPlace::Lock lock = place_.lock();
  const bool has_locks = lock != RunPlace::Lock::unsupported;
  if (lock == RunPlace::Lock::of_another ||
      (!has_locks && has_record && !has_ended(parse_run(path)) && is_trainer_alive(path)))
    throw in_use(path);
  refuse_links_in(path);
  if (!has_locks) claim();
  remove_temporary_files(path);
  remove_temporary_files(path / "state");
  remove_unfinished(path);
  if (has_record) record_ = JsonValue(parse_run(path));
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  (*record_)["format_version"] = kFormat_version;
  (*record_)["ferry_version"] = ferry_version();
  (*record_)["id"] = fs::absolute(path, error).filename().string();
  (*record_)["phase"] = name_of(Phase::preparing);
  (*record_)["pid"] = ::getpid();
  (*record_)["host"] = host;
  if (!record_->contains("created")) (*record_)["created"] = now_in_words();
  (*record_)["started"] = now_in_words();
  record_->erase("exit_reason");
  record_->erase("warning");
  record_->erase("waits_for");
  record_->erase(kHeartbeat);
  if (!has_locks) (*record_)[kHeartbeat] = {{"process", this_process()}, {"beats", 0}};
  record_->erase("control_socket");  // of the process before
  record_->erase("actual");
  if (!has_locks) heartbeat_.emplace([this] { beat(); });
}

/** Two that begin at the same moment both write; the one whose name stands there then has it. */
void RunDirectory::claim() {
  constexpr auto kBoth_written = std::chrono::seconds(2);
  std::error_code error;
  nlohmann::ordered_json record = nlohmann::ordered_json::object();
  if (fs::exists(path() / "run.json", error)) record = parse_run(path());
  record["pid"] = ::getpid();
  record["phase"] = name_of(Phase::preparing);
  record[kHeartbeat] = {{"process", this_process()}, {"beats", 0}};
  write_json_file(path() / "run.json", record);
  std::this_thread::sleep_for(kBoth_written);
  if (!is_claimed_by_us(path())) throw in_use(path());
}

void RunDirectory::beat() {
  const std::lock_guard lock(mutex_);
  try {
    if (!is_claimed_by_us(path())) is_taken_ = true;
    if (is_taken_) return;
    (*record_)[kHeartbeat]["beats"] = (*record_)[kHeartbeat].value("beats", int64_t{0}) + 1;
    write();
  } catch (const std::exception&) {  // the run's next change says what it is
  }
}

void RunDirectory::set_phase(Phase phase) {
  set_phase(phase, nlohmann::ordered_json::object());
}

void RunDirectory::set_phase(Phase phase, const nlohmann::ordered_json& more) {
  const std::lock_guard lock(mutex_);
  (*record_)["phase"] = name_of(phase);
  record_->update(more);
  (*record_)["changed"] = now_in_words();
  write();
}

void RunDirectory::set(const std::string& key, nlohmann::ordered_json value) {
  const std::lock_guard lock(mutex_);
  if (value.is_null())
    record_->erase(key);
  else
    (*record_)[key] = std::move(value);
  write();
}

void RunDirectory::write() {
  if (is_taken_) throw in_use(path());
  check();
  try {
    write_json_file(path() / "run.json", *record_);
    has_written_ = true;
    is_failing_ = false;
  } catch (const Error& error) {
    check();                   // it may have gone since
    if (!has_written_) throw;  // a directory that cannot be written to shows before the first step
    // A full disk ends no training: the next change is written with all before it.
    if (!std::exchange(is_failing_, true))
      log_line(fmt::format("{}; training goes on", error.what()));
  }
}

void RunDirectory::settle() {
  const std::lock_guard lock(mutex_);
  if (!is_failing_) return;
  try {
    write_json_file(path() / "run.json", *record_);
    is_failing_ = false;
  } catch (const DiskFull&) {
    throw;
  } catch (const Error&) {  // said by write(); no waiting mends it
  }
}

nlohmann::ordered_json RunDirectory::get(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  return record_->value(key, nlohmann::ordered_json());
}

nlohmann::ordered_json parent_of(const fs::path& model) {
  std::error_code error;
  const fs::path directory = fs::weakly_canonical(model, error);
  const std::string name = directory.filename().string();
  const fs::path run = directory.parent_path();
  if (error || !(name == "final" || name.starts_with("checkpoint-")) ||
      !fs::exists(run / "run.json", error))
    return nullptr;
  return {{"run", run.string()}, {"id", run.filename().string()}, {"model", name}};
}

bool has_trainer(const fs::path& run) {
  const std::optional<bool> is_locked = RunPlace(run).is_locked();
  return is_locked ? *is_locked : is_trainer_alive(run);
}

nlohmann::ordered_json read_record(const fs::path& run) {
  return parse_run(run);
}

std::string concluded_phase(const nlohmann::ordered_json& record, bool has_trainer) {
  const std::string phase = record.value("phase", "");
  if (has_ended(record) || has_trainer) return phase;
  // The time and memory that a run is expected to take are known just before its first step.
  const bool is_unstarted = phase == name_of(Phase::preparing) && !record.contains("promised");
  return std::string(name_of(is_unstarted ? Phase::unstarted : Phase::lost));
}

nlohmann::ordered_json read_run(const fs::path& run) {
  nlohmann::ordered_json record = parse_run(run);
  if (has_ended(record)) return record;
  const std::string phase = concluded_phase(record, has_trainer(run));
  if (phase != record.value("phase", "")) record["phase"] = phase;
  return record;
}

std::string report_advice(const fs::path& run) {
  return fmt::format("`ferry runs report '{}'` makes a file to send along when you ask for help",
                     run.string());
}

}  // namespace ferry::runs
