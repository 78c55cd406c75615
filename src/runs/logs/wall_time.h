#pragma once
// The time of day as run.json and train.log write it. For reading only: durations are measured with
// a clock that nobody can set back.

#include <string>

namespace ferry::runs {

/** "2026-11-21T10:15:00Z" */
std::string now_in_words();

}  // namespace ferry::runs
