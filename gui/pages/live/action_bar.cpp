#include "gui/pages/live/action_bar.h"

#include <QAction>
#include <QHBoxLayout>
#include <QMenu>
#include <QToolButton>
#include <algorithm>

#include "gui/models/runs/run_progress.h"
#include "gui/models/service_words.h"
#include "gui/models/text.h"
#include "gui/widgets/icons.h"

namespace ferry::gui {

using service::RunAction;

ActionBar::ActionBar(QWidget* parent) : QWidget(parent) {
  QAction* const pause =
      add(RunAction::pause, tr("&Pause"),
          tr("Pauses the run and frees the GPU for other programs, a game for instance."), "pause");
  add(RunAction::resume, tr("&Resume"), tr("Continues the paused run where it was."), "resume");
  QAction* const save = add(RunAction::save_now, tr("Sa&ve now"),
                            tr("Writes a checkpoint now. The training continues."), "save_now");
  QAction* const sample =
      add(RunAction::sample_now, tr("Sam&ple now"),
          tr("Continues the run's prompts now. The training waits meanwhile."), "sample_now");
  QAction* const stop = add(RunAction::stop, tr("S&top and save"),
                            tr("Writes a checkpoint and ends the run. It can be resumed."), "stop");
  QAction* const unsaved =
      add(RunAction::stop_without_saving, tr("Stop &without saving"),
          tr("Ends the run. What came after the last checkpoint is lost."), "stop_without_saving");
  QAction* const force =
      add(RunAction::force_quit, tr("&Force quit"),
          tr("Kills the process of a run that does not stop. What came after the last checkpoint "
             "is lost."),
          "force_quit");
  QAction* const again =
      add(RunAction::resume_run, tr("&Resume"),
          tr("Starts a new process that continues from the last checkpoint."), "resume_run");
  for (const auto& [action, icon] : {std::pair{pause, "pause"}, {save, "save"}, {again, "resume"}})
    action->setIcon(line_icon(icon));
  this->action(RunAction::resume)->setIcon(line_icon("resume"));
  pause->setShortcut(Qt::CTRL | Qt::Key_P);
  save->setShortcut(Qt::CTRL | Qt::SHIFT | Qt::Key_S);
  stop->setShortcut(Qt::CTRL | Qt::Key_Period);

  pause_ = button("pause_button");
  // As wide as the wider of its two: the buttons beside it stay where they are.
  pause_->setDefaultAction(this->action(RunAction::resume));
  pause_->setMinimumWidth(pause_->sizeHint().width());
  pause_->removeAction(pause_->defaultAction());
  pause_->setDefaultAction(pause);
  pause_->setMinimumWidth(std::max(pause_->minimumWidth(), pause_->sizeHint().width()));
  save_ = button("save_button");
  save_->setDefaultAction(save);
  sample_ = button("sample_button");
  sample_->setDefaultAction(sample);
  stop_ = button("stop_button");
  auto* const menu = new QMenu(stop_);
  menu->addActions({stop, unsaved, force});
  menu->setToolTipsVisible(true);
  stop_->setText(tr("&Stop"));
  stop_->setIcon(line_icon("stop"));
  stop_->setAccessibleName(tr("Stop the run"));
  stop_->setMenu(menu);
  stop_->setPopupMode(QToolButton::InstantPopup);
  force_ = button("force_quit_button");
  force_->setDefaultAction(force);
  resume_ = button("resume_run_button");
  resume_->setDefaultAction(again);

  auto* const row = new QHBoxLayout(this);
  row->setContentsMargins({});
  for (QToolButton* const each : {pause_, save_, sample_, stop_, force_, resume_})
    row->addWidget(each);
  show_run({}, false);
}

QAction* ActionBar::add(RunAction action,
                        const QString& text,
                        const QString& tip,
                        const char* name) {
  auto* const made = new QAction(text, this);
  made->setObjectName(QStringLiteral("action_") + QLatin1String(name));
  actions_[static_cast<size_t>(action)] = made;
  tips_[static_cast<size_t>(action)] = tip;
  addAction(made);
  connect(made, &QAction::triggered, this, [this, action] { emit wanted(action); });
  return made;
}

QToolButton* ActionBar::button(const char* name) {
  auto* const made = new QToolButton;
  made->setObjectName(name);
  made->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  made->setFocusPolicy(Qt::StrongFocus);
  const int room = fontMetrics().height() / 2;
  made->setMinimumHeight(fontMetrics().height() + 2 * room);
  return made;
}

QList<QAction*> ActionBar::all_actions() const {
  QList<QAction*> all;
  for (QAction* const each : actions_)
    if (each) all << each;
  return all;
}

void ActionBar::show_run(const service::RunFacts& facts, bool is_starting) {
  const service::AllowedActions allowed = service::allowed_actions(facts);
  for (size_t i = 0; i < service::kRunActions; ++i) {
    if (!actions_[i]) continue;
    QString why = service_words(to_text(allowed.why_not(static_cast<RunAction>(i))));
    if (why.isEmpty() && is_starting && static_cast<RunAction>(i) == RunAction::resume_run)
      why = tr("a new process is being started");
    actions_[i]->setEnabled(why.isEmpty());
    QString tip = tips_[i];
    if (!why.isEmpty()) tip = tr("%1 Not now: %2.").arg(tips_[i], why);
    if (!actions_[i]->shortcut().isEmpty())
      tip = tr("%1 (%2)").arg(tip,
                              isolated(actions_[i]->shortcut().toString(QKeySequence::NativeText)));
    actions_[i]->setToolTip(tip);
    actions_[i]->setStatusTip(tip);
  }
  // One key for both, whichever is meant.
  const bool is_paused = facts.phase == "paused";
  QAction* const pause = action(RunAction::pause);
  QAction* const resume = action(RunAction::resume);
  QAction* const shown = is_paused ? resume : pause;
  if (pause_->defaultAction() != shown) {
    const QKeySequence key = Qt::CTRL | Qt::Key_P;
    (is_paused ? pause : resume)->setShortcut({});
    shown->setShortcut(key);
    pause_->removeAction(pause_->defaultAction());
    pause_->setDefaultAction(shown);
  }
  const bool has_process = facts.trainer != service::Trainer::none;
  const bool is_over = has_ended(facts.phase) && !has_process;
  for (QToolButton* const each : {pause_, save_, stop_})
    each->setVisible(!is_over);
  sample_->setVisible(!is_over && facts.has_prompts);
  resume_->setVisible(!has_process);
  force_->setVisible(action(RunAction::force_quit)->isEnabled());
  const bool may_stop = action(RunAction::stop)->isEnabled() ||
                        action(RunAction::stop_without_saving)->isEnabled() ||
                        action(RunAction::force_quit)->isEnabled();
  stop_->setEnabled(may_stop);
  stop_->setToolTip(may_stop ? tr("Ends the run: with a checkpoint, or without.")
                             : action(RunAction::stop)->toolTip());
}

}  // namespace ferry::gui
