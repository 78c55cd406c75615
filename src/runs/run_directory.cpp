#include "src/runs/run_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>

#include "src/base/error.h"
#include "src/files/atomic_file.h"
#include "src/files/mapped_file.h"

namespace ferry::runs {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 9> kPhaseNames = {"preparing", "training", "evaluating",
                                                         "saving",    "finished", "stopped",
                                                         "failed",    "lost",     "paused"};

/** "2026-11-21T10:15:00Z" */
std::string now_in_words() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

/** Of a directory: a file of its own would be one more thing to leave behind, and run.json is
 * replaced at every change. */
UniqueFd open_directory(const fs::path& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

nlohmann::ordered_json parse_run(const fs::path& run) {
  auto record = nlohmann::ordered_json::parse(read_text_file(run / "run.json"), nullptr, false);
  if (!record.is_object())
    throw Error(Fault::data, "runs.open",
                fmt::format("'{}' is not a JSON object", (run / "run.json").string()),
                "the other files of the run are not touched by that");
  return record;
}

}  // namespace

std::string_view name_of(Phase phase) {
  return kPhaseNames.at(static_cast<size_t>(phase));
}

RunDirectory::RunDirectory(const fs::path& path) : path_(path) {
  make_directories(path);
  lock_ = open_directory(path);
  std::error_code error;
  const bool has_record = fs::exists(path / "run.json", error);
  if (!lock_ || ::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    const int64_t pid = has_record ? parse_run(path).value("pid", int64_t{0}) : 0;
    throw Error(Fault::usage, "runs.lock",
                fmt::format("another process{} is training in '{}'",
                            pid > 0 ? fmt::format(" ({})", pid) : "", path.string()),
                "wait for it, or choose another output_dir");
  }
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error))
    if (is_temporary_file(it->path().filename().string())) fs::remove(it->path(), error);
  if (has_record) record_ = parse_run(path);
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  record_["id"] = fs::absolute(path, error).filename().string();
  record_["phase"] = name_of(Phase::preparing);
  record_["pid"] = ::getpid();
  record_["host"] = host;
  if (!record_.contains("created")) record_["created"] = now_in_words();
  record_["started"] = now_in_words();
  record_.erase("exit_reason");
}

void RunDirectory::set_phase(Phase phase, const nlohmann::ordered_json& more) {
  record_["phase"] = name_of(phase);
  record_.update(more);
  record_["changed"] = now_in_words();
  write_json_file(path_ / "run.json", record_);
}

void RunDirectory::set(const std::string& key, nlohmann::ordered_json value) {
  record_[key] = std::move(value);
  write_json_file(path_ / "run.json", record_);
}

nlohmann::ordered_json RunDirectory::get(const std::string& key) const {
  return record_.value(key, nlohmann::ordered_json());
}

nlohmann::ordered_json read_run(const fs::path& run) {
  nlohmann::ordered_json record = parse_run(run);
  const std::string phase = record.value("phase", "");
  const bool has_ended = phase == name_of(Phase::finished) || phase == name_of(Phase::stopped) ||
                         phase == name_of(Phase::failed);
  const UniqueFd lock = open_directory(run);
  // Whoever can lock it has no trainer beside him.
  if (!has_ended && lock && ::flock(lock.get(), LOCK_SH | LOCK_NB) == 0)
    record["phase"] = name_of(Phase::lost);
  return record;
}

}  // namespace ferry::runs
