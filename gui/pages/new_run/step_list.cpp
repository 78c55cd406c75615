#include "gui/pages/new_run/step_list.h"

#include <QEvent>
#include <QPainter>
#include <QStyledItemDelegate>

#include "gui/widgets/look.h"

namespace ferry::gui {

namespace {

constexpr int kProblems = Qt::UserRole + 1, kIsWrong = kProblems + 1;

QString problems_text(int n_problems, bool is_wrong) {
  return is_wrong ? StepList::tr("⚠ %n to fix", nullptr, n_problems)
                  : StepList::tr("○ %n to do", nullptr, n_problems);
}

/** The name, and below it what is wrong. */
class StepDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    QSize size = QStyledItemDelegate::sizeHint(option, index);
    size.setHeight(option.fontMetrics.height() * 5 / 2);
    return size;
  }

  void paint(QPainter* painter,
             const QStyleOptionViewItem& given,
             const QModelIndex& index) const override {
    QStyleOptionViewItem option = given;
    initStyleOption(&option, index);
    const QString name = option.text;
    option.text.clear();
    const QStyle* const style = option.widget->style();
    style->drawControl(QStyle::CE_ItemViewItem, &option, painter, option.widget);
    const bool is_selected = option.state & QStyle::State_Selected;
    const int n_problems = index.data(kProblems).toInt();
    const int line = option.fontMetrics.height();
    QRect rect = option.rect.adjusted(line / 2, 0, -line / 2, 0);
    if (n_problems > 0) {
      rect.setTop(rect.top() + line / 4);
      rect.setHeight(line);
    }
    painter->save();
    painter->setPen(option.palette.color(is_selected ? QPalette::HighlightedText : QPalette::Text));
    painter->setFont(option.font);
    draw_words(*painter, rect, Qt::AlignLeading | Qt::AlignVCenter, name);
    if (n_problems > 0) {
      rect.translate(0, line);
      const bool is_wrong = index.data(kIsWrong).toBool();
      if (!is_selected)
        painter->setPen(is_wrong ? error_colour(option.palette)
                                 : option.palette.color(QPalette::PlaceholderText));
      draw_words(*painter, rect, Qt::AlignLeading | Qt::AlignVCenter,
                 problems_text(n_problems, is_wrong));
    }
    painter->restore();
  }
};

}  // namespace

StepList::StepList(QWidget* parent) : QListWidget(parent) {
  setObjectName("steps");
  setAccessibleName(tr("Steps"));
  setItemDelegate(new StepDelegate(this));
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Expanding);
}

void StepList::add_step(const QString& name) {
  addItem(tr("%1  %2").arg(count() + 1).arg(name));
  set_problems(count() - 1, 0, 0);
}

void StepList::set_problems(int step, int n_problems, int n_missing) {
  QListWidgetItem* const one = item(step);
  const bool is_wrong = n_problems > n_missing;
  one->setData(kProblems, n_problems);
  one->setData(kIsWrong, is_wrong);
  one->setData(Qt::AccessibleTextRole,
               n_problems > 0 ? tr("%1, %2").arg(one->text(), problems_text(n_problems, is_wrong))
                              : one->text());
  setFixedWidth(sizeHint().width());
}

QSize StepList::sizeHint() const {
  int width = fontMetrics().horizontalAdvance(tr("⚠ %n to fix", nullptr, 88));
  for (int i = 0; i < count(); ++i)
    width = std::max(width, fontMetrics().horizontalAdvance(item(i)->text()));
  return {width + 2 * fontMetrics().height(), QListWidget::sizeHint().height()};
}

void StepList::changeEvent(QEvent* event) {
  QListWidget::changeEvent(event);
  if (event->type() == QEvent::FontChange) setFixedWidth(sizeHint().width());
}

}  // namespace ferry::gui
