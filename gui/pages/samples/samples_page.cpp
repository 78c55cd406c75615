#include "gui/pages/samples/samples_page.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QHeaderView>
#include <QPushButton>
#include <QSplitter>
#include <QStackedWidget>
#include <QTableView>
#include <QTextEdit>
#include <QVBoxLayout>

#include "gui/models/results/word_diff.h"
#include "gui/models/text.h"
#include "gui/widgets/column_fit.h"
#include "gui/widgets/look.h"
#include "gui/widgets/notice.h"
#include "gui/widgets/runs/run_picker.h"
#include "src/config/options/option.h"

namespace ferry::gui {

namespace {

constexpr int kLookMs = 1000;

QTextEdit* make_text(const char* name, const QString& accessible) {
  auto* text = new QTextEdit;
  text->setObjectName(name);
  text->setAccessibleName(accessible);
  text->setReadOnly(true);
  text->setTabChangesFocus(true);
  return text;
}

/** The name of a setting in the forms. */
QString label_of(const char* key) {
  const config::Option* option = config::find_option(key).option;
  return option ? to_text(option->label) : QString::fromLatin1(key);
}

/** The parts that the other text lacks are marked, and underlined. */
void show_parts(QTextEdit& edit,
                const QPalette& palette,
                const QString& prompt,
                const std::vector<DiffPart>& parts) {
  edit.clear();
  QTextCursor cursor(edit.document());
  QTextCharFormat quiet, marked;
  quiet.setForeground(palette.color(QPalette::PlaceholderText));
  marked.setBackground(mark_colour(palette));
  marked.setFontUnderline(true);
  cursor.insertText(prompt, quiet);
  for (const DiffPart& part : parts)
    cursor.insertText(part.text, part.is_other ? marked : QTextCharFormat());
  edit.moveCursor(QTextCursor::Start);
}

}  // namespace

SamplesPage::SamplesPage(Shared& shared, QWidget* parent) : Page(shared, parent) {
  auto* column = new QVBoxLayout(this);
  message_ = new Notice;
  message_->setObjectName("message");
  column->addLayout(
      title_with(tr("Samples"), tr("What the model wrote as it learned."), *message_));
  picker_ = new RunPicker(shared.runs, shared.settings, RunPicker::For::run);
  column->addWidget(picker_);

  auto* split = new QSplitter(Qt::Vertical);
  split->setChildrenCollapsible(false);
  split->addWidget(make_grid());
  split->addWidget(make_texts());
  split->setStretchFactor(0, 3);
  split->setStretchFactor(1, 4);
  stack_ = new QStackedWidget;
  stack_->addWidget(make_empty());
  stack_->addWidget(split);
  column->addWidget(stack_, 1);

  const int gap = fontMetrics().height();
  column->setSpacing(gap * 2 / 3);
  column->setContentsMargins(gap, gap, gap, gap);
  copy_action_ = new QAction(tr("Copy the text"), this);
  copy_action_->setShortcut(QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_C));
  copy_action_->setShortcutContext(Qt::WidgetWithChildrenShortcut);
  addAction(copy_action_);
  connect(copy_action_, &QAction::triggered, this, &SamplesPage::copy_text);

  timer_.setInterval(kLookMs);
  connect(&timer_, &QTimer::timeout, &grid_, &SampleGrid::look);
  connect(&grid_, &SampleGrid::looked, this, &SamplesPage::take_look);
  connect(picker_, &RunPicker::chosen, this, &SamplesPage::take_run);
  connect(picker_, &RunPicker::runs_read, this, &SamplesPage::show_nothing);
  show_nothing();
}

SamplesPage::~SamplesPage() {
  // The grid goes before its table, which then has another choice.
  table_->selectionModel()->disconnect(this);
}

QWidget* SamplesPage::make_grid() {
  table_ = new QTableView;
  table_->setObjectName("grid");
  table_->setAccessibleName(tr("Samples: a row a prompt, a column a step"));
  table_->setModel(&grid_);
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->setTabKeyNavigation(false);
  table_->setWordWrap(true);
  table_->setTextElideMode(Qt::ElideRight);
  table_->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
  table_->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
  const QFontMetrics metrics = table_->fontMetrics();
  table_->verticalHeader()->setDefaultSectionSize(metrics.lineSpacing() * 4);
  table_->verticalHeader()->setSectionResizeMode(QHeaderView::Interactive);
  table_->verticalHeader()->setDefaultAlignment(Qt::AlignLeading | Qt::AlignTop);
  table_->verticalHeader()->setMaximumWidth(metrics.averageCharWidth() * 28);
  table_->verticalHeader()->setTextElideMode(Qt::ElideRight);
  // Few steps fill the table; many are scrolled.
  new ColumnFit(table_, {.rest = 0, .n_rest = ColumnFit::kToTheLast, .least_chars = 30});
  connect(table_->selectionModel(), &QItemSelectionModel::currentChanged, this,
          [this](const QModelIndex& index) {
            chosen_step_ = index.isValid() ? grid_.step(index.column()) : -1;
            fill_steps();
            show_texts();
          });
  return table_;
}

QWidget* SamplesPage::make_texts() {
  auto* box = new QWidget;
  auto* grid = new QGridLayout(box);
  grid->setContentsMargins(0, 0, 0, 0);
  title_ = heading_label({}, 1.1);
  title_->setObjectName("sample_title");
  title_->setTextFormat(Qt::PlainText);
  title_->setWordWrap(false);
  other_ = new QComboBox;
  other_->setObjectName("compare_with");
  auto* with = new TextLabel(tr("Compare &with"));
  with->setBuddy(other_);
  other_->setAccessibleName(tr("Compare with"));
  copy_button_ = new QPushButton(tr("Cop&y text"));
  copy_button_->setObjectName("copy_button");
  auto* other_row = new QHBoxLayout;
  other_row->addWidget(with);
  other_row->addWidget(other_, 1);
  auto* text_row = new QHBoxLayout;
  text_row->addWidget(title_, 1);
  text_row->addWidget(copy_button_);
  text_ = make_text("sample_text", tr("The chosen sample"));
  other_text_ = make_text("other_text", tr("The sample that it is compared with"));
  settings_ = note_label();
  settings_->setObjectName("sample_settings");
  other_settings_ = note_label();
  grid->addLayout(other_row, 0, 0);
  grid->addLayout(text_row, 0, 1);
  grid->addWidget(other_text_, 1, 0);
  grid->addWidget(text_, 1, 1);
  grid->addWidget(other_settings_, 2, 0);
  grid->addWidget(settings_, 2, 1);
  grid->setColumnStretch(0, 1);
  grid->setColumnStretch(1, 1);
  connect(copy_button_, &QPushButton::clicked, this, &SamplesPage::copy_text);
  connect(other_, &QComboBox::activated, this, [this] {
    other_step_ = other_->currentData().toLongLong();
    show_texts();
  });
  return box;
}

QWidget* SamplesPage::make_empty() {
  auto* box = new QWidget;
  auto* column = new QVBoxLayout(box);
  empty_title_ = heading_label({}, 1.1);
  empty_title_->setObjectName("empty_title");
  empty_title_->setAlignment(Qt::AlignCenter);
  empty_text_ = note_label();
  empty_text_->setObjectName("empty_text");
  empty_text_->setAlignment(Qt::AlignCenter);
  new_run_ = new QPushButton(tr("&New run"));
  new_run_->setObjectName("new_run_button");
  column->addStretch(1);
  column->addWidget(empty_title_);
  column->addWidget(empty_text_);
  column->addWidget(new_run_, 0, Qt::AlignHCenter);
  column->addStretch(2);
  connect(new_run_, &QPushButton::clicked, this,
          [this] { emit shared().navigator.page_wanted(PageId::new_run); });
  return box;
}

QList<QAction*> SamplesPage::page_actions() {
  return {copy_action_};
}

void SamplesPage::set_active(bool active) {
  if (!active) return timer_.stop();
  picker_->refresh();
  grid_.look();
  timer_.start();
}

void SamplesPage::show_run(const std::filesystem::path& run) {
  picker_->choose(run);
}

void SamplesPage::take_run() {
  if (grid_.run() == picker_->run()) return;
  chosen_step_ = other_step_ = -1;
  has_looked_ = false;
  grid_.set_run(picker_->run());
  grid_.look();
  show_nothing();
}

void SamplesPage::take_look(bool has_changed) {
  const bool is_first = !std::exchange(has_looked_, true);
  if (!has_changed && !is_first) return;
  if (!grid_.trouble().isEmpty())
    message_->show_error(grid_.trouble());
  else if (grid_.n_bad_lines() > 0)
    message_->show_warning(tr("%n line(s) of samples are damaged and left out.", nullptr,
                              static_cast<int>(grid_.n_bad_lines())));
  else
    message_->clear();
  show_nothing();
  if (grid_.n_steps() == 0) return;
  // The newest is what people look for; who chose another one keeps it.
  if (!table_->currentIndex().isValid())
    table_->setCurrentIndex(grid_.index(0, grid_.n_steps() - 1));
  fill_steps();
  show_texts();
}

void SamplesPage::changeEvent(QEvent* event) {
  Page::changeEvent(event);
  // Texts keep the colours that they were written with.
  if (event->type() == QEvent::PaletteChange && has_looked_) show_texts();
}

void SamplesPage::show_nothing() {
  const bool has_some = grid_.n_steps() > 0 && grid_.n_prompts() > 0;
  stack_->setCurrentIndex(has_some ? 1 : 0);
  copy_action_->setEnabled(has_some);
  if (has_some) return;
  const bool has_run = !grid_.run().empty();
  new_run_->setVisible(!has_run || has_looked_);
  if (has_run && !has_looked_) {
    empty_title_->setText(tr("Looking for samples..."));
    empty_text_->clear();
    return;
  }
  empty_title_->setText(has_run ? tr("This run has no samples") : tr("Choose a run"));
  empty_text_->setText(
      tr("Samples show how a language model continues beginnings of your choice while it "
         "learns.\nTo get some, set \"%1\" (sample_prompts) in a new run of the task causal-lm; "
         "\"%2\" (sample_steps) says how often.")
          .arg(isolated(label_of("sample_prompts")), isolated(label_of("sample_steps"))));
}

int SamplesPage::row() const {
  return table_->currentIndex().isValid() ? table_->currentIndex().row() : -1;
}
int SamplesPage::column() const {
  return table_->currentIndex().isValid() ? table_->currentIndex().column() : -1;
}

void SamplesPage::fill_steps() {
  const int chosen = column();
  const QSignalBlocker blocker(other_);
  other_->clear();
  for (int at = 0; at < grid_.n_steps(); ++at)
    if (at != chosen)
      other_->addItem(tr("Step %1").arg(grid_.step(at)), QVariant::fromValue(grid_.step(at)));
  int at = other_step_ >= 0 ? other_->findData(QVariant::fromValue(other_step_)) : -1;
  // Items are steps without the chosen one: the one before it has the number below.
  if (at < 0) at = chosen > 0 ? chosen - 1 : 0;
  other_->setCurrentIndex(other_->count() > 0 ? at : -1);
  other_->setEnabled(other_->count() > 0);
}

void SamplesPage::show_texts() {
  const auto settings_of = [](const Sample* sample) {
    if (!sample) return QString();
    const QString ended = sample->ended == "length"    ? tr("ended at its length")
                          : sample->ended == "eos"     ? tr("ended by itself")
                          : sample->ended == "stop"    ? tr("ended at a stop text")
                          : sample->ended == "context" ? tr("filled the model's context")
                                                       : sample->ended;
    const auto n_tokens = static_cast<int>(sample->n_tokens);
    if (sample->settings.isEmpty()) return tr("%n token(s), %1.", nullptr, n_tokens).arg(ended);
    return tr("%n token(s), %1. %2.", nullptr, n_tokens).arg(ended, sample->settings);
  };
  const Sample* const sample = grid_.sample(row(), column());
  const Sample* other = nullptr;
  if (other_->currentIndex() >= 0) {
    const int64_t step = other_->currentData().toLongLong();
    for (int at = 0; at < grid_.n_steps(); ++at)
      if (grid_.step(at) == step) other = grid_.sample(row(), at);
  }
  title_->setText(column() < 0 ? tr("Choose a sample above")
                               : tr("After %1 steps").arg(grid_.step(column())));
  settings_->setText(settings_of(sample));
  other_settings_->setText(settings_of(other));
  const auto parts =
      sample && other
          ? word_diff(other->text, sample->text)
          : std::pair(other ? std::vector<DiffPart>{{other->text}} : std::vector<DiffPart>(),
                      sample ? std::vector<DiffPart>{{sample->text}} : std::vector<DiffPart>());
  const QString prompt = row() < 0 ? QString() : grid_.prompt(row());
  show_parts(*other_text_, palette(), other ? prompt : QString(), parts.first);
  show_parts(*text_, palette(), sample ? prompt : QString(), parts.second);
  copy_button_->setEnabled(sample != nullptr);
}

void SamplesPage::copy_text() {
  const Sample* const sample = grid_.sample(row(), column());
  if (!sample) return;
  QApplication::clipboard()->setText(sample->prompt + sample->text);
  emit shared().navigator.said(tr("The text is in the clipboard."));
}

}  // namespace ferry::gui
