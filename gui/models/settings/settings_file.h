#pragma once
// Settings as a TOML file that `ferry train --config` takes: what is set, by group.

#include <QByteArray>
#include <QString>
#include <filesystem>

#include "src/config/config.h"

namespace ferry::gui {

QByteArray settings_toml(const config::Config& settings, const config::PresetHead& head = {});

// Both write a whole file or none, and make its directory; what went wrong, empty: nothing.
QString write_settings_file(const std::filesystem::path& file,
                            const config::Config& settings,
                            const config::PresetHead& head = {});
QString write_text_file(const std::filesystem::path& file, const QByteArray& text);

/** The file's settings, for SettingsModel::load(). Throws Error(usage). */
config::Config read_settings_file(const std::filesystem::path& file);

}  // namespace ferry::gui
