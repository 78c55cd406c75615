#pragma once
// Cells of the list of runs that are drawn: state, curve, progress. All colours come from the
// palette, and nothing is told by colour alone.

#include <QStyledItemDelegate>

namespace ferry::gui {

/** Draws a cell's ground, with more space at its sides than the style leaves; derived ones draw
 * what is in it. */
class CellDelegate : public QStyledItemDelegate {
  Q_OBJECT

 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  void paint(QPainter* painter,
             const QStyleOptionViewItem& option,
             const QModelIndex& index) const final;

 protected:
  /** `cell`: as the model fills it, without its text, which is `text`; `inside`: its room. */
  virtual void draw(QPainter& painter,
                    const QStyleOptionViewItem& cell,
                    const QRect& inside,
                    const QString& text,
                    const QModelIndex& index) const = 0;
};

/** Text alone. */
class TextDelegate : public CellDelegate {
  Q_OBJECT

 public:
  explicit TextDelegate(Qt::TextElideMode elides, QObject* parent = nullptr)
      : CellDelegate(parent), elides_(elides) {}

 protected:
  void draw(QPainter& painter,
            const QStyleOptionViewItem& cell,
            const QRect& inside,
            const QString& text,
            const QModelIndex& index) const override;

 private:
  Qt::TextElideMode elides_;
};

/** A shape and the word beside it. */
class StateDelegate : public CellDelegate {
  Q_OBJECT

 public:
  using CellDelegate::CellDelegate;
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;

 protected:
  void draw(QPainter& painter,
            const QStyleOptionViewItem& cell,
            const QRect& inside,
            const QString& text,
            const QModelIndex& index) const override;
};

/** The loss as a line, with gaps where it was not finite. */
class SparklineDelegate : public CellDelegate {
  Q_OBJECT

 public:
  using CellDelegate::CellDelegate;
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;

 protected:
  void draw(QPainter& painter,
            const QStyleOptionViewItem& cell,
            const QRect& inside,
            const QString& text,
            const QModelIndex& index) const override;
};

/** A bar under its text. */
class ProgressDelegate : public CellDelegate {
  Q_OBJECT

 public:
  using CellDelegate::CellDelegate;

 protected:
  void draw(QPainter& painter,
            const QStyleOptionViewItem& cell,
            const QRect& inside,
            const QString& text,
            const QModelIndex& index) const override;
};

}  // namespace ferry::gui
