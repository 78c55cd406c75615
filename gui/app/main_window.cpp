#include "gui/app/main_window.h"

#include <QAbstractSpinBox>
#include <QAction>
#include <QApplication>
#include <QCloseEvent>
#include <QComboBox>
#include <QDesktopServices>
#include <QHBoxLayout>
#include <QListWidget>
#include <QMenuBar>
#include <QMessageBox>
#include <QPushButton>
#include <QScreen>
#include <QScrollArea>
#include <QSlider>
#include <QStackedWidget>
#include <QStatusBar>
#include <QStyledItemDelegate>
#include <QTimer>

#include "gui/app/palette.h"
#include "gui/models/plan/plan_picture.h"
#include "gui/models/runs/run_words.h"
#include "gui/models/text.h"
#include "gui/pages/compare/compare_page.h"
#include "gui/pages/doctor/doctor_page.h"
#include "gui/pages/export/export_page.h"
#include "gui/pages/live/live_page.h"
#include "gui/pages/new_run/new_run_page.h"
#include "gui/pages/runs/runs_page.h"
#include "gui/pages/samples/samples_page.h"
#include "gui/pages/settings/settings_page.h"
#include "gui/pages/start/start_page.h"
#include "gui/pages/try_it/try_it_page.h"
#include "gui/widgets/data/data_preview.h"
#include "gui/widgets/forms/wheel_guard.h"
#include "gui/widgets/icons.h"
#include "gui/widgets/look.h"
#include "gui/widgets/plan/plan_view.h"

namespace ferry::gui {

namespace {

constexpr int kSaidMs = 8000;
constexpr QSize kFirstSize(1180, 780);

/** Rows of a list that is a menu: room around each name. */
class RoomyDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const QSize size = QStyledItemDelegate::sizeHint(option, index);
    const int unit = option.fontMetrics.height();
    return {size.width() + unit, size.height() + unit * 3 / 4};
  }
};

}  // namespace

MainWindow::MainWindow(AppSettings& settings, QWidget* parent)
    : QMainWindow(parent),
      settings_(settings),
      runs_(settings_, launcher_),
      queue_(settings_, launcher_, runs_),
      keeper_(settings_,
              RunKeeper::this_machine(runs_, requests_, [this] { return queue_.is_ours(); })),
      notices_(settings_, runs_),
      shared_{settings_, launcher_, navigator_, runs_, queue_} {
  setWindowTitle(QStringLiteral("Ferry"));
  setObjectName("main_window");
  make_pages();
  make_menus();
  connect_navigator();
  guard_wheels();
  statusBar()->setSizeGripEnabled(true);
  auto* const load = quiet_label();
  load->setObjectName("host_load");
  load->setAccessibleName(tr("Load of this machine"));
  statusBar()->addPermanentWidget(load);
  connect(&host_load_, &HostLoadWatch::changed, load,
          [this, load] { load->setText(load_in_words(host_load_.load())); });
  const QVariant geometry = settings_.value("window/geometry");
  const bool is_restored = geometry.isValid() && restoreGeometry(geometry.toByteArray());
  // The screen may be smaller than the window was when it was last closed.
  resize((is_restored ? size() : kFirstSize).boundedTo(room_on_screen()));
  connect(&settings_, &AppSettings::changed, this, [this, shown = settings_.theme()]() mutable {
    // Pages keep many settings: only another theme is worth painting all of the app anew.
    if (settings_.theme() != shown) apply_theme(shown = settings_.theme());
  });
  show_page(settings_.has_seen_start() ? PageId::runs : PageId::start);
}

QSize MainWindow::room_on_screen() const {
  // The frame is not known before the window is shown: a title bar is about two lines high.
  const int line = fontMetrics().height();
  return screen()->availableSize() - QSize(line, 3 * line);
}

void MainWindow::make_pages() {
  list_ = new QListWidget;
  list_->setObjectName("pages");
  list_->setAccessibleName(tr("Pages"));
  list_->setFrameShape(QFrame::NoFrame);
  list_->setItemDelegate(new RoomyDelegate(list_));
  // Set apart from the page by its ground, which the palette has for just this.
  list_->viewport()->setBackgroundRole(QPalette::AlternateBase);
  list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  list_->setIconSize(QSize(1, 1) * (list_->fontMetrics().height() * 5 / 4));
  stack_ = new QStackedWidget;
  const auto add = [this](PageId id, const char* icon, const QString& name, Page* page) {
    pages_[static_cast<size_t>(id)] = page;
    page->setObjectName("page_" + QString::number(static_cast<int>(id)));
    page->setAccessibleName(name);
    list_->addItem(new QListWidgetItem(line_icon(icon), name));
    // A page that does not fit the window is scrolled: it never makes the window larger.
    auto* const area = new QScrollArea;
    area->setWidgetResizable(true);
    area->setFrameShape(QFrame::NoFrame);
    area->setFocusPolicy(Qt::ClickFocus);
    area->setWidget(page);
    stack_->addWidget(area);
  };
  add(PageId::start, "start", tr("Start"), new StartPage(shared_));
  add(PageId::runs, "runs", tr("Runs"), new RunsPage(shared_));
  add(PageId::new_run, "new_run", tr("New run"), new_run_ = new NewRunPage(shared_));
  add(PageId::live, "live", tr("Live"), live_ = new LivePage(shared_));
  add(PageId::samples, "samples", tr("Samples"), samples_ = new SamplesPage(shared_));
  add(PageId::compare, "compare", tr("Compare"), compare_ = new ComparePage(shared_));
  add(PageId::try_it, "try", tr("Try it"), try_ = new TryItPage(shared_));
  add(PageId::export_model, "export", tr("Export"), export_ = new ExportPage(shared_));
  add(PageId::doctor, "doctor", tr("Doctor"), new DoctorPage(shared_));
  add(PageId::settings, "settings", tr("Settings"), new SettingsPage(shared_));
  list_->setFixedWidth(list_->sizeHintForColumn(0));
  connect(list_, &QListWidget::currentRowChanged, this, [this](int row) {
    if (row >= 0) show_page(static_cast<PageId>(row));
  });

  auto* centre = new QWidget;
  auto* row = new QHBoxLayout(centre);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(0);
  row->addWidget(list_);
  row->addWidget(stack_, 1);
  setCentralWidget(centre);
}

void MainWindow::make_menus() {
  QMenu* file = menuBar()->addMenu(tr("&File"));
  QAction* new_run = file->addAction(tr("&New run"), QKeySequence::New, this,
                                     [this] { show_page(PageId::new_run); });
  new_run->setObjectName("action_new_run");
  file->addSeparator();
  file->addAction(tr("&Settings"), this, [this] { show_page(PageId::settings); });
  file->addAction(tr("&Close window"), QKeySequence::Close, this, &QWidget::close);
  file->addAction(tr("&Quit"), QKeySequence::Quit, this, &QWidget::close);

  page_menu_ = menuBar()->addMenu(tr("&Actions"));

  QMenu* view = menuBar()->addMenu(tr("&View"));
  for (int i = 0; i < list_->count(); ++i)
    view->addAction(list_->item(i)->text(),
                    i < 9 ? QKeySequence(Qt::CTRL | static_cast<Qt::Key>(Qt::Key_1 + i))
                          : QKeySequence(Qt::CTRL | Qt::Key_Comma),
                    this, [this, i] { show_page(static_cast<PageId>(i)); });
  view->addSeparator();
  const auto add_zoom = [&](const char* name, const QString& text, const QList<QKeySequence>& keys,
                            std::function<int(int)> next) {
    QAction* action = view->addAction(text, this, [this, next] { zoom(next(settings_.zoom())); });
    action->setObjectName(name);
    action->setShortcuts(keys);
  };
  constexpr int kStep = 10;
  // "+" is Shift and "=" on many keyboards.
  add_zoom("action_zoom_in", tr("&Larger text"),
           {QKeySequence::ZoomIn, QKeySequence(Qt::CTRL | Qt::Key_Equal)},
           [](int now) { return now + kStep; });
  add_zoom("action_zoom_out", tr("S&maller text"), {QKeySequence::ZoomOut},
           [](int now) { return now - kStep; });
  add_zoom("action_zoom_reset", tr("&Usual text"), {QKeySequence(Qt::CTRL | Qt::Key_0)},
           [](int) { return 100; });
  view->addSeparator();
  QAction* full = view->addAction(tr("&Full screen"), QKeySequence::FullScreen, this,
                                  [this] { setWindowState(windowState() ^ Qt::WindowFullScreen); });
  full->setObjectName("action_full_screen");

  QMenu* help = menuBar()->addMenu(tr("&Help"));
  help->addAction(tr("&Check this machine"), QKeySequence::HelpContents, this,
                  [this] { show_page(PageId::doctor); });
  help->addAction(tr("&About Ferry"), this, [this] {
    QMessageBox::about(this, tr("About Ferry"),
                       tr("<b>Ferry %1</b><p>Trains transformers on a GPU that is too small for "
                          "them.</p><p>This app is free software under the GNU General Public "
                          "License, version 3: it draws charts with QCustomPlot. Ferry itself is "
                          "under the Apache License 2.0.</p>")
                           .arg(QApplication::applicationVersion()));
  });
}

void MainWindow::connect_navigator() {
  connect(&navigator_, &Navigator::page_wanted, this, &MainWindow::show_page);
  connect(&navigator_, &Navigator::said, this, &MainWindow::say);
  connect(&navigator_, &Navigator::live_wanted, this, [this](const std::filesystem::path& run) {
    live_->show_run(run);
    show_page(PageId::live);
  });
  connect(&navigator_, &Navigator::samples_wanted, this, [this](const std::filesystem::path& run) {
    samples_->show_run(run);
    show_page(PageId::samples);
  });
  connect(&navigator_, &Navigator::try_wanted, this, [this](const std::filesystem::path& run) {
    try_->show_run(run);
    show_page(PageId::try_it);
  });
  connect(&navigator_, &Navigator::export_wanted, this, [this](const std::filesystem::path& run) {
    export_->show_run(run);
    show_page(PageId::export_model);
  });
  connect(&navigator_, &Navigator::compare_wanted, this,
          [this](const std::vector<std::filesystem::path>& runs) {
            compare_->show_runs(runs);
            show_page(PageId::compare);
          });
  connect(&navigator_, &Navigator::new_run_wanted, this, [this](const config::Config& settings) {
    new_run_->begin(settings);
    show_page(PageId::new_run);
  });
  connect(new_run_, &NewRunPage::queue_wanted, this, [this](const config::Config& settings) {
    if (const auto trouble = queue_.add(settings, {})) return say(*trouble);
    say(tr("In the queue: it starts when no other run trains, once the queue is on."));
  });
  auto* preview = new DataPreview;
  auto* plan = new PlanView;
  new_run_->set_preview(preview);
  new_run_->set_plan_view(plan);
  connect(new_run_, &NewRunPage::settings_changed, preview, &DataPreview::set_settings);
  connect(new_run_, &NewRunPage::unsettled, preview, &DataPreview::show_missing);
  connect(new_run_, &NewRunPage::unsettled, plan, &PlanView::show_missing);
  preview->set_says_trouble(false);
  connect(preview, &DataPreview::trouble_changed, this,
          [this](const QString& what) { new_run_->settings().set_data_problem(what); });
  connect(new_run_, &NewRunPage::settings_changed, plan,
          [this, plan](const config::Config& settings) {
            what_if_.set_run(settings);
            show_plan(*plan);
          });
  connect(plan, &PlanView::change_wanted, this,
          [this, plan](const QString& key, const QString& value) {
            // A run trains where it is started: with another card the plan alone changes.
            if (key == "machine")
              what_if_.set_machine(value);
            else if (what_if_.is_elsewhere())
              what_if_.change(key, value);
            else
              return new_run_->settings().choose(key, value);
            show_plan(*plan);
          });
  connect(plan, &PlanView::take_over_wanted, this, [this] {
    const auto changes = what_if_.changes();
    for (const auto& [key, value] : changes)
      new_run_->settings().choose(key, value);
  });
  connect(plan, &PlanView::planned, this, [this, plan](bool fits) {
    if (!what_if_.is_elsewhere())
      new_run_->set_plan_verdict(fits, plan->summary().section('\n', 0, 0));
  });
  connect(&plan_here_, &PlanThread::answered, this,
          [this](const std::shared_ptr<const PlanOutcome>& outcome) {
            if (!what_if_.is_elsewhere()) return;
            const PlanPicture picture(*outcome);
            new_run_->set_plan_verdict(
                outcome->answer && outcome->answer->fits(),
                tr("This machine: %1").arg(outcome->answer ? picture.verdict_word : picture.why));
          });
  connect(&keeper_, &RunKeeper::changed, &queue_, &RunQueue::status_changed);
  queue_.set_gate([this] { return keeper_.why_not_now(); });
  connect(&keeper_, &RunKeeper::acted, this,
          [this](const std::filesystem::path&, const QString& text) { say(text); });
  connect(&notices_, &RunNotices::happened, this, &MainWindow::say);
  connect(&notices_, &RunNotices::chosen, this, [this](const std::filesystem::path& run) {
    emit navigator_.live_wanted(run);
    activateWindow();
  });
  connect(&launcher_, &Launcher::failed, this,
          [this](const std::filesystem::path&, const QString& message, const QString&) {
            say(message.section('\n', -1));
          });
}

void MainWindow::show_plan(PlanView& plan) {
  if (!what_if_.has_run()) return;
  plan.set_settings(what_if_.planned());
  plan.show_what_if(what_if_.is_elsewhere(), !what_if_.changes().empty());
  if (what_if_.is_elsewhere()) plan_here_.ask(what_if_.here());
}

void MainWindow::guard_wheels() {
  // Whoever scrolls a page does not mean what happens to lie under the pointer.
  for (QWidget* widget : stack_->findChildren<QWidget*>())
    if (qobject_cast<QComboBox*>(widget) || qobject_cast<QAbstractSpinBox*>(widget) ||
        qobject_cast<QSlider*>(widget))
      guard_wheel(widget);
}

void MainWindow::show_page(PageId id) {
  const int row = static_cast<int>(id);
  if (stack_->currentIndex() != row || !page_menu_->isEnabled()) {
    for (Page* page : pages_)
      page->set_active(false);
    stack_->setCurrentIndex(row);
  }
  list_->setCurrentRow(row);
  if (isVisible()) page(id).set_active(true);
  fill_page_menu();
}

PageId MainWindow::current_page() const {
  return static_cast<PageId>(stack_->currentIndex());
}

void MainWindow::fill_page_menu() {
  page_menu_->clear();
  const QList<QAction*> actions = page(current_page()).page_actions();
  page_menu_->addActions(actions);
  page_menu_->menuAction()->setVisible(!actions.isEmpty());
}

void MainWindow::say(const QString& text) {
  statusBar()->showMessage(text, kSaidMs);
}

void MainWindow::zoom(int percent) {
  settings_.set_zoom(percent);
  apply_zoom(settings_.zoom());
  list_->setFixedWidth(list_->sizeHintForColumn(0));
  say(tr("Text size: %1 %").arg(settings_.zoom()));
}

QStringList MainWindow::left_behind() {
  QStringList left;
  const auto paused = keeper_.paused();
  if (!paused.empty()) {
    QStringList names;
    for (const auto& run : paused)
      names << isolated(run_name(run));
    left << tr("%n run(s) stay paused until an app is open again: %1.", nullptr,
               static_cast<int>(names.size()))
                .arg(listed(names));
  }
  if (queue_.is_ours() && settings_.is_queue_on() && queue_.rowCount() > 0)
    left << tr("The queue starts none of its %n run(s).", nullptr, queue_.rowCount());
  const bool has_runs = !runs_.running().empty();
  if (has_runs && queue_.is_ours() && settings_.has_run_hours())
    left << tr("Runs train outside the run hours, too.");
  if (has_runs && queue_.is_ours() && settings_.yields())
    left << tr("Runs do not make way for other programs on the GPU.");
  return left;
}

void MainWindow::ask_to_leave(const QStringList& left) {
  if (auto* const asked = findChild<QMessageBox*>("leave_question")) return asked->raise();
  auto* const box = new QMessageBox(QMessageBox::Question, tr("Close Ferry?"),
                                    tr("While no Ferry app is open:"), QMessageBox::NoButton, this);
  box->setObjectName("leave_question");
  box->setAttribute(Qt::WA_DeleteOnClose);
  box->setTextFormat(Qt::PlainText);
  box->setInformativeText(QStringLiteral("• ") + left.join(QStringLiteral("\n• ")));
  auto* const leave = box->addButton(tr("C&lose"), QMessageBox::AcceptRole);
  auto* const resume = keeper_.paused().empty()
                           ? nullptr
                           : box->addButton(tr("&Resume them and close"), QMessageBox::AcceptRole);
  box->setDefaultButton(box->addButton(tr("&Stay"), QMessageBox::RejectRole));
  connect(box, &QMessageBox::buttonClicked, this, [this, leave, resume](QAbstractButton* chosen) {
    if (chosen != leave && chosen != resume) return;
    is_leaving_ = true;
    if (chosen == leave) return void(close());
    for (const auto& run : keeper_.paused())
      requests_.resume(run);
    // The requests are on their way once the event loop has turned.
    constexpr int kSentMs = 500;
    QTimer::singleShot(kSentMs, this, &QWidget::close);
  });
  box->open();
}

void MainWindow::closeEvent(QCloseEvent* event) {
  // Runs are processes of their own: nothing ends with the window. What the app does for them does.
  if (const QStringList left = left_behind(); !is_leaving_ && !left.isEmpty()) {
    event->ignore();
    return ask_to_leave(left);
  }
  settings_.set_value("window/geometry", saveGeometry());
  event->accept();
}

void MainWindow::showEvent(QShowEvent* event) {
  QMainWindow::showEvent(event);
  host_load_.set_active(true);
}

void MainWindow::changeEvent(QEvent* event) {
  QMainWindow::changeEvent(event);
  if (event->type() != QEvent::WindowStateChange || !stack_) return;
  page(current_page()).set_active(isVisible() && !isMinimized());
  host_load_.set_active(isVisible() && !isMinimized());
}

}  // namespace ferry::gui
