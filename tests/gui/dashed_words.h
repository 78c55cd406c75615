#pragma once
// Another language than English: every word that the app translates becomes dashes, so that what
// it does not translate shows.

#include <QCoreApplication>
#include <QRegularExpression>
#include <QStringList>
#include <QTranslator>

namespace ferry::gui {

/** In force while it lives. */
class DashedWords : public QTranslator {
 public:
  /** Dashes the words of these contexts alone. */
  explicit DashedWords(QStringList contexts) : contexts_(std::move(contexts)) {
    QCoreApplication::installTranslator(this);
  }
  ~DashedWords() override { QCoreApplication::removeTranslator(this); }

  QString translate(const char* context, const char* source, const char*, int) const override {
    if (!contexts_.contains(QString::fromLatin1(context))) return {};
    static const QRegularExpression letter(QStringLiteral("[A-Za-z]"));
    return QString::fromUtf8(source).replace(letter, QStringLiteral("-"));
  }
  bool isEmpty() const override { return false; }

  /** The first English phrase of two words or more, outside of “quotes”. */
  static QString left_in(QString text) {
    static const QRegularExpression quoted(QStringLiteral("“[^”]*”")),
        phrase(QStringLiteral("\\b[a-z]{2,} [a-z]{2,}\\b"));
    return phrase.match(text.remove(quoted)).captured();
  }

 private:
  QStringList contexts_;
};

}  // namespace ferry::gui
