#pragma once
// Text and paths between the service and Qt. Paths keep their bytes: a name that is not UTF-8 stays
// what it is.

#include <QString>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>

#include "src/base/error.h"

namespace ferry::gui {

QString to_text(std::string_view utf8);
QString path_text(const std::filesystem::path& path);
std::filesystem::path to_path(const QString& text);

/** Does what may fail; what went wrong, for the user. Event handlers may not throw. */
std::optional<QString> trouble_of(const std::function<void()>& work);

}  // namespace ferry::gui
