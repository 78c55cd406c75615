#include "gui/widgets/column_fit.h"

#include <QEvent>
#include <QHeaderView>
#include <QTableView>
#include <QTreeView>
#include <algorithm>
#include <utility>

namespace ferry::gui {

namespace {

/** Characters between a cell's text and the next one's, beside what the style leaves. */
constexpr int kCellGap = 1;
/** The fewest characters that are seen of a column that gives way. */
constexpr int kCellSeen = 8;

/** Takes `lacking` pixels from the widest columns, from none more than it has above its least
 * width. */
void narrow(std::vector<int>& widths, const std::vector<int>& least, int lacking) {
  while (lacking > 0) {
    // The widest comes down to the next widest, so that equal ones stay equal.
    int widest = -1, next = 0;
    for (int at = 0; at < static_cast<int>(widths.size()); ++at) {
      const int width = widths[static_cast<size_t>(at)];
      if (width <= least[static_cast<size_t>(at)]) continue;
      if (widest >= 0) next = std::max(next, std::min(width, widths[static_cast<size_t>(widest)]));
      if (widest < 0 || width > widths[static_cast<size_t>(widest)]) widest = at;
    }
    if (widest < 0) return;
    int& width = widths[static_cast<size_t>(widest)];
    const int lower = std::max(least[static_cast<size_t>(widest)], std::min(next, width - 1));
    const int taken = std::min(lacking, width - lower);
    width -= taken;
    lacking -= taken;
  }
}

}  // namespace

ColumnFit::ColumnFit(QTableView* view, const Rule& rule)
    : ColumnFit(view, view->horizontalHeader(), rule) {}

ColumnFit::ColumnFit(QTreeView* view, const Rule& rule) : ColumnFit(view, view->header(), rule) {}

ColumnFit::ColumnFit(QAbstractItemView* view, QHeaderView* header, const Rule& rule)
    : QObject(view), view_(view), header_(header), rule_(rule) {
  constexpr int kRowsMeasured = 100;  // and those that are seen
  header_->setStretchLastSection(false);
  header_->setSectionResizeMode(QHeaderView::Interactive);
  header_->setResizeContentsPrecision(kRowsMeasured);
  header_->setMinimumSectionSize(2 * view_->fontMetrics().averageCharWidth());
  header_->setHighlightSections(false);
  header_->setDefaultAlignment(Qt::AlignLeading | Qt::AlignVCenter);
  view_->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
  later_.setSingleShot(true);
  later_.setInterval(0);
  connect(&later_, &QTimer::timeout, this, &ColumnFit::fit);
  const QAbstractItemModel* const model = view_->model();
  // Values that change in place make nothing narrower: columns would jump.
  connect(model, &QAbstractItemModel::dataChanged, this, [this] { later_.start(); });
  connect(model, &QAbstractItemModel::headerDataChanged, this, [this] { later_.start(); });
  connect(model, &QAbstractItemModel::modelReset, this, &ColumnFit::fit_anew);
  const auto take_rows = [this] { rule_.keeps_widths ? later_.start() : fit_anew(); };
  connect(model, &QAbstractItemModel::rowsInserted, this, take_rows);
  connect(model, &QAbstractItemModel::rowsRemoved, this, take_rows);
  connect(model, &QAbstractItemModel::columnsInserted, this, &ColumnFit::fit_anew);
  connect(model, &QAbstractItemModel::columnsRemoved, this, &ColumnFit::fit_anew);
  connect(header_, &QHeaderView::sectionResized, this, [this](int column, int, int width) {
    if (is_fitting_ || width == 0) return;
    const auto at = static_cast<size_t>(column);
    if (!is_rest(column)) {
      if (dragged_.size() <= at) dragged_.resize(at + 1);
      dragged_[at] = width;
    }
    later_.start();
  });
  view_->viewport()->installEventFilter(this);
  view_->installEventFilter(this);
  later_.start();
}

bool ColumnFit::eventFilter(QObject* watched, QEvent* event) {
  // The page is resized before it is laid out, so the viewport's resize counts.
  if (watched == view_->viewport() && event->type() == QEvent::Resize) fit();
  if (watched == view_ && (event->type() == QEvent::FontChange ||
                           event->type() == QEvent::StyleChange || event->type() == QEvent::Show))
    fit_anew();
  return QObject::eventFilter(watched, event);
}

bool ColumnFit::is_rest(int column) const {
  return column >= rule_.rest && column - rule_.rest < rule_.n_rest;
}

void ColumnFit::choose_widths(std::vector<int> widths) {
  dragged_ = std::move(widths);
  fit_anew();
}

void ColumnFit::fit_anew() {
  needed_.clear();
  later_.start();
}

bool ColumnFit::is_chosen(size_t column) const {
  return column < dragged_.size() && dragged_[column] > 0;
}

int ColumnFit::needed_width(int column) const {
  const auto at = static_cast<size_t>(column);
  if (is_chosen(at)) return dragged_[at];
  const int em = view_->fontMetrics().averageCharWidth();
  const int head = header_->isHidden() ? 0 : header_->sectionSizeHint(column);
  const int contents = std::max(view_->sizeHintForColumn(column), head) + kCellGap * em;
  const int most = is_rest(column) ? rule_.whole_chars : rule_.most_chars;
  const int now = std::min(contents, most * em);
  return at < needed_.size() ? std::max(now, needed_[at]) : now;
}

void ColumnFit::fit() {
  later_.stop();
  const int n = header_->count(), room = view_->viewport()->width();
  const int em = view_->fontMetrics().averageCharWidth();
  is_fitting_ = true;
  for (const int column : rule_.spared)
    header_->setSectionHidden(column, false);
  const auto size = static_cast<size_t>(n);
  needed_.resize(size);
  std::vector<int> widths(size), least(size);
  int n_rest = 0, rest = 0, others = 0;
  for (int column = 0; column < n; ++column) {
    const auto at = static_cast<size_t>(column);
    if (header_->isSectionHidden(column)) continue;
    needed_[at] = needed_width(column);
    if (is_rest(column)) {
      ++n_rest;
      least[at] = rule_.least_chars * em;
      rest += std::max(least[at], needed_[at]);
    } else {
      widths[at] = needed_[at];
      least[at] = std::min(needed_[at], std::max(header_->sectionSizeHint(column), kCellSeen * em));
      others += widths[at];
    }
  }
  for (const int column : rule_.spared) {
    if (others + rest <= room) break;
    const auto at = static_cast<size_t>(column);
    header_->setSectionHidden(column, true);
    others -= std::exchange(widths[at], 0);
    least[at] = 0;
  }
  narrow(widths, least, others + rest - room);
  int left = room;
  for (const int width : widths)
    left -= width;
  if (const int most = n_rest * std::max(rule_.most_rest_chars * em, rest / std::max(n_rest, 1));
      rule_.most_rest_chars > 0 && left > most) {
    std::vector<size_t> shared;
    for (int column = 0; column < n; ++column)
      if (const auto at = static_cast<size_t>(column);
          !header_->isSectionHidden(column) && !is_rest(column) && !is_chosen(at))
        shared.push_back(at);
    // The rest take what their own share is, too.
    const int each = (left - most) / (static_cast<int>(shared.size()) + n_rest);
    for (const size_t at : shared) {
      widths[at] += each;
      left -= each;
    }
  }
  bool has_changed = false;
  for (int column = 0; column < n; ++column) {
    const auto at = static_cast<size_t>(column);
    if (header_->isSectionHidden(column)) continue;
    if (is_rest(column)) {
      // The last columns get the remainder of the division, so that all fill the room.
      widths[at] = std::max(left / n_rest--, least[at]);
      left -= widths[at];
    }
    has_changed |= header_->sectionSize(column) != widths[at];
    header_->resizeSection(column, widths[at]);
  }
  is_fitting_ = false;
  if (has_changed) emit fitted();
}

}  // namespace ferry::gui
