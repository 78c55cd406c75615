#pragma once
// Ranks that are threads of one process: messages are copied from memory to memory.

#include <chrono>
#include <memory>
#include <vector>

#include "src/comm/comm.h"

namespace ferry {

/** One object for each thread, by rank. An object that is destroyed makes those throw that wait for
 * its rank. */
std::vector<std::unique_ptr<Comm>> make_thread_comms(int world, std::chrono::milliseconds deadline);

}  // namespace ferry
