#include "gui/models/text.h"

#include <QFile>

namespace ferry::gui {

QString to_text(std::string_view utf8) {
  return QString::fromUtf8(utf8.data(), static_cast<qsizetype>(utf8.size()));
}

QString path_text(const std::filesystem::path& path) {
  return QFile::decodeName(path.c_str());
}

std::filesystem::path to_path(const QString& text) {
  return {QFile::encodeName(text).toStdString()};
}

std::optional<QString> trouble_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {
    return QString::fromUtf8(error.what());
  }
  return std::nullopt;
}

}  // namespace ferry::gui
