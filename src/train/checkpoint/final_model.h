#pragma once
// The trained model as a Hugging Face directory: weights, config with the labels, the tokenizer's
// files as they were.

#include <filesystem>
#include <memory>

#include "src/runs/directory/run_directory.h"
#include "src/train/prepare/job.h"

namespace ferry {

/** The directory of a new run: output_dir, or runs/<time>_<model>_<data>. Throws Error(usage) where
 * it holds anything. */
std::filesystem::path choose_output_directory(const config::Config& config);

/** Makes it and locks it, before training, so that what cannot be written shows then. Throws
 * Error(machine) where it cannot be made, Error(does_not_fit) where the disk has no room for what
 * the run will write, Error(usage) where another process trains in it. */
std::unique_ptr<runs::RunDirectory> make_output_directory(const Job& job,
                                                          const std::filesystem::path& run);

/** The disk has room for what the run will write by its plan. Throws Error(does_not_fit). */
void check_disk_of(const Job& job, const std::filesystem::path& run);

/** The directory of a new run, taken before its plans are timed, so that no other run takes the
 * same name meanwhile. Where the run does not begin, nothing of it is left. */
class TakenDirectory {
 public:
  /** Throws as make_output_directory(). */
  TakenDirectory(const Job& job, const std::filesystem::path& run);
  ~TakenDirectory();
  TakenDirectory(const TakenDirectory&) = delete;
  TakenDirectory& operator=(const TakenDirectory&) = delete;

  /** The run begins. */
  std::unique_ptr<runs::RunDirectory> release();

 private:
  std::filesystem::path path_;
  bool is_new_ = false;
  std::unique_ptr<runs::RunDirectory> directory_;
};

/** config.toml: every setting as resolved, so that the run can go on or be repeated. */
void write_settings(const config::Config& config, const std::filesystem::path& run);

/** config.json as config_of_result(), the tokenizer's files and generation_config.json. */
void write_model_files(const config::Config& config,
                       const Model& model,
                       const Task& task,
                       const std::filesystem::path& directory,
                       DType dtype = DType::f32);

/** Writes `run`/final with weights of that type, complete or not at all. */
std::filesystem::path save_final(Session& session,
                                 const config::Config& config,
                                 const Model& model,
                                 const Task& task,
                                 const std::filesystem::path& run,
                                 DType dtype);

}  // namespace ferry
