#pragma once
// config.toml of a run, with its checksum in its last line: a comment to all who read settings, so
// that the two can never be of different writes.

#include <filesystem>
#include <string>

namespace ferry::runs {

/** Whole or not at all. Throws Error(machine). */
void write_settings_file(const std::filesystem::path& run, const std::string& settings);

enum class SettingsState { as_written, changed, unchecked };
/** The state of run/config.toml; `unchecked` where an older Ferry wrote it without a checksum.
 * Throws Error(data) where it cannot be read. */
SettingsState check_settings_file(const std::filesystem::path& run);

}  // namespace ferry::runs
