#pragma once
// The app in a language that runs from right to left.

#include <QTranslator>

namespace ferry::gui {

/** Turns the layout while it is installed, and every letter of the app's words into one of Hebrew
 * where `has_letters`. So a Latin letter that is left is a foreign one: of a name, a path, a unit.
 */
class MirroredWords : public QTranslator {
 public:
  explicit MirroredWords(bool has_letters) : has_letters_(has_letters) {}

  bool isEmpty() const override { return false; }

  QString translate(const char* context, const char* source, const char*, int) const override {
    if (qstrcmp(source, "QT_LAYOUT_DIRECTION") == 0) return QStringLiteral("RTL");
    // Qt's own words, such as the names of keys, stay.
    const bool is_of_qt = context[0] == 'Q' && context[1] >= 'A' && context[1] <= 'Z';
    return has_letters_ && !is_of_qt ? turned(QString::fromUtf8(source)) : QString();
  }

 private:
  /** Places such as %1 and tags of HTML stay. */
  static QString turned(QString text) {
    bool is_tag = false;
    for (qsizetype i = 0; i < text.size(); ++i) {
      const char16_t unit = text[i].toLower().unicode();
      if (unit == '<') is_tag = true;
      if (unit == '>') is_tag = false;
      const bool is_place = i > 0 && text[i - 1] == '%';
      if (!is_tag && !is_place && unit >= 'a' && unit <= 'z')
        text[i] = QChar(static_cast<char16_t>(0x5D0 + (unit - 'a')));
    }
    return text;
  }

  bool has_letters_;
};

}  // namespace ferry::gui
