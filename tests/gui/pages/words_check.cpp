#include "tests/gui/pages/words_check.h"

#include <QAbstractButton>
#include <QAbstractItemView>
#include <QComboBox>
#include <QGroupBox>
#include <QLabel>
#include <QRegularExpression>
#include <QTabBar>
#include <algorithm>

namespace ferry::gui {

namespace {

/** Tables of texts that a user trains on or that a model wrote. */
const QStringList kTexts = {"grid", "preview_fields", "preview_batch"};
constexpr int kRowsLookedAt = 50;

void add_phrases(const QWidget& widget, const QString& text, QStringList& found) {
  static const QRegularExpression kPhrase(
      QStringLiteral("\\b[A-Z]?[a-z]{2,} [a-z]{3,}\\b(?: [a-z]+\\b)*"));
  for (auto it = kPhrase.globalMatch(text); it.hasNext();) {
    const QString phrase = it.next().captured();
    if (phrase.startsWith(QLatin1String("ferry "))) continue;  // a command
    found << QStringLiteral("English: \"%1\" on %2 \"%3\"")
                 .arg(phrase, widget.metaObject()->className(), widget.objectName());
  }
}

void add_cells(const QAbstractItemView& view, QStringList& found) {
  const QAbstractItemModel* const model = view.model();
  if (!model || kTexts.contains(view.objectName())) return;
  for (int column = 0; column < model->columnCount(); ++column) {
    add_phrases(view, model->headerData(column, Qt::Horizontal).toString(), found);
    for (int row = 0; row < std::min(model->rowCount(), kRowsLookedAt); ++row)
      add_phrases(view, model->index(row, column).data().toString(), found);
  }
}

}  // namespace

QStringList english_phrases(const QWidget& root) {
  QStringList found;
  for (const QWidget* const widget : root.findChildren<QWidget*>()) {
    if (!widget->isVisible() || widget->window() != root.window()) continue;
    if (const auto* label = qobject_cast<const QLabel*>(widget))
      add_phrases(*widget, label->text(), found);
    else if (const auto* button = qobject_cast<const QAbstractButton*>(widget))
      add_phrases(*widget, button->text(), found);
    else if (const auto* group = qobject_cast<const QGroupBox*>(widget))
      add_phrases(*widget, group->title(), found);
    else if (const auto* combo = qobject_cast<const QComboBox*>(widget))
      add_phrases(*widget, combo->currentText(), found);
    else if (const auto* tabs = qobject_cast<const QTabBar*>(widget))
      for (int i = 0; i < tabs->count(); ++i)
        add_phrases(*widget, tabs->tabText(i), found);
    else if (const auto* view = qobject_cast<const QAbstractItemView*>(widget);
             view && !widget->inherits("QHeaderView"))
      add_cells(*view, found);
  }
  return found;
}

}  // namespace ferry::gui
