#pragma once
// The report to send along when asking for help with a run: one zip of settings, log, metrics, this
// machine, plan against actual; no tokens, no texts of the data, paths shortened.

#include <filesystem>

namespace ferry::service {

/** Writes the zip and gives its path: `output`, or where that is empty ferry-report-<run>.zip here
 * (-2, -3 where there is one). Files of the run that are missing or damaged are no reason to fail.
 * Throws Error(usage) where `output` exists, Error(machine) where it cannot be written. */
std::filesystem::path write_run_report(const std::filesystem::path& run,
                                       const std::filesystem::path& output);

}  // namespace ferry::service
