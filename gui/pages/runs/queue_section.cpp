#include "gui/pages/runs/queue_section.h"

#include <QtWidgets>

#include "gui/models/text.h"
#include "gui/widgets/look.h"

namespace ferry::gui {

namespace {

constexpr int kRowsShown = 3;

/** Two lines: state and title, then model and data or why it could not be started. */
class EntryDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex&) const override {
    return {option.fontMetrics.averageCharWidth() * 40, option.fontMetrics.height() * 5 / 2};
  }

  void paint(QPainter* painter,
             const QStyleOptionViewItem& option,
             const QModelIndex& index) const override {
    QStyleOptionViewItem filled = option;
    initStyleOption(&filled, index);
    filled.text.clear();
    painter->save();
    filled.widget->style()->drawControl(QStyle::CE_ItemViewItem, &filled, painter, filled.widget);
    const bool is_selected = filled.state & QStyle::State_Selected;
    const QFontMetrics& metrics = filled.fontMetrics;
    const int space = metrics.averageCharWidth(), line = metrics.height();
    const QRect inside =
        filled.rect.adjusted(space, (filled.rect.height() - 2 * line) / 2, -space, 0);
    const auto draw = [&](int n, const QString& text, const QFont& font, QPalette::ColorRole role) {
      painter->setFont(font);
      painter->setPen(filled.palette.color(is_selected ? QPalette::HighlightedText : role));
      draw_words(*painter, QRect(inside.left(), inside.top() + n * line, inside.width(), line),
                 Qt::AlignVCenter | Qt::AlignLeading,
                 QFontMetrics(font).elidedText(text, Qt::ElideRight, inside.width()));
    };
    const QString trouble = index.data(RunQueue::trouble_role).toString();
    draw(0,
         RunQueue::tr("%1. %2", "place in the queue, title")
             .arg(index.row() + 1)
             .arg(isolated(index.data(RunQueue::title_role).toString())),
         bold_font(filled.font), QPalette::Text);
    draw(1,
         RunQueue::tr("%1: %2", "state, about")
             .arg(index.data(RunQueue::state_role).toString(),
                  trouble.isEmpty() ? index.data(RunQueue::about_role).toString()
                                    : trouble.section('\n', -1)),
         filled.font, QPalette::PlaceholderText);
    painter->restore();
  }
};

}  // namespace

QueueSection::QueueSection(AppSettings& settings, RunQueue& queue, QWidget* parent)
    : QWidget(parent),
      settings_(settings),
      queue_(queue),
      switch_(new QCheckBox(tr("Start &queued runs one after another"))),
      status_(new TextLabel),
      empty_(new TextLabel(tr("Nothing waits. “Add to queue” on New run puts settings here."))),
      list_(new QListView),
      content_(new QWidget) {
  auto* title = new TextLabel(tr("Queue"));
  title->setFont(bold_font(title->font()));
  switch_->setObjectName("queue_switch");
  status_->setObjectName("queue_status");
  status_->setTextFormat(Qt::PlainText);
  empty_->setObjectName("queue_empty");
  empty_->setForegroundRole(QPalette::PlaceholderText);
  list_->setObjectName("queue_list");
  list_->setAccessibleName(tr("Queue"));
  list_->setModel(&queue_);
  list_->setItemDelegate(new EntryDelegate(list_));
  list_->setUniformItemSizes(true);
  list_->setAlternatingRowColors(true);
  list_->setFixedHeight(list_->fontMetrics().height() * 5 / 2 * kRowsShown +
                        2 * list_->frameWidth());

  auto* head = new QHBoxLayout;
  head->addWidget(title);
  head->addSpacing(fontMetrics().height());
  head->addWidget(switch_);
  head->addStretch(1);
  head->addWidget(status_);
  auto* buttons = new QVBoxLayout;
  start_ = add_button("queue_start", tr("Start no&w"));
  up_ = add_button("queue_up", tr("Move &up"));
  down_ = add_button("queue_down", tr("Move &down"));
  remove_ = add_button("queue_remove", tr("&Remove"));
  for (QPushButton* button : {start_, up_, down_, remove_})
    buttons->addWidget(button);
  buttons->addStretch(1);
  auto* row_of_list = new QHBoxLayout(content_);
  row_of_list->setContentsMargins(0, 0, 0, 0);
  row_of_list->addWidget(list_, 1);
  row_of_list->addLayout(buttons);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addLayout(head);
  column->addWidget(empty_);
  column->addWidget(content_);

  connect(switch_, &QCheckBox::toggled, this, [this](bool on) { settings_.set_queue_on(on); });
  connect(up_, &QPushButton::clicked, this, [this] { queue_.move(row(), -1); });
  connect(down_, &QPushButton::clicked, this, [this] { queue_.move(row(), 1); });
  connect(start_, &QPushButton::clicked, this, [this] { queue_.start_now(row()); });
  connect(remove_, &QPushButton::clicked, this, [this] { queue_.remove(row()); });
  const auto show = [this] { show_state(); };
  connect(&settings_, &AppSettings::changed, this, show);
  connect(&queue_, &RunQueue::status_changed, this, show);
  for (const auto signal : {&RunQueue::rowsInserted, &RunQueue::rowsRemoved})
    connect(&queue_, signal, this, show);
  connect(&queue_, &RunQueue::rowsMoved, this, show);
  connect(&queue_, &RunQueue::modelReset, this, show);
  connect(&queue_, &RunQueue::dataChanged, this, show);
  connect(list_->selectionModel(), &QItemSelectionModel::currentChanged, this, show);
  show_state();
}

QPushButton* QueueSection::add_button(const char* name, const QString& text) {
  auto* button = new QPushButton(text);
  button->setObjectName(name);
  return button;
}

int QueueSection::row() const {
  return list_->currentIndex().isValid() ? list_->currentIndex().row() : -1;
}

void QueueSection::show_state() {
  const bool has_entries = queue_.rowCount() > 0, is_ours = queue_.is_ours();
  content_->setVisible(has_entries);
  empty_->setVisible(!has_entries);
  const QSignalBlocker quiet(switch_);
  switch_->setChecked(settings_.is_queue_on());
  status_->setText(queue_.status());
  const int at = row();
  start_->setEnabled(is_ours && at >= 0);
  remove_->setEnabled(is_ours && at >= 0);
  up_->setEnabled(is_ours && at > 0);
  down_->setEnabled(is_ours && at >= 0 && at + 1 < queue_.rowCount());
}

}  // namespace ferry::gui
