#pragma once
// `ferry serve`: the model behind the routes of src/serve.

#include "src/train/generate/generation.h"

namespace ferry {

/** Answers requests until Ctrl-C or SIGTERM, by the model of a chat's job. `wants_json`: standard
 * output gets a line with the address and the port once requests may come. The exit code. Throws
 * Error where the port is taken. */
int serve_model(const ChatJob& chat, Session& session, bool wants_json);

}  // namespace ferry
