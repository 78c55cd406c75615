#pragma once
// A layout that puts groups of fields beside each other where there is room.

#include <QLayout>
#include <QList>
#include <vector>

namespace ferry::gui {

/** Columns of equal width, read from top to bottom and then from one to the next. Groups keep their
 * order, and the highest column is as low as it can be. One column is no wider than its fields are
 * easily read. */
class GroupLayout : public QLayout {
 public:
  using QLayout::QLayout;
  ~GroupLayout() override;
  void addItem(QLayoutItem* item) override { items_.append(item); }
  int count() const override { return static_cast<int>(items_.size()); }
  QLayoutItem* itemAt(int index) const override { return items_.value(index); }
  QLayoutItem* takeAt(int index) override;
  Qt::Orientations expandingDirections() const override { return Qt::Horizontal; }
  bool hasHeightForWidth() const override { return true; }
  int heightForWidth(int width) const override;
  void setGeometry(const QRect& rect) override;
  QSize sizeHint() const override;
  QSize minimumSize() const override;

 private:
  struct Columns {
    int width = 0, height = 0;              ///< of each, in pixels; of the highest
    std::vector<std::vector<int>> heights;  ///< of the groups, by column
  };
  QList<QLayoutItem*> shown() const;
  Columns columns(int width) const;
  int gap_below() const;

  QList<QLayoutItem*> items_;
};

}  // namespace ferry::gui
