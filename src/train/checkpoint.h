#pragma once
// A run's checkpoints: everything that goes from step to step, as a Hugging Face directory that
// transformers loads plus state/. Layout (format_version 1):
//
//   checkpoint-N/  model.safetensors (fp32: the master weights), config.json, tokenizer files,
//                  trainer_state.json, COMPLETE
//   state/         adam_m.safetensors, adam_v.safetensors (fp32, the weights' names),
//   run_state.json,
//                  checksums.json (CRC-32C of every tensor)

#include <filesystem>

#include "src/runs/checkpoints.h"
#include "src/train/job.h"

namespace ferry {

/** Writes run/checkpoint-N, N = session.n_steps(), complete or not at all. */
runs::Checkpoint save_checkpoint(Session& session,
                                 const Job& job,
                                 const std::filesystem::path& run);

/** Session and segments as they were when the checkpoint was made. Throws Error(data) where a file
 * is missing or damaged, Error(does_not_fit) where the run's identity is another; nothing of the
 * session is worth keeping then. */
void load_checkpoint(const runs::Checkpoint& checkpoint, const Job& job, Session& session);

}  // namespace ferry
