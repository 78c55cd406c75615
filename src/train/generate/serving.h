#pragma once
// `ferry serve`: the model behind the routes of src/serve.

#include "src/train/generate/generation.h"

namespace ferry {

/** Answers requests until Ctrl-C or SIGTERM, for a job of prepare_chat(). The exit code. Throws
 * Error where the port is taken. */
int serve_model(const Job& job, Session& session);

}  // namespace ferry
