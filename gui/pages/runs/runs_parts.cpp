// The parts of the page: actions, the head, the table, what stands in its place.

#include <QtWidgets>

#include "gui/models/runs/run_filter.h"
#include "gui/models/text.h"
#include "gui/pages/runs/run_delegates.h"
#include "gui/pages/runs/runs_page.h"
#include "gui/widgets/column_fit.h"
#include "gui/widgets/icons.h"
#include "gui/widgets/look.h"

namespace ferry::gui {

namespace fs = std::filesystem;

namespace {

/** Tab leaves the table, Enter opens a run, Copy takes whole rows. */
class RunTable : public QTableView {
 public:
  std::function<void()> opens, copies;

 protected:
  void keyPressEvent(QKeyEvent* event) override {
    const bool is_enter = event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter;
    if (is_enter && event->modifiers() == Qt::NoModifier) return opens();
    if (event->matches(QKeySequence::Copy)) return copies();
    QTableView::keyPressEvent(event);
  }
};

}  // namespace

QAction* RunsPage::add_action(const char* name,
                              const QString& text,
                              std::function<void()> act,
                              const QKeySequence& keys) {
  auto* action = new QAction(text, this);
  action->setObjectName(name);
  action->setShortcut(keys);
  connect(action, &QAction::triggered, this, [act = std::move(act)] { act(); });
  addAction(action);
  return action;
}

void RunsPage::make_actions() {
  Navigator& navigator = shared().navigator;
  const auto with_one = [this](void (Navigator::*wanted)(const fs::path&)) {
    return [this, wanted] {
      if (const int row = only(); row >= 0)
        emit(shared().navigator.*wanted)(shared().runs.path_of(row));
    };
  };
  new_ = add_action("action_new", tr("New run"),
                    [&navigator] { emit navigator.page_wanted(PageId::new_run); });
  start_page_ = add_action("action_start_page", tr("Go to Start"),
                           [&navigator] { emit navigator.page_wanted(PageId::start); });
  open_ = add_action(
      "action_open", tr("Open"), [this] { open_live(); }, QKeySequence::Open);
  pause_ = add_action(
      "action_pause", tr("Pause"), [this] { pause(); }, QKeySequence(Qt::CTRL | Qt::Key_P));
  resume_ = add_action(
      "action_resume", tr("Resume"), [this] { resume(); }, QKeySequence(Qt::CTRL | Qt::Key_R));
  stop_ = add_action(
      "action_stop", tr("Stop and save"), [this] { stop(); },
      QKeySequence(Qt::CTRL | Qt::Key_Period));
  extend_ = add_action("action_extend", tr("Extend"), [this] { ask_extend(); });
  clone_ = add_action("action_clone", tr("Clone settings"), [this] { clone(); });
  compare_ = add_action("action_compare", tr("Compare"),
                        [this] { emit shared().navigator.compare_wanted(paths_of(selected())); });
  samples_ = add_action("action_samples", tr("Samples"), with_one(&Navigator::samples_wanted));
  try_ = add_action("action_try", tr("Try it"), with_one(&Navigator::try_wanted));
  export_ = add_action("action_export", tr("Export"), with_one(&Navigator::export_wanted));
  folder_ = add_action("action_folder", tr("Open folder"), [this] {
    if (const int row = only(); row >= 0)
      QDesktopServices::openUrl(QUrl::fromLocalFile(path_text(shared().runs.path_of(row))));
  });
  report_ = add_action("action_report", tr("Report"), [this] { write_report(); });
  delete_ = add_action(
      "action_delete", tr("Delete"), [this] { ask_delete(); }, QKeySequence::Delete);
  delete_->setShortcutContext(Qt::WidgetWithChildrenShortcut);
  find_ = add_action(
      "action_find", tr("Find"),
      [this] {
        search_->setFocus(Qt::ShortcutFocusReason);
        search_->selectAll();
      },
      QKeySequence::Find);
  for (const auto& [action, icon] : {std::pair{open_, "open"},
                                     {pause_, "pause"},
                                     {resume_, "resume"},
                                     {stop_, "stop"},
                                     {compare_, "compare"},
                                     {try_, "try"},
                                     {export_, "export"},
                                     {delete_, "delete"}})
    action->setIcon(line_icon(icon));
  show_all_ = add_action("action_show_all", tr("Show all runs"), [this] {
    search_->clear();
    groups_->setCurrentIndex(0);
  });
}

QWidget* RunsPage::make_head() {
  auto* head = new QWidget;
  auto* title = new TextLabel(tr("Runs"));
  title->setFont(heading_font(title->font(), kTitle));
  count_ = new TextLabel;
  count_->setObjectName("run_count");
  count_->setForegroundRole(QPalette::PlaceholderText);
  search_ = new QLineEdit;
  search_->setObjectName("run_search");
  search_->setPlaceholderText(tr("Search runs"));
  search_->setAccessibleName(tr("Search runs"));
  search_->setClearButtonEnabled(true);
  search_->setMinimumWidth(fontMetrics().averageCharWidth() * 26);
  auto* state = new TextLabel(tr("S&tate:"));
  groups_ = new QComboBox;
  groups_->setObjectName("run_state_filter");
  groups_->setAccessibleName(tr("Show runs in this state"));
  groups_->setFocusPolicy(Qt::StrongFocus);
  groups_->addItem(tr("All"));
  for (const RunGroup group : {RunGroup::running, RunGroup::paused, RunGroup::finished,
                               RunGroup::stopped, RunGroup::failed, RunGroup::unreadable})
    groups_->addItem(group_text(group), static_cast<int>(group));
  state->setBuddy(groups_);
  auto* new_run = new QPushButton(tr("&New run"));
  new_run->setObjectName("new_run_button");
  connect(new_run, &QPushButton::clicked, new_, &QAction::trigger);
  auto* row = new QHBoxLayout(head);
  row->setContentsMargins(0, 0, 0, 0);
  row->addWidget(title);
  row->addSpacing(fontMetrics().averageCharWidth());
  row->addWidget(count_);
  row->addStretch(1);
  row->addWidget(search_);
  row->addWidget(state);
  row->addWidget(groups_);
  row->addWidget(new_run);
  connect(search_, &QLineEdit::textChanged, this, [this](const QString& text) {
    filter_->set_search(text);
    show_state();
  });
  connect(groups_, &QComboBox::currentIndexChanged, this, [this](int at) {
    filter_->set_group(at > 0 ? std::optional(static_cast<RunGroup>(groups_->itemData(at).toInt()))
                              : std::nullopt);
    show_state();
  });
  return head;
}

QWidget* RunsPage::make_table() {
  auto* table = new RunTable;
  table_ = table;
  table->opens = [this] { open_live(); };
  table->copies = [this] { copy_rows(); };
  table_->setObjectName("run_table");
  table_->setAccessibleName(tr("Runs"));
  table_->setModel(filter_);
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setSelectionMode(QAbstractItemView::ExtendedSelection);
  table_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table_->setShowGrid(false);
  table_->setAlternatingRowColors(true);
  table_->setTabKeyNavigation(false);
  table_->setWordWrap(false);
  table_->setContextMenuPolicy(Qt::CustomContextMenu);
  table_->setItemDelegate(new TextDelegate(Qt::ElideRight, table_));
  table_->setItemDelegateForColumn(RunListModel::name, new TextDelegate(Qt::ElideMiddle, table_));
  table_->setItemDelegateForColumn(RunListModel::state, new StateDelegate(table_));
  table_->setItemDelegateForColumn(RunListModel::curve, new SparklineDelegate(table_));
  table_->setItemDelegateForColumn(RunListModel::progress, new ProgressDelegate(table_));
  table_->verticalHeader()->hide();
  table_->verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
  table_->verticalHeader()->setDefaultSectionSize(fontMetrics().height() * 9 / 4);
  QHeaderView* header = table_->horizontalHeader();
  header->setSectionsMovable(true);
  header->restoreState(shared().settings.value(kOwnColumns).toByteArray());
  // Details has what a narrow window spares. Names tell runs apart only as a whole.
  columns_ = new ColumnFit(table_, {.rest = RunListModel::name,
                                    .whole_chars = 56,
                                    .most_rest_chars = 72,
                                    .keeps_widths = true,
                                    .most_chars = 34,
                                    .spared = {RunListModel::speed, RunListModel::curve,
                                               RunListModel::time, RunListModel::started}});
  std::vector<int> widths;
  for (const QVariant& width : shared().settings.value(kOwnWidths).toList())
    widths.push_back(width.toInt());
  widths.resize(std::min<size_t>(widths.size(), RunListModel::kColumns));
  columns_->choose_widths(std::move(widths));
  table_->setSortingEnabled(true);
  table_->sortByColumn(RunListModel::started, Qt::DescendingOrder);
  connect(table_->selectionModel(), &QItemSelectionModel::selectionChanged, this,
          &RunsPage::show_state);
  connect(table_, &QTableView::doubleClicked, this, &RunsPage::open_live);
  connect(table_, &QTableView::customContextMenuRequested, this, &RunsPage::show_menu);

  details_ = new QTextBrowser;
  details_->setObjectName("run_details");
  details_->setAccessibleName(tr("Details of the selected run"));
  details_->setOpenLinks(false);
  details_->setTabChangesFocus(true);
  auto* split = new QSplitter(Qt::Vertical);
  split->setChildrenCollapsible(false);
  split->addWidget(table_);
  split->addWidget(details_);
  split->setStretchFactor(0, 3);
  split->setStretchFactor(1, 0);
  const int line = fontMetrics().height();
  table_->setMinimumHeight(line * 6);
  details_->setMinimumHeight(line * 3);
  split->setSizes({line * 30, line * 9});
  return split;
}

QWidget* RunsPage::make_message(const char* name,
                                const QString& title,
                                const QString& text,
                                const QList<QAction*>& actions) {
  auto* message = new QWidget;
  message->setObjectName(name);
  auto* big = new TextLabel(title);
  big->setFont(heading_font(big->font(), kTitle));
  big->setAlignment(Qt::AlignCenter);
  auto* small = new TextLabel(text);
  small->setWordWrap(true);
  small->setAlignment(Qt::AlignHCenter | Qt::AlignTop);
  small->setFixedWidth(fontMetrics().averageCharWidth() * 60);
  small->setVisible(!text.isEmpty());
  auto* buttons = new QHBoxLayout;
  buttons->addStretch(1);
  for (QAction* action : actions) {
    auto* button = new QPushButton(action->text());
    button->setObjectName(QString(name) + '_' + action->objectName());
    connect(button, &QPushButton::clicked, action, &QAction::trigger);
    buttons->addWidget(button);
  }
  buttons->addStretch(1);
  auto* column = new QVBoxLayout(message);
  column->addStretch(1);
  column->addWidget(big);
  auto* text_row = new QHBoxLayout;
  text_row->addStretch(1);
  text_row->addWidget(small);
  text_row->addStretch(1);
  column->addLayout(text_row);
  column->addSpacing(fontMetrics().height());
  column->addLayout(buttons);
  column->addStretch(2);
  return message;
}

}  // namespace ferry::gui
