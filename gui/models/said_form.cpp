#include "gui/models/said_form.h"

#include "gui/models/text.h"

namespace ferry::gui {

SaidForm::SaidForm(const char* form)
    : pattern_(QRegularExpression::anchoredPattern(
          QRegularExpression::escape(QString::fromLatin1(form))
              .replace(QRegularExpression(QStringLiteral("\\\\%\\d")), QStringLiteral("(.+?)")))) {}

std::optional<QStringList> SaidForm::parts_of(const QString& said) const {
  const QRegularExpressionMatch match = pattern_.match(said);
  if (!match.hasMatch()) return std::nullopt;
  return match.capturedTexts().mid(1);
}

QString filled(const QString& words, const QStringList& parts) {
  QString text;
  for (qsizetype at = 0; at < words.size(); ++at) {
    const bool is_place = words[at] == '%' && at + 1 < words.size() && words[at + 1].isDigit();
    if (is_place)
      text += isolated(parts.value(words[++at].digitValue() - 1));
    else
      text += words[at];
  }
  return text;
}

}  // namespace ferry::gui
