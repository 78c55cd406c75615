#include "gui/pages/live/live_page.h"

#include <QAction>
#include <QApplication>
#include <QDesktopServices>
#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QPushButton>
#include <QSplitter>
#include <QStackedLayout>
#include <QStyle>
#include <QToolButton>
#include <QUrl>
#include <QVBoxLayout>
#include <nlohmann/json.hpp>

#include "gui/models/runs/run_progress.h"
#include "gui/models/runs/run_words.h"
#include "gui/models/service_words.h"
#include "gui/models/settings/option_text.h"
#include "gui/models/text.h"
#include "gui/pages/live/action_bar.h"
#include "gui/pages/live/live_charts.h"
#include "gui/pages/live/run_header.h"
#include "gui/pages/live/setting_change.h"
#include "gui/widgets/charts/smoothing_box.h"
#include "gui/widgets/look.h"
#include "gui/widgets/notice.h"
#include "gui/widgets/runs/log_pane.h"
#include "gui/widgets/runs/run_chooser.h"

namespace ferry::gui {

namespace fs = std::filesystem;
using service::RunAction;

LivePage::LivePage(Shared& shared, QWidget* parent) : Page(shared, parent) {
  stack_ = new QStackedLayout(this);
  auto* const choose = new QWidget;
  picker_ = new RunChooser(shared.runs, tr("Choose a run to watch"), tr("&Watch"), 1);
  auto* const new_run = new QPushButton(tr("&New run"));
  new_run->setObjectName("picker_new_run");
  auto* const column = new QVBoxLayout(choose);
  column->setContentsMargins(kPageMargin, kPageMargin, kPageMargin, kPageMargin);
  column->addWidget(picker_);
  picker_->add_button(new_run);
  stack_->addWidget(choose);
  make_run_page();
  stack_->addWidget(run_page_);
  connect(new_run, &QPushButton::clicked, this,
          [this] { emit this->shared().navigator.page_wanted(PageId::new_run); });
  connect(picker_, &RunChooser::chosen, this,
          [this](const std::vector<fs::path>& runs) { show_run(runs.front()); });
  connect(&shared.launcher, &Launcher::started, this, [this](const fs::path& run) {
    if (!follower_ || run != follower_->run()) return;
    start_trouble_.clear();
    show_state();
  });
  connect(&shared.launcher, &Launcher::doing_changed, this, [this](const fs::path& run) {
    if (follower_ && run == follower_->run()) show_state();
  });
  connect(&shared.launcher, &Launcher::failed, this,
          [this](const fs::path& run, const QString& message, const QString&) {
            if (!follower_ || run != follower_->run()) return;
            start_trouble_ = message;
            show_state();
          });
  connect(&gpu_, &GpuLoadWatch::changed, this, [this] {
    QStringList lines;
    const auto& loads = gpu_.loads();
    for (size_t i = 0; i < loads.size(); ++i)
      lines << (loads.size() > 1 ? tr("GPU %1: %2").arg(i).arg(load_in_words(loads[i]))
                                 : tr("GPU: %1").arg(load_in_words(loads[i])));
    header_->show_gpu(lines.join('\n'));
  });
}

LivePage::~LivePage() {
  charts_->show_run(nullptr, {});
}

void LivePage::make_run_page() {
  run_page_ = new QWidget;
  header_ = new RunHeader;
  actions_ = new ActionBar;
  change_ = new SettingChange;
  notice_ = new Notice;
  notice_->setObjectName("live_notice");
  answer_ = new TextLabel;
  answer_->setObjectName("answer");
  answer_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  smoothing_ = new SmoothingBox;
  charts_ = new LiveCharts(shared().settings);
  log_ = new LogPane;
  const auto link = [](const QString& text, const char* name) {
    auto* const button = new QToolButton;
    button->setText(text);
    button->setObjectName(name);
    button->setFocusPolicy(Qt::StrongFocus);
    button->setMinimumHeight(2 * button->fontMetrics().height());
    return button;
  };
  try_button_ = link(tr("Tr&y it"), "try_button");
  try_button_->setToolTip(tr("Asks the trained model about a text"));
  export_button_ = link(tr("&Export"), "export_button");
  export_button_->setToolTip(tr("Writes the trained model for other programs"));
  auto* const choose = new QToolButton;
  choose->setObjectName("choose_charts");
  choose->setText(tr("&Charts"));
  choose->setToolTip(tr("Chooses which charts are shown"));
  choose->setPopupMode(QToolButton::InstantPopup);
  choose->setMenu(charts_->menu());
  choose->setFocusPolicy(Qt::StrongFocus);

  other_run_ = new QAction(tr("&Watch another run…"), this);
  other_run_->setObjectName("action_other_run");
  open_folder_ = new QAction(tr("&Open the run's folder"), this);
  open_folder_->setObjectName("action_open_folder");
  auto* const other = new QToolButton;
  other->setObjectName("other_run_button");
  other->setDefaultAction(other_run_);
  other->setFocusPolicy(Qt::StrongFocus);

  auto* const steer = new QHBoxLayout;
  steer->addWidget(actions_);
  steer->addWidget(try_button_);
  steer->addWidget(export_button_);
  steer->addWidget(answer_, 1);
  steer->addWidget(change_);
  auto* const looks = new QHBoxLayout;
  // Room is kept for a notice: one that comes or goes moves nothing.
  notice_->keep_room();
  looks->addWidget(notice_, 1);
  looks->addWidget(smoothing_);
  looks->addWidget(choose);
  looks->addWidget(other);
  splitter_ = new QSplitter(Qt::Vertical);
  splitter_->addWidget(charts_);
  splitter_->addWidget(log_);
  splitter_->setStretchFactor(0, 4);
  splitter_->setStretchFactor(1, 1);
  splitter_->setCollapsible(0, false);
  splitter_->setSizes({31 * fontMetrics().height(), 10 * fontMetrics().height()});
  splitter_->setHandleWidth(2 * style()->pixelMetric(QStyle::PM_SplitterWidth));
  auto* const column = new QVBoxLayout(run_page_);
  column->setContentsMargins(kPageMargin, kPageMargin, kPageMargin, kPageMargin);
  column->setSpacing(10);
  column->addWidget(header_);
  column->addLayout(steer);
  column->addLayout(looks);
  column->addWidget(splitter_, 1);

  smoothing_->set_weight(shared().settings.value("live/smoothing", 0.9).toDouble());
  charts_->set_smoothing(smoothing_->weight());
  connect(smoothing_, &SmoothingBox::changed, this, [this](double weight) {
    charts_->set_smoothing(weight);
    shared().settings.set_value("live/smoothing", weight);
  });
  say_answer({});
  connect(actions_, &ActionBar::wanted, this, &LivePage::act);
  connect(change_, &SettingChange::wanted, this, [this](const QString& key, const QString& value) {
    if (follower_) follower_->set_setting(key, value);
  });
  connect(other_run_, &QAction::triggered, this, &LivePage::show_picker);
  connect(open_folder_, &QAction::triggered, this, [this] {
    if (follower_) QDesktopServices::openUrl(QUrl::fromLocalFile(path_text(follower_->run())));
  });
  connect(try_button_, &QToolButton::clicked, this, [this] {
    if (follower_) emit shared().navigator.try_wanted(follower_->run());
  });
  connect(export_button_, &QToolButton::clicked, this, [this] {
    if (follower_) emit shared().navigator.export_wanted(follower_->run());
  });
}

void LivePage::show_run(const fs::path& run) {
  stack_->setCurrentWidget(run_page_);
  if (follower_ && follower_->run() == run) return show_state();
  charts_->show_run(nullptr, {});  // before the metrics go that they show
  start_trouble_.clear();
  say_answer({});
  follower_ = std::make_unique<RunFollower>(run);
  header_->show_name(run);
  has_settings_ = change_->show_run(run);
  charts_->show_run(&follower_->metrics(), run);
  log_->show_log(follower_->log());
  connect_follower();
  follower_->set_active(is_active_);
  show_state();
  show_progress();
}

void LivePage::show_picker() {
  stack_->setCurrentIndex(0);
  shared().runs.refresh();
}

void LivePage::connect_follower() {
  RunFollower* const follower = follower_.get();
  connect(follower, &RunFollower::changed, this, &LivePage::show_state);
  connect(follower, &RunFollower::metrics_changed, this, [this](bool anew) {
    charts_->update_data(anew);
    show_progress();
  });
  connect(follower, &RunFollower::log_grown, log_, &LogPane::add);
  connect(follower, &RunFollower::log_anew, this, [this] { log_->show_log({}); });
  connect(follower, &RunFollower::replied, this, [this](bool is_done, const QString& text) {
    const QString said = message_of(service_words(text)).text;
    say_answer(is_done ? said : tr("! %1").arg(said));
  });
  connect(follower, &RunFollower::ended, this, &LivePage::note_end);
}

void LivePage::set_active(bool active) {
  is_active_ = active;
  gpu_.set_active(active);
  if (follower_) follower_->set_active(active);
  if (active && stack_->currentIndex() == 0) shared().runs.refresh();
}

QList<QAction*> LivePage::page_actions() {
  QList<QAction*> all = actions_->all_actions();
  return all << log_->find_action() << other_run_ << open_folder_;
}

QString LivePage::notice() const {
  return notice_->text();
}

QString LivePage::answer() const {
  return answer_->text();
}

void LivePage::say_answer(const QString& text) {
  answer_->setText(text);
  answer_->setAccessibleName(text.isEmpty() ? tr("Nothing was asked of the run")
                                            : tr("Answer of the run: %1").arg(text));
}

void LivePage::show_state() {
  if (!follower_) return;
  const service::RunFacts& facts = follower_->facts();
  const nlohmann::ordered_json& record = follower_->record();
  const bool is_starting = shared().launcher.is_starting(follower_->run());
  const bool is_gone = !is_there(follower_->run());
  // A run that starts has its files after a while.
  if (!has_settings_ && facts.phase != "unreadable")
    has_settings_ = change_->show_run(follower_->run());
  actions_->show_run(facts, is_starting);
  change_->show_state(facts, record);
  QString detail;
  const QString doing = shared().launcher.doing(follower_->run());
  if (is_starting)
    detail = doing.isEmpty() ? tr("a new process is being started") : doing;
  else if (facts.trainer == service::Trainer::elsewhere)
    detail = tr("on %1").arg(text_in(record, "host"));
  header_->show_state(is_starting ? "preparing" : facts.phase, detail);
  const bool has_model = facts.phase == "finished" && !is_gone;
  try_button_->setVisible(has_model);
  export_button_->setVisible(has_model);
  open_folder_->setEnabled(!is_gone);

  Notice::Kind kind = Notice::Kind::info;
  QString text;
  if (!start_trouble_.isEmpty() && !is_starting) {
    kind = Notice::Kind::warning;
    text = tr("It could not be started: %1").arg(start_trouble_);
  } else if (is_gone && !is_starting) {
    kind = Notice::Kind::warning;
    text =
        tr("The directory of this run is no longer there. What was read of it stays here until "
           "you choose another run.");
  } else if (facts.phase == "unreadable") {
    kind = is_starting ? Notice::Kind::info : Notice::Kind::warning;
    text = is_starting ? tr("It starts. Its first lines come in a moment.") : follower_->trouble();
  } else if (facts.phase == "paused") {
    const QString why = shared().queue.why_not_now();
    text =
        why.isEmpty()
            ? (uses_gpu(record, follower_->metrics())
                   ? tr("Paused: the GPU is free for other programs, a game for instance. Resume "
                        "continues the run where it was.")
                   : tr("Paused: the processor is free for other programs. The run keeps its "
                        "memory, and Resume continues it where it was."))
            : tr("Paused: %1. It is resumed by itself, or when you choose Resume.").arg(why);
  } else if (waits_for_room(facts)) {
    kind = Notice::Kind::warning;
    text =
        tr("It waits for room on the disk: all steps are done, and its end does not fit. Make "
           "room, and it finishes by itself.");
  } else if (facts.is_stop_overdue) {
    kind = Notice::Kind::warning;
    text =
        tr("It was asked to stop a minute ago and neither saves nor ends. Force quit kills its "
           "process; what came after the last checkpoint is lost.");
  } else {
    text = why_ended(record, facts, used_host_bytes(follower_->metrics()), read_host_room());
    if (!text.isEmpty() && facts.phase != "stopped") kind = Notice::Kind::warning;
    if (text.isEmpty() && facts.phase == "finished") {
      kind = Notice::Kind::good;
      const auto seconds = number_in(record, "actual", "training_seconds");
      text = seconds ? tr("Finished: trained for %1. The model is ready to try and to export.")
                           .arg(duration_text(*seconds))
                     : tr("Finished. The model is ready to try and to export.");
    }
    if (const QString trouble = follower_->trouble(); text.isEmpty() && !trouble.isEmpty()) {
      kind = Notice::Kind::warning;
      text = trouble;
    }
  }
  notice_->say(kind, text);
  if (follower_->is_waiting() && facts.trainer != service::Trainer::none)
    say_answer(tr("Asked; the run answers after its step."));
  show_progress();
}

void LivePage::show_progress() {
  if (!follower_) return;
  header_->show_progress(progress_of(follower_->record(), follower_->facts(), follower_->metrics()),
                         follower_->facts().phase);
}

void LivePage::act(RunAction action) {
  if (!follower_) return;
  switch (action) {
    case RunAction::pause:
      return follower_->pause();
    case RunAction::resume:
      return follower_->resume();
    case RunAction::save_now:
      return follower_->save_now();
    case RunAction::sample_now:
      return follower_->sample_now();
    case RunAction::stop:
      return follower_->stop();
    case RunAction::stop_without_saving:
      return follower_->stop_without_saving();
    case RunAction::force_quit:
      return follower_->force_quit();
    case RunAction::resume_run:
      if (!follower_->allowed().allows(action)) return;
      start_trouble_.clear();
      say_answer({});
      shared().launcher.resume(follower_->run());
      return show_state();
    default:
      return;
  }
}

void LivePage::note_end(const QString& phase) {
  // The answer to what was asked before says nothing of this end.
  if (run_group(phase.toStdString()) == RunGroup::failed) say_answer({});
}

}  // namespace ferry::gui
