#pragma once
// Finds the facts of this machine: for `ferry doctor`, the report of a run and the app. Looking
// takes some 30 ms; measuring is the trainer's work, takes up to 20 s and is kept as the machine's
// profile.

#include <nlohmann/json_fwd.hpp>
#include <stop_token>
#include <string>
#include <vector>

#include "src/service/machine/diagnosis.h"
#include "src/service/machine/measured.h"

namespace ferry::service {

/** Looks at the machine and at Ferry's own parts, and measures nothing: no profile is in it. */
Facts read_facts();

/** Looks at these drives in place of those of FERRY_NVME_PATH. */
void look_at_drives(Facts& facts, std::vector<std::filesystem::path> directories);

/** Adds the profile that was kept, if any; a damaged one is a fault. */
void load_profile(Facts& facts);

/** Has the trainer measure for about so many seconds ("" for its own choice), measures the drives
 * of nvme_path, and keeps the profile. What goes wrong is in the facts. Where `stop` asks for it,
 * the trainer is ended and nothing is kept. */
Measured measure_and_store(Facts& facts,
                           const std::string& seconds,
                           const std::stop_token& stop = {});

/** True if none of them, the gravest first, prevents training. */
bool is_usable(const std::vector<Finding>& findings);

/** "note", "warning", "error". */
std::string_view name_of(Severity severity);

/** The object that `ferry doctor --json` prints, apart from the models. */
nlohmann::ordered_json to_json(const Facts& facts,
                               const std::vector<Finding>& findings,
                               const Measured& measured);

/** Leaves out which directories and drives the figures are of: those are the user's. */
void hide_places(MachineProfile& profile);

/** The same with the profile that was kept, and without paths of the user's. */
nlohmann::ordered_json machine_report();

}  // namespace ferry::service
