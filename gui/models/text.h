#pragma once
// Text and paths between the service and Qt.

#include <QString>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>

#include "src/base/error.h"

class QFile;

namespace ferry::gui {

QString to_text(std::string_view utf8);
/** A path as text, and back, without loss: bytes that are no UTF-8 are kept as lone surrogates. */
QString path_text(const std::filesystem::path& path);
std::filesystem::path to_path(const QString& text);
/** Opens the file of a path that need not be text; false: file.errorString() says why. */
bool open_to_read(QFile& file, const std::filesystem::path& path);
/** False also where nobody can tell. */
bool is_there(const std::filesystem::path& path);

/** The text as a sentence begins. */
QString sentence(QString text);

/** Does what may fail; what went wrong, for the user. Event handlers may not throw. */
std::optional<QString> trouble_of(const std::function<void()>& work);

}  // namespace ferry::gui
