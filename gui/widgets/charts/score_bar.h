#pragma once
// A share as a bar with its number, in a cell of a table.

#include <QStyledItemDelegate>

namespace ferry::gui {

class ScoreBar : public QStyledItemDelegate {
  Q_OBJECT

 public:
  static constexpr int share_role = Qt::UserRole + 40;  ///< double, 0 to 1

  using QStyledItemDelegate::QStyledItemDelegate;
  void paint(QPainter* painter,
             const QStyleOptionViewItem& option,
             const QModelIndex& index) const override;
};

}  // namespace ferry::gui
