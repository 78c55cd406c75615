#include "gui/pages/runs/runs_page.h"

#include <QtWidgets>
#include <nlohmann/json.hpp>

#include "gui/models/runs/run_details.h"
#include "gui/models/runs/run_filter.h"
#include "gui/models/runs/run_words.h"
#include "gui/models/text.h"
#include "gui/pages/runs/inline_bar.h"
#include "gui/pages/runs/queue_section.h"
#include "gui/pages/runs/run_delegates.h"
#include "gui/widgets/look.h"
#include "src/config/config.h"
#include "src/service/runs/run_report.h"
#include "src/service/runs/run_watch.h"

namespace ferry::gui {

namespace fs = std::filesystem;
using service::RunAction;

namespace {

constexpr int kCompareMost = 6;
enum Shown { shown_table, shown_empty, shown_loading, shown_none };

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

int64_t steps_in(const nlohmann::ordered_json& record) {
  if (!record.is_object() || !record.contains("n_steps") || !record["n_steps"].is_number_integer())
    return 0;
  return record["n_steps"].get<int64_t>();
}

/** The run's settings that differ from the built-in ones, for a new run. */
config::Config settings_of(const fs::path& run) {
  const fs::path file = run / "config.toml";
  config::Config read, settings;
  config::read_toml_file(read, file, config::Source::file);
  const config::Config built_in;
  for (const config::Option& option : config::option_table()) {
    const std::string_view key = option.key;
    const config::Value& value = read.value(key);
    // The directory and the place to go on from are the old run's own.
    if (key == "output_dir" || key == "resume_from_checkpoint" || value == built_in.value(key))
      continue;
    settings.set(key, value, config::to_toml(option, value), {config::Source::file, file.string()});
  }
  return settings;
}

fs::path report_file(const fs::path& run) {
  QString where = QStandardPaths::writableLocation(QStandardPaths::DownloadLocation);
  if (where.isEmpty() || !QDir(where).exists()) where = QDir::homePath();
  const QString name = QStringLiteral("ferry-report-") + run_name(run);
  fs::path file = to_path(where) / to_path(name + ".zip");
  for (int n = 2; is_there(file); ++n)
    file = to_path(where) / to_path(name + '-' + QString::number(n) + ".zip");
  return file;
}

constexpr size_t kNamesMax = 3;

/** The first few by name, so that a question stays short. */
QString names_of(const std::vector<fs::path>& runs) {
  QStringList names;
  for (size_t i = 0; i < std::min(runs.size(), kNamesMax); ++i)
    names << isolated(run_name(runs[i]));
  const QString named = names.join(QStringLiteral(", "));
  if (runs.size() <= kNamesMax) return named;
  return RunsPage::tr("%1 and %n more", "names of runs", static_cast<int>(runs.size() - kNamesMax))
      .arg(named);
}

bool may_delete(const fs::path& run) {
  service::RunWatch watch(run);
  return service::allowed_actions(watch.look()).allows(RunAction::delete_run);
}

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

RunsPage::RunsPage(Shared& shared, QWidget* parent)
    : Page(shared, parent), filter_(new RunFilter(shared.runs, this)) {
  make_actions();
  bar_ = new QToolBar;
  bar_->setObjectName("run_actions");
  bar_->setAccessibleName(tr("Actions for the selected runs"));
  bar_->setToolButtonStyle(Qt::ToolButtonTextOnly);
  for (QAction* action : {open_, pause_, resume_, stop_, extend_, clone_, compare_, try_, samples_,
                          export_, folder_, report_, delete_}) {
    bar_->addAction(action);
    auto* button = qobject_cast<QToolButton*>(bar_->widgetForAction(action));
    button->setFocusPolicy(Qt::TabFocus);
    button->setAutoRaise(false);
  }
  inline_ = new InlineBar;
  gate_ = new QLabel;
  gate_->setObjectName("run_gate");
  gate_->setTextFormat(Qt::PlainText);
  gate_->hide();

  stack_ = new QStackedWidget;
  stack_->addWidget(make_table());
  stack_->addWidget(make_message(
      "runs_empty", tr("No runs yet"),
      tr("A run is one training of a model on your data. Start offers settings that fit this "
         "machine; New run lets you choose your own."),
      {start_page_, new_}));
  stack_->addWidget(make_message("runs_loading", tr("Looking for runs …"), {}, {}));
  stack_->addWidget(make_message("runs_none", tr("No run matches"),
                                 tr("No run has all the words and the state that you look for."),
                                 {show_all_}));

  auto* column = new QVBoxLayout(this);
  const int margin = fontMetrics().height();
  column->setContentsMargins(margin, margin, margin, margin);
  column->setSpacing(margin / 2);
  column->addWidget(make_head());
  column->addWidget(bar_);
  column->addWidget(gate_);
  column->addWidget(inline_);
  column->addWidget(stack_, 1);
  column->addWidget(new QueueSection(shared.settings, shared.queue));

  RunListModel& runs = shared.runs;
  connect(&runs, &RunListModel::searched, this, &RunsPage::show_state);
  connect(&runs, &RunListModel::looked, this, [this] {
    if (isVisible()) show_state();
  });
  connect(&runs, &RunListModel::rowsInserted, this, &RunsPage::show_state);
  connect(&runs, &RunListModel::rowsRemoved, this, &RunsPage::show_state);
  connect(&shared.queue, &RunQueue::status_changed, this, &RunsPage::show_state);
  connect(&requests_, &RunRequests::replied, this,
          [this](const fs::path& run, bool is_done, const QString& text) {
            const QString said = tr("%1: %2", "run and reply").arg(isolated(run_name(run)), text);
            if (is_done)
              emit this->shared().navigator.said(said);
            else
              inline_->tell(said);
          });
  connect(&shared.launcher, &Launcher::failed, this,
          [this](const fs::path& run, const QString& message) {
            if (this->shared().runs.row_of(run) >= 0)
              inline_->tell(tr("%1 could not be started: %2")
                                .arg(isolated(run_name(run)), message.section('\n', -1)));
          });
  show_state();
}

RunsPage::~RunsPage() = default;

void RunsPage::set_active(bool active) {
  shared().runs.set_active(active);
  QHeaderView* header = table_->horizontalHeader();
  if (!active && isVisible()) shared().settings.set_value("runs/columns", header->saveState());
  if (active) show_state();
}

QList<QAction*> RunsPage::page_actions() {
  const auto line = [this] {
    auto* separator = new QAction(this);
    separator->setSeparator(true);
    return separator;
  };
  if (lines_.isEmpty()) lines_ = {line(), line(), line()};
  return {open_,    lines_[0], pause_,  resume_,   stop_,   extend_, lines_[1], clone_, compare_,
          samples_, try_,      export_, lines_[2], folder_, report_, delete_,   find_};
}

// Its parts.

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
  show_all_ = add_action("action_show_all", tr("Show all runs"), [this] {
    search_->clear();
    groups_->setCurrentIndex(0);
  });
}

QWidget* RunsPage::make_head() {
  auto* head = new QWidget;
  auto* title = new QLabel(tr("Runs"));
  title->setFont(heading_font(title->font(), kTitle));
  count_ = new QLabel;
  count_->setObjectName("run_count");
  count_->setForegroundRole(QPalette::PlaceholderText);
  search_ = new QLineEdit;
  search_->setObjectName("run_search");
  search_->setPlaceholderText(tr("Search runs"));
  search_->setAccessibleName(tr("Search runs"));
  search_->setClearButtonEnabled(true);
  search_->setMinimumWidth(fontMetrics().averageCharWidth() * 26);
  auto* state = new QLabel(tr("S&tate:"));
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
  table_->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
  table_->setItemDelegate(new TextDelegate(Qt::ElideRight, table_));
  table_->setItemDelegateForColumn(RunListModel::name, new TextDelegate(Qt::ElideMiddle, table_));
  table_->setItemDelegateForColumn(RunListModel::state, new StateDelegate(table_));
  table_->setItemDelegateForColumn(RunListModel::curve, new SparklineDelegate(table_));
  table_->setItemDelegateForColumn(RunListModel::progress, new ProgressDelegate(table_));
  table_->verticalHeader()->hide();
  table_->verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
  table_->verticalHeader()->setDefaultSectionSize(fontMetrics().height() * 9 / 4);
  QHeaderView* header = table_->horizontalHeader();
  header->setHighlightSections(false);
  header->setSectionsMovable(true);
  const QByteArray columns = shared().settings.value("runs/columns").toByteArray();
  if (columns.isEmpty() || !header->restoreState(columns)) {
    const int em = fontMetrics().averageCharWidth();
    constexpr std::array<int, RunListModel::kColumns> kWidths = {17, 28, 14, 19, 10,
                                                                 12, 22, 13, 10, 22};
    for (int i = 0; i < RunListModel::kColumns; ++i)
      header->resizeSection(i, kWidths[static_cast<size_t>(i)] * em);
  }
  header->setSectionResizeMode(RunListModel::name, QHeaderView::Stretch);
  header->setMinimumSectionSize(fontMetrics().averageCharWidth() * 6);
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
  auto* big = new QLabel(title);
  big->setFont(heading_font(big->font(), kTitle));
  big->setAlignment(Qt::AlignCenter);
  auto* small = new QLabel(text);
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

// The picture of the list.

std::vector<int> RunsPage::selected() const {
  std::vector<int> shown, rows;
  for (const QModelIndex& index : table_->selectionModel()->selectedRows())
    shown.push_back(index.row());
  std::sort(shown.begin(), shown.end());
  for (const int row : shown)
    rows.push_back(filter_->mapToSource(filter_->index(row, 0)).row());
  return rows;
}

int RunsPage::only() const {
  const std::vector<int> rows = selected();
  return rows.size() == 1 ? rows[0] : -1;
}

std::vector<fs::path> RunsPage::paths_of(const std::vector<int>& rows) const {
  std::vector<fs::path> paths;
  for (const int row : rows)
    paths.push_back(const_cast<RunsPage*>(this)->shared().runs.path_of(row));
  return paths;
}

void RunsPage::show_state() {
  const RunListModel& runs = shared().runs;
  const int n = runs.rowCount(), n_shown = filter_->rowCount();
  stack_->setCurrentIndex(n == 0         ? (runs.is_loading() ? shown_loading : shown_empty)
                          : n_shown == 0 ? shown_none
                                         : shown_table);
  bar_->setVisible(n > 0);
  count_->setText(n == 0         ? QString()
                  : n_shown == n ? tr("%n run(s)", nullptr, n)
                                 : tr("%1 of %n run(s)", nullptr, n).arg(n_shown));
  const QString gate = shared().queue.why_not_now();
  gate_->setVisible(!gate.isEmpty());
  gate_->setText(gate);
  allow_actions();
  show_details();
}

void RunsPage::allow_actions() {
  RunListModel& runs = shared().runs;
  const std::vector<int> rows = selected();
  const auto allow = [](QAction* action, const QString& why_not) {
    action->setEnabled(why_not.isEmpty());
    action->setToolTip(why_not.isEmpty() ? action->text() : why_not);
  };
  const auto why_not = [&](std::initializer_list<RunAction> any) {
    QString why = rows.empty() ? tr("Select a run") : QString();
    for (const int row : rows) {
      if (runs.is_starting(row)) return tr("It is being started");
      const service::AllowedActions allowed = runs.allowed(row);
      if (std::any_of(any.begin(), any.end(),
                      [&](RunAction action) { return allowed.allows(action); }))
        continue;
      // The first is for a run that lives, the last for one that ended.
      const bool has_ended = runs.facts_of(row).trainer == service::Trainer::none;
      why = to_text(allowed.why_not(has_ended ? *(any.end() - 1) : *any.begin()));
    }
    return why;
  };
  const bool is_one = rows.size() == 1;
  const QString one = is_one ? QString() : tr("Select one run");
  allow(open_, one);
  allow(pause_, why_not({RunAction::pause}));
  allow(resume_, why_not({RunAction::resume, RunAction::resume_run}));
  allow(stop_, why_not({RunAction::stop}));
  allow(extend_, is_one ? why_not({RunAction::extend_run}) : one);
  allow(compare_,
        rows.size() >= 2 && rows.size() <= kCompareMost ? QString() : tr("Select 2 to 6 runs"));
  const auto allow_where = [&](QAction* action, bool is_there, const QString& why) {
    allow(action, !is_one ? one : is_there ? QString() : why);
  };
  const fs::path run = is_one ? runs.path_of(rows[0]) : fs::path();
  allow_where(clone_, is_one && gui::is_there(run / "config.toml"), tr("It has no settings yet"));
  allow_where(samples_, is_one && gui::is_there(run / "samples"), tr("It has no samples"));
  const bool has_model =
      is_one && (runs.facts_of(rows[0]).has_checkpoint || gui::is_there(run / "final"));
  allow_where(try_, has_model, tr("It has no checkpoint yet"));
  allow_where(export_, has_model, tr("It has no checkpoint yet"));
  allow_where(folder_, is_one && gui::is_there(run), tr("Its directory was removed"));
  allow_where(report_, is_one && gui::is_there(run) && !is_busy_,
              is_busy_ ? tr("Something is being written") : tr("Its directory was removed"));
  allow(delete_, is_busy_ ? tr("Something is being written") : why_not({RunAction::delete_run}));
}

void RunsPage::show_details() {
  const RunListModel& runs = shared().runs;
  const std::vector<int> rows = selected();
  QString text;
  if (rows.empty()) {
    text = QStringLiteral("<p>%1</p>")
               .arg(tr("Select a run to see how it ended and where it is. Select several to "
                       "compare them.")
                        .toHtmlEscaped());
  } else if (rows.size() > 1) {
    text =
        QStringLiteral("<p>%1</p>")
            .arg(tr("%n run(s) selected", nullptr, static_cast<int>(rows.size())).toHtmlEscaped());
  } else {
    const int row = rows[0];
    const QString state = runs.index(row, RunListModel::state).data().toString();
    text = QStringLiteral("<p><b>%1</b> &nbsp; %2</p><table cellpadding='1'>")
               .arg(run_name(runs.path_of(row)).toHtmlEscaped(), state.toHtmlEscaped());
    for (const RunDetail& detail :
         details_of(runs.path_of(row), runs.facts_of(row), runs.record_of(row),
                    runs.trouble_of_row(row), runs.why_ended_of(row)))
      text += QStringLiteral("<tr><td style='padding-right:16px'>%1</td><td>%2</td></tr>")
                  .arg(detail.label.toHtmlEscaped(),
                       detail.text.toHtmlEscaped().replace('\n', QStringLiteral("<br>")));
    text += QStringLiteral("</table>");
  }
  if (text == details_text_) return;
  details_text_ = text;
  details_->setHtml(text);
}

void RunsPage::show_menu(const QPoint& place) {
  QMenu menu;
  menu.addActions(page_actions());
  menu.exec(table_->viewport()->mapToGlobal(place));
}

void RunsPage::copy_rows() {
  QStringList lines;
  const RunListModel& runs = shared().runs;
  for (const int row : selected()) {
    QStringList cells;
    for (int column = 0; column < RunListModel::kColumns; ++column)
      if (column != RunListModel::curve) cells << runs.index(row, column).data().toString();
    lines << cells.join('\t');
  }
  QGuiApplication::clipboard()->setText(lines.join('\n'));
}

// The work of the actions.

void RunsPage::open_live() {
  if (const int row = only(); row >= 0)
    emit shared().navigator.live_wanted(shared().runs.path_of(row));
}

void RunsPage::pause() {
  for (const int row : selected())
    if (shared().runs.allowed(row).allows(RunAction::pause))
      requests_.pause(shared().runs.path_of(row));
}

void RunsPage::resume() {
  // A start adds rows: paths first.
  std::vector<fs::path> paused, ended;
  for (const int row : selected()) {
    const service::AllowedActions allowed = shared().runs.allowed(row);
    if (allowed.allows(RunAction::resume))
      paused.push_back(shared().runs.path_of(row));
    else if (allowed.allows(RunAction::resume_run))
      ended.push_back(shared().runs.path_of(row));
  }
  for (const fs::path& run : paused)
    requests_.resume(run);
  for (const fs::path& run : ended)
    shared().launcher.resume(run);
}

void RunsPage::stop() {
  for (const int row : selected())
    if (shared().runs.allowed(row).allows(RunAction::stop))
      requests_.stop(shared().runs.path_of(row));
}

void RunsPage::ask_extend() {
  const int row = only();
  if (row < 0) return;
  const fs::path run = shared().runs.path_of(row);
  const auto had =
      static_cast<int>(std::min<int64_t>(steps_in(shared().runs.record_of(row)), 1'000'000'000));
  inline_->ask_number(tr("%1 has had %2 steps. Further steps:")
                          .arg(isolated(run_name(run)), QLocale().toString(had)),
                      std::max(1, had / 2), tr("Extend"), [this, run, had](int more) {
                        shared().launcher.resume(
                            run, {QStringLiteral("--max-steps=%1").arg(qlonglong{had} + more)});
                      });
}

void RunsPage::clone() {
  const int row = only();
  if (row < 0) return;
  const fs::path run = shared().runs.path_of(row);
  config::Config settings;
  if (const auto trouble = trouble_of([&] { settings = settings_of(run); }))
    return inline_->tell(*trouble);
  emit shared().navigator.new_run_wanted(settings);
}

void RunsPage::ask_delete() {
  const std::vector<fs::path> runs = paths_of(selected());
  if (runs.empty()) return;
  inline_->ask(tr("Move %1 to the trash, with all checkpoints?").arg(names_of(runs)),
               tr("Move to trash"), [this, runs] { move_to_trash(runs); });
}

void RunsPage::move_to_trash(const std::vector<fs::path>& runs) {
  const auto left = std::make_shared<std::vector<fs::path>>();
  do_beside(
      [runs = not_starting(runs), left] {
        for (const fs::path& run : runs) {
          // Somebody may have gone on with it.
          if (is_there(run) && may_delete(run) && !QFile::moveToTrash(path_text(run)))
            left->push_back(run);
        }
        return QString();
      },
      [this, runs, left](const QString&) {
        for (const fs::path& run : not_starting(runs))
          if (!is_there(run)) shared().runs.forget(run);
        if (left->empty()) return;
        inline_->ask(tr("There is no trash for %1. Delete for good?").arg(names_of(*left)),
                     tr("Delete for good"), [this, left] { delete_for_good(*left); });
      });
}

std::vector<fs::path> RunsPage::not_starting(std::vector<fs::path> runs) {
  std::erase_if(runs, [this](const fs::path& run) { return shared().launcher.is_starting(run); });
  return runs;
}

void RunsPage::delete_for_good(const std::vector<fs::path>& runs) {
  do_beside(
      [runs = not_starting(runs)] {
        for (const fs::path& run : runs)
          if (may_delete(run)) fs::remove_all(run);
        return QString();
      },
      [this, runs](const QString&) {
        for (const fs::path& run : not_starting(runs))
          if (!is_there(run)) shared().runs.forget(run);
      });
}

void RunsPage::write_report() {
  const int row = only();
  if (row < 0) return;
  const fs::path run = shared().runs.path_of(row), file = report_file(run);
  do_beside([run, file] { return path_text(service::write_run_report(run, file)); },
            [this](const QString& written) {
              inline_->tell(
                  tr("The report is written: %1").arg(isolated(written)), tr("Open folder"),
                  [written] {
                    QDesktopServices::openUrl(QUrl::fromLocalFile(QFileInfo(written).path()));
                  });
            });
}

void RunsPage::do_beside(std::function<QString()> work, std::function<void(const QString&)> then) {
  if (is_busy_) return inline_->tell(tr("Something is being written"));
  is_busy_ = true;
  allow_actions();
  work_ = std::jthread([this, work = std::move(work), then = std::move(then)] {
    QString result;
    const auto trouble = trouble_of([&] { result = work(); });
    QMetaObject::invokeMethod(
        this,
        [this, result, trouble, then] {
          is_busy_ = false;
          if (trouble)
            inline_->tell(*trouble);
          else
            then(result);
          show_state();
        },
        Qt::QueuedConnection);
  });
}

}  // namespace ferry::gui
