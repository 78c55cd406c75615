#include "src/train/checkpoint/final_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string_view>

#include "src/base/error.h"
#include "src/base/json/json_reader.h"
#include "src/config/launch.h"
#include "src/config/named_places.h"
#include "src/engine/state/weights.h"
#include "src/files/plain_file.h"
#include "src/files/safetensors/safetensors_writer.h"
#include "src/files/write/atomic_file.h"
#include "src/inputs/model_files.h"
#include "src/request/adapters.h"
#include "src/request/disk.h"
#include "src/runs/directory/checkpoints.h"
#include "src/runs/directory/output_directory.h"
#include "src/runs/directory/settings_file.h"
#include "src/text/spec/tokenizer_spec.h"
#include "src/train/control/interrupt.h"

namespace ferry {
namespace {

namespace fs = std::filesystem;

std::string stem_of(const fs::path& path) {
  fs::path name = path.has_filename() ? path.filename() : path.parent_path().filename();
  std::string stem = name.stem().string();
  // A data set of a hub is called by its name alone, not by its commit.
  if (const size_t at = stem.find('@'); at != stem.npos && path.parent_path() != path.root_path())
    stem.erase(at, stem.find(':', at) - at);
  // A pattern of files names no directory: it would be one for every command that takes it.
  std::ranges::replace_if(
      stem, [](char c) { return std::string_view("*?[]:,\\").find(c) != std::string_view::npos; },
      '_');
  return stem;
}

/** The blank that Ferry puts before each word is one that transformers has to be told of. */
void set_prefix_space(const fs::path& file) {
  nlohmann::ordered_json settings = nlohmann::ordered_json::object();
  std::error_code error;
  if (fs::exists(file, error))
    settings = JsonReader::parse(read_text_file(file), {file.string(), "model.write", ""}).value();
  settings["add_prefix_space"] = true;
  write_json_file(file, settings);
}

}  // namespace

fs::path choose_output_directory(const config::Config& config) {
  fs::path run;
  if (auto given = config.maybe_text("output_dir")) {
    run = *given;
  } else {
    const std::time_t now = std::time(nullptr);
    char stamp[32];
    std::strftime(stamp, sizeof stamp, "%Y-%m-%d_%H%M%S", std::localtime(&now));
    const std::string name = fmt::format("{}_{}_{}", stamp, stem_of(name_of_model(config)),
                                         stem_of(config.text("dataset")));
    run = fs::path("runs") / name;
    // The name may be taken in the same second, or after the clock was set back.
    std::error_code error;
    for (int n = 2; fs::exists(run, error); ++n)
      run = fs::path("runs") / fmt::format("{}-{}", name, n);
  }
  runs::check_unused(run);
  return run;
}

void check_disk_of(const Job& job, const fs::path& run) {
  const auto n_there = static_cast<int64_t>(runs::complete_checkpoints(run).size());
  check_disk(disk_needed(job.model.table, job.config, n_there, &job.plan.shape), run);
}

std::unique_ptr<runs::RunDirectory> make_output_directory(const Job& job, const fs::path& run) {
  std::error_code error;
  if (!fs::exists(run, error)) check_disk_of(job, run);  // a refused run leaves nothing behind
  // Opening it removes what a killed process left half-written.
  auto directory = std::make_unique<runs::RunDirectory>(run);
  check_disk_of(job, run);
  return directory;
}

TakenDirectory::TakenDirectory(const Job& job, const fs::path& run) : path_(run) {
  std::error_code error;
  is_new_ = !fs::exists(run, error);
  check_can_make_files_in(run);
  directory_ = make_output_directory(job, run);
  if (is_new_) leave_on_interrupts(run);
}

TakenDirectory::~TakenDirectory() {
  leave_on_interrupts({});
  if (!directory_ || !is_new_) return;
  directory_.reset();  // its heartbeat writes no more
  std::error_code error;
  fs::remove(path_ / "run.json", error);
  fs::remove(path_, error);  // an empty one
}

std::unique_ptr<runs::RunDirectory> TakenDirectory::release() {
  leave_on_interrupts({});
  return std::move(directory_);
}

void write_settings(const config::Config& config, const fs::path& run) {
  config::Config settings = config;
  settings.choose("resume_from_checkpoint", "", "a new start");
  settings.choose("new_identity", "false", "a new start");
  config::forget_launch(settings);
  config::remember_places(config);  // first: who resumes the run looks for them
  runs::write_settings_file(run, config::format_lines() + settings.to_toml());
}

void write_model_files(const config::Config& config,
                       const Model& model,
                       const Task& task,
                       const fs::path& directory,
                       DType dtype) {
  write_config(directory, config_of_result(model, task, dtype));
  if (model.table.has_deltas)
    write_json_file(directory / kPeftConfigName, to_json(peft_config_of(config, model.table)));
  model.directory.copy_files(directory);
  if (const std::string chat = task.chat_template(); !chat.empty())
    write_text_file(directory / "chat_template.jinja", chat);
  if (task.reads_words() && text::has_configured_prefix_space(directory))
    set_prefix_space(directory / "tokenizer_config.json");
}

fs::path save_final(Session& session,
                    const config::Config& config,
                    const Model& model,
                    const Task& task,
                    const fs::path& run,
                    DType dtype) {
  // A killed process may have left parts of it. They are the run's own, since nothing else may
  // stand in a run.
  std::error_code error;
  fs::remove_all(run / "final.partial", error);
  AtomicDirectory directory(run / "final");
  save_weights(model.table, session.segments(), directory.path(), dtype, kShard_bytes_max);
  write_model_files(config, model, task, directory.path(), dtype);
  directory.commit();
  return run / "final";
}

}  // namespace ferry
