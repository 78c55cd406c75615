#pragma once
// The widths of a table's columns: the rule of every table of the app.

#include <QObject>
#include <QTimer>
#include <vector>

class QAbstractItemView;
class QHeaderView;
class QTableView;
class QTreeView;

namespace ferry::gui {

/** Columns that fill the width of their view, whatever its size. Short columns take what their
 * contents need; the named ones share the rest equally. In a narrow view columns that may be spared
 * are hidden, then the widest of the short ones give way, then the view scrolls. In a very wide
 * view all columns share what the named ones have no use for. Columns are fitted when the viewport
 * gets another size and when contents change. A width that somebody dragged stays. */
class ColumnFit : public QObject {
  Q_OBJECT

 public:
  static constexpr int kToTheLast = 1 << 20;
  struct Rule {
    int rest = 0;          ///< the first column that shares what the others leave
    int n_rest = 1;        ///< so many share it, or kToTheLast
    int least_chars = 16;  ///< these are no narrower; in characters
    /** Before the view lacks room for so many characters of the rest, the others give way. */
    int whole_chars = 0;
    /** The rest are no wider, and all columns share what is left then; 0: they have no limit. */
    int most_rest_chars = 0;
    /** Rows that go, by a search for instance, make no column narrower. */
    bool keeps_widths = false;
    int most_chars = 40;           ///< the others are no wider; in characters
    std::vector<int> spared = {};  ///< hidden in a narrow view, the first one first
  };

  /** Belongs to the view. Made after the view has its model. */
  ColumnFit(QTableView* view, const Rule& rule);
  ColumnFit(QTreeView* view, const Rule& rule);

  /** At once, instead of in the next turn of the event loop. */
  void fit();
  /** The widths that somebody chose, by column; 0: nobody did. */
  const std::vector<int>& chosen_widths() const { return dragged_; }
  void choose_widths(std::vector<int> widths);

 signals:
  /** Columns have other widths. */
  void fitted();

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  ColumnFit(QAbstractItemView* view, QHeaderView* header, const Rule& rule);
  bool is_rest(int column) const;
  bool is_chosen(size_t column) const;
  /** Contents are others: columns may become narrower than they were. */
  void fit_anew();
  /** The width in pixels that header and contents need, or that somebody chose. */
  int needed_width(int column) const;

  QAbstractItemView* view_;
  QHeaderView* header_;
  Rule rule_;
  std::vector<int> dragged_;  ///< by column, in pixels; 0: nobody did
  std::vector<int> needed_;   ///< by column, since the contents are these
  bool is_fitting_ = false;
  QTimer later_;  ///< several changes of one turn are one
};

}  // namespace ferry::gui
