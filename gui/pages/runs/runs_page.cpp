#include "gui/pages/runs/runs_page.h"

#include <QtWidgets>
#include <nlohmann/json.hpp>

#include "gui/models/runs/run_details.h"
#include "gui/models/runs/run_filter.h"
#include "gui/models/runs/run_words.h"
#include "gui/models/service_words.h"
#include "gui/models/settings/option_text.h"
#include "gui/models/text.h"
#include "gui/pages/runs/inline_bar.h"
#include "gui/pages/runs/queue_section.h"
#include "gui/pages/runs/run_delegates.h"
#include "gui/widgets/column_fit.h"
#include "gui/widgets/icons.h"
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

}  // namespace

RunsPage::RunsPage(Shared& shared, QWidget* parent)
    : Page(shared, parent), filter_(new RunFilter(shared.runs, this)) {
  make_actions();
  bar_ = new QToolBar;
  bar_->setObjectName("run_actions");
  bar_->setAccessibleName(tr("Actions for the selected runs"));
  bar_->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  bar_->setIconSize(QSize(1, 1) * fontMetrics().height());
  const auto add_button = [this](QWidget* button) {
    button->setFocusPolicy(Qt::TabFocus);
    qobject_cast<QToolButton*>(button)->setAutoRaise(false);
  };
  for (QAction* action : {open_, pause_, resume_, stop_, compare_, try_, export_, delete_}) {
    bar_->addAction(action);
    add_button(bar_->widgetForAction(action));
  }
  auto* const more = new QToolButton;
  more->setObjectName("more_actions");
  more->setIcon(line_icon("more"));
  more->setText(tr("More"));
  more->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  more->setPopupMode(QToolButton::InstantPopup);
  auto* const menu = new QMenu(more);
  menu->addActions({extend_, clone_, samples_, folder_, report_});
  more->setMenu(menu);
  add_button(more);
  bar_->addWidget(more);
  inline_ = new InlineBar;
  gate_ = new TextLabel;
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
  column->addWidget(stack_, 1);
  // Below the table: a question or a notice that comes or goes moves none of its rows.
  column->addWidget(gate_);
  column->addWidget(inline_);
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
            const QString said =
                tr("%1: %2", "run and reply")
                    .arg(isolated(run_name(run)), message_of(service_words(text)).text);
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
  if (!active) keep_columns();
  if (active) show_state();
}

/** The columns as the user left them, with their order and the widths that were dragged. */
void RunsPage::keep_columns() {
  const QHeaderView& header = *table_->horizontalHeader();
  if (header.sectionsMoved()) shared().settings.set_value(kOwnColumns, header.saveState());
  QVariantList widths;
  for (const int width : columns_->chosen_widths())
    widths << width;
  if (!widths.isEmpty()) shared().settings.set_value(kOwnWidths, widths);
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
      why = sentence(
          service_words(to_text(allowed.why_not(has_ended ? *(any.end() - 1) : *any.begin()))));
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
    text = QStringLiteral("<p dir='%3'><b>%1</b> &nbsp; %2</p><table cellpadding='1'>")
               .arg(isolated(run_name(runs.path_of(row))).toHtmlEscaped(), state.toHtmlEscaped(),
                    words_run_from_right() ? QStringLiteral("rtl") : QStringLiteral("ltr"));
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
  QGuiApplication::clipboard()->setText(without_isolates(lines.join('\n')));
}

}  // namespace ferry::gui
