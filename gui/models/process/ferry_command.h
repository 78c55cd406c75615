#pragma once
// The commands that the app starts: the ones a user would type, so that a run of the app and one of
// a terminal are the same.

#include <QString>
#include <QStringList>
#include <filesystem>
#include <optional>

#include "src/config/config.h"

namespace ferry::gui {

/** The program ferry: $FERRY, else beside this program or in the build tree. */
std::optional<std::filesystem::path> find_ferry();

/** The value as a flag, and a form's field, takes it: "11GiB", "2e-05", "true". */
std::string flag_value(const config::Option& option, const config::Value& value);

/** "--learning-rate=3e-5" for every setting that is not the built-in one, in the option table's
 * order; without those that `verb` does not act on. */
QStringList arguments_of(const config::Config& config, config::VerbMask verb);

/** The command as a shell takes it. */
QString shell_text(const QString& program, const QStringList& arguments);

/** A directory under `runs` that is not there yet: "2026-11-20_101530_MiniLM_reviews". */
std::filesystem::path new_run_directory(const std::filesystem::path& runs,
                                        const config::Config& config);

}  // namespace ferry::gui
