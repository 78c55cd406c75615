#pragma once
// The names of the files in which a run keeps what its model writes: RUN/samples/step-000100.jsonl.
// The trainer writes them, the app lists them.

#include <cstdint>
#include <optional>
#include <string>

namespace ferry::runs {

/** "step-000100.jsonl" */
std::string sample_file_of(int64_t step);
/** The step of a file of that name; nothing where it is no file of samples. */
std::optional<int64_t> step_of_samples(const std::string& file_name);

}  // namespace ferry::runs
