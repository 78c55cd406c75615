#pragma once
// Cells of the list of runs that are drawn: state, curve, progress. All colours come from the
// palette, and nothing is told by colour alone.

#include <QStyledItemDelegate>

namespace ferry::gui {

/** Text with more space at its sides than the style leaves. */
class TextDelegate : public QStyledItemDelegate {
  Q_OBJECT

 public:
  explicit TextDelegate(Qt::TextElideMode elides, QObject* parent = nullptr)
      : QStyledItemDelegate(parent), elides_(elides) {}
  void paint(QPainter* painter,
             const QStyleOptionViewItem& option,
             const QModelIndex& index) const override;

 private:
  Qt::TextElideMode elides_;
};

/** A shape and the word beside it. */
class StateDelegate : public QStyledItemDelegate {
  Q_OBJECT

 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  void paint(QPainter* painter,
             const QStyleOptionViewItem& option,
             const QModelIndex& index) const override;
};

/** The loss as a line, with gaps where it was not finite. */
class SparklineDelegate : public QStyledItemDelegate {
  Q_OBJECT

 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  void paint(QPainter* painter,
             const QStyleOptionViewItem& option,
             const QModelIndex& index) const override;
};

/** A bar under its text. */
class ProgressDelegate : public QStyledItemDelegate {
  Q_OBJECT

 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  void paint(QPainter* painter,
             const QStyleOptionViewItem& option,
             const QModelIndex& index) const override;
};

}  // namespace ferry::gui
