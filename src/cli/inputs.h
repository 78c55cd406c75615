#pragma once
// Brings models and data of a hub before a verb reads them: progress on the terminal, Ctrl-C leaves
// what has come for the next time.

#include <functional>

#include "src/config/config.h"
#include "src/files/hub/hub_client.h"
#include "src/service/hub/hub_inputs.h"

namespace ferry::cli {

/** As service::provide_inputs(). Ends the process by the signal where the user has enough. */
void provide_inputs(const config::Config& config, service::ModelNeed need, bool must_fit = false);

/** Runs `work` with somebody who listens to Ctrl-C, and shows how far it is. */
void with_progress(const std::function<void(const hub::Talk&)>& work);

}  // namespace ferry::cli
