#pragma once
// `ferry-trainer bench nccl`: starts a process for each rank, or is one that was started, measures
// what they send each other and prints one JSON object.

#include <string>
#include <vector>

namespace ferry::measure {

/** `words`: what comes behind `nccl`. --gpus as a run has it; --device auto | cuda | cpu, where
 * auto takes the GPUs if there are two at least; --bytes N, the most of an operation; --seconds S;
 * --json is allowed and says nothing new. Throws Error. */
int run_exchange_verb(const std::vector<std::string>& words);

}  // namespace ferry::measure
