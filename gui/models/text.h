#pragma once
// Text and paths between the service and Qt.

#include <QString>
#include <QStringList>
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

/** True of a text with a letter of Hebrew, Arabic or another script from right to left. */
bool has_letter_from_right(const QString& text);
/** True where the app's own words run from right to left: Qt's translation of them says so. */
bool words_run_from_right();
/** Marks a text that may run against the words around it (a name, a path, an amount with a unit),
 * so that its letters keep their order inside a sentence. An app whose words run from left to right
 * gets a text of such letters unchanged. */
QString isolated(const QString& text);
/** The text without the marks of isolated(): for files and other programs. */
QString without_isolates(QString text);
/** For people: path_text() that keeps its order inside a sentence. */
QString shown_path(const std::filesystem::path& path);

/** "a, b, c", as the app's language writes a list. */
QString listed(const QStringList& words);

/** The side of numbers in a column, in every language: their units stand below each other. */
inline constexpr Qt::Alignment kNumberSide = Qt::AlignRight | Qt::AlignAbsolute | Qt::AlignVCenter;

/** Does what may fail; what went wrong, for the user. Event handlers may not throw. */
std::optional<QString> trouble_of(const std::function<void()>& work);

}  // namespace ferry::gui
