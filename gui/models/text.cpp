#include "gui/models/text.h"

#include <fcntl.h>

#include <QCoreApplication>
#include <QFile>
#include <algorithm>

#include "src/base/utf8.h"

namespace ferry::gui {

namespace {

// A byte that is no UTF-8 becomes half of a pair that no text has: U+DC80 to U+DCFF.
constexpr char16_t kBytes = 0xDC00, kFirstByte = 0xDC80, kLastByte = 0xDCFF;
constexpr QChar kIsolate(0x2068), kIsolateEnd(0x2069);

}  // namespace

QString to_text(std::string_view utf8) {
  return QString::fromUtf8(utf8.data(), static_cast<qsizetype>(utf8.size()));
}

QString path_text(const std::filesystem::path& path) {
  QString text;
  for (std::string_view rest = path.native(); !rest.empty();) {
    const size_t n_valid = first_invalid_utf8(rest);
    text += to_text(rest.substr(0, n_valid));
    if (n_valid >= rest.size()) break;
    text += QChar(static_cast<char16_t>(kBytes + static_cast<unsigned char>(rest[n_valid])));
    rest.remove_prefix(n_valid + 1);
  }
  return text;
}

std::filesystem::path to_path(const QString& text) {
  std::string bytes;
  qsizetype from = 0;
  const auto add_until = [&](qsizetype end) {
    bytes += QStringView(text).mid(from, end - from).toUtf8().toStdString();
    from = end + 1;
  };
  for (qsizetype i = 0; i < text.size(); ++i) {
    const char16_t unit = text[i].unicode();
    if (text[i].isHighSurrogate()) {
      ++i;  // a whole pair is a character
    } else if (unit >= kFirstByte && unit <= kLastByte) {
      add_until(i);
      bytes += static_cast<char>(unit - kBytes);
    }
  }
  add_until(text.size());
  return bytes;
}

bool open_to_read(QFile& file, const std::filesystem::path& path) {
  file.setFileName(path_text(path));
  if (path == QFile::encodeName(file.fileName()).constData()) return file.open(QIODevice::ReadOnly);
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  return descriptor >= 0 &&
         file.open(descriptor, QIODevice::ReadOnly, QFileDevice::AutoCloseHandle);
}

bool is_there(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

QString sentence(QString text) {
  if (!text.isEmpty()) text[0] = text[0].toUpper();
  return text;
}

bool has_letter_from_right(const QString& text) {
  return std::ranges::any_of(text.toUcs4(), [](char32_t letter) {
    const QChar::Direction direction = QChar::direction(letter);
    return direction == QChar::DirR || direction == QChar::DirAL;
  });
}

bool words_run_from_right() {
  // Qt's own key. Variables keep it from the texts that this app's translators get.
  static constexpr const char *kContext = "QGuiApplication", *kKey = "QT_LAYOUT_DIRECTION";
  return QCoreApplication::translate(kContext, kKey) == QLatin1String("RTL");
}

QString isolated(const QString& text) {
  if (text.isEmpty() || !(words_run_from_right() || has_letter_from_right(text))) return text;
  return kIsolate + text + kIsolateEnd;
}

namespace {

struct TextWords {
  Q_DECLARE_TR_FUNCTIONS(TextWords)
};

}  // namespace

QString listed(const QStringList& words) {
  return words.join(TextWords::tr(", ", "between the words of a list"));
}

QString without_isolates(QString text) {
  return text.remove(kIsolate).remove(kIsolateEnd);
}

QString shown_path(const std::filesystem::path& path) {
  return isolated(path_text(path));
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
