#pragma once
// A layout that puts widgets one after another into lines, as text.

#include <QLayout>
#include <QList>

namespace ferry::gui {

class FlowLayout : public QLayout {
 public:
  using QLayout::QLayout;
  ~FlowLayout() override;
  void addItem(QLayoutItem* item) override { items_.append(item); }
  int count() const override { return static_cast<int>(items_.size()); }
  QLayoutItem* itemAt(int index) const override { return items_.value(index); }
  QLayoutItem* takeAt(int index) override;
  Qt::Orientations expandingDirections() const override { return {}; }
  bool hasHeightForWidth() const override { return true; }
  int heightForWidth(int width) const override { return place({0, 0, width, 0}, true); }
  void setGeometry(const QRect& rect) override;
  QSize sizeHint() const override { return minimumSize(); }
  QSize minimumSize() const override;

 private:
  /** Gives the height; a trial moves nothing. */
  int place(const QRect& rect, bool is_trial) const;
  QList<QLayoutItem*> items_;
};

}  // namespace ferry::gui
