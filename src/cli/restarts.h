#pragma once
// `ferry train --max-restarts N`: a process that watches the trainer, and starts it anew from the
// last checkpoint where it, or another rank, dies.

#include <string_view>

#include "src/cli/commands.h"

namespace ferry::cli {

/** Runs `ferry-trainer VERB arguments...`, at most n_max times more than once; the exit code. The
 * watcher passes on signals that are sent to it alone, and starts nothing anew after them. Where
 * the watcher is killed, so is the trainer. Throws Error(machine) where none can be started. */
int train_with_restarts(std::string_view verb, Arguments arguments, int n_max);

}  // namespace ferry::cli
