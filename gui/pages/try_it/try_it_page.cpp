#include "gui/pages/try_it/try_it_page.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QDoubleSpinBox>
#include <QFormLayout>
#include <QHeaderView>
#include <QLineEdit>
#include <QListWidget>
#include <QPlainTextEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QScrollBar>
#include <QSpinBox>
#include <QSplitter>
#include <QStackedWidget>
#include <QTableWidget>
#include <QTextEdit>
#include <QVBoxLayout>
#include <cmath>

#include "gui/models/text.h"
#include "gui/widgets/charts/score_bar.h"
#include "gui/widgets/look.h"
#include "gui/widgets/notice.h"
#include "gui/widgets/runs/run_picker.h"

namespace ferry::gui {

namespace {

// The system takes no longer word on a command line.
constexpr qsizetype kBytesMax = 120'000;
constexpr int kHistoryMax = 200;

QPlainTextEdit* make_text(const char* name, int n_lines) {
  auto* text = new QPlainTextEdit;
  text->setObjectName(name);
  text->setTabChangesFocus(true);
  text->setMinimumHeight(text->fontMetrics().lineSpacing() * n_lines);
  return text;
}

QString number_text(double value) {
  return QString::number(value, 'g', 6);
}

}  // namespace

TryItPage::TryItPage(Shared& shared, QWidget* parent)
    : Page(shared, parent), background_(this), process_(this) {
  auto* column = new QVBoxLayout(this);
  column->addWidget(heading_label(tr("Try a model"), kTitle));
  picker_ = new RunPicker(shared.runs, shared.settings, RunPicker::For::model);
  column->addWidget(picker_);
  model_message_ = new Notice;
  model_message_->setObjectName("model_message");
  column->addWidget(model_message_);

  auto* split = new QSplitter;
  split->setChildrenCollapsible(false);
  auto* left = new QWidget;
  auto* rows = new QVBoxLayout(left);
  rows->setContentsMargins(0, 0, 0, 0);
  rows->addWidget(make_form(), 2);
  rows->addWidget(make_result(), 4);
  split->addWidget(left);
  split->addWidget(make_history());
  split->setStretchFactor(0, 3);
  split->setStretchFactor(1, 1);
  column->addWidget(split, 1);

  const int gap = fontMetrics().height();
  column->setSpacing(gap * 2 / 3);
  column->setContentsMargins(gap, gap, gap, gap);
  make_actions();
  connect(picker_, &RunPicker::chosen, this, &TryItPage::read_form);
  connect(&process_, &FerryProcess::line_came, this, &TryItPage::take_answer);
  connect(&process_, &FerryProcess::text_came, this, &TryItPage::take_text);
  connect(&process_, &FerryProcess::finished, this, [this] { end({}); });
  connect(&process_, &FerryProcess::failed, this, &TryItPage::end);
  show_form();
}

TryItPage::~TryItPage() {
  history_list_->disconnect(this);
}

QWidget* TryItPage::make_form() {
  form_box_ = new QWidget;
  auto* column = new QVBoxLayout(form_box_);
  column->setContentsMargins(0, 0, 0, 0);
  first_ = make_text("text", 3);
  first_label_ = new QLabel(tr("&Text"));
  first_label_->setBuddy(first_);
  column->addWidget(first_label_);
  column->addWidget(first_, 1);

  second_box_ = new QWidget;
  auto* second = new QVBoxLayout(second_box_);
  second->setContentsMargins(0, 0, 0, 0);
  second_ = make_text("context", 4);
  second_label_ = new QLabel;
  second_label_->setBuddy(second_);
  second->addWidget(second_label_);
  second->addWidget(second_, 1);
  column->addWidget(second_box_, 2);
  column->addWidget(make_generation_settings());

  auto* buttons = new QHBoxLayout;
  ask_button_ = new QPushButton(tr("As&k"));
  ask_button_->setObjectName("ask_button");
  ask_button_->setDefault(true);
  cancel_button_ = new QPushButton(tr("&Cancel"));
  cancel_button_->setObjectName("cancel_button");
  cancel_button_->setShortcut(Qt::Key_Escape);
  busy_ = new QProgressBar;
  busy_->setRange(0, 0);
  busy_->setTextVisible(false);
  busy_->setAccessibleName(tr("The model answers"));
  busy_->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  told_ = note_label();
  told_->setObjectName("told");
  told_->setWordWrap(false);
  told_->setAlignment(Qt::AlignLeading | Qt::AlignVCenter);
  buttons->addWidget(ask_button_);
  buttons->addWidget(cancel_button_);
  buttons->addWidget(busy_, 1);
  buttons->addWidget(told_, 1);
  column->addLayout(buttons);
  connect(ask_button_, &QPushButton::clicked, this, &TryItPage::ask);
  connect(cancel_button_, &QPushButton::clicked, this, &TryItPage::cancel);
  connect(first_, &QPlainTextEdit::textChanged, this, &TryItPage::update_ask);
  connect(second_, &QPlainTextEdit::textChanged, this, &TryItPage::update_ask);
  return form_box_;
}

QWidget* TryItPage::make_generation_settings() {
  generation_box_ = new QWidget;
  auto* row = new QHBoxLayout(generation_box_);
  row->setContentsMargins(0, 0, 0, 0);
  length_ = new QSpinBox;
  length_->setRange(1, 100000);
  length_->setValue(128);
  length_->setSuffix(tr(" tokens"));
  temperature_ = new QDoubleSpinBox;
  temperature_->setRange(0, 10);
  temperature_->setSingleStep(0.1);
  temperature_->setValue(0.8);
  temperature_->setToolTip(
      tr("0 takes the likeliest token each time. Higher values take more "
         "chances."));
  top_k_ = new QSpinBox;
  top_k_->setRange(0, 100000);
  top_k_->setSpecialValueText(tr("all"));
  top_k_->setToolTip(tr("Draws among so many of the likeliest tokens."));
  top_p_ = new QDoubleSpinBox;
  top_p_->setRange(0.01, 1);
  top_p_->setSingleStep(0.05);
  top_p_->setValue(0.95);
  top_p_->setToolTip(tr("Draws among the likeliest tokens whose shares add up to this."));
  seed_ = new QSpinBox;
  seed_->setRange(0, 2147483647);
  seed_->setValue(42);
  seed_->setToolTip(tr("The same seed draws the same text again."));
  stop_ = new QLineEdit;
  stop_->setPlaceholderText(tr("none"));
  stop_->setToolTip(
      tr("Texts that end it, with commas between them. \\n stands for the end of a "
         "line."));
  const auto add = [&](const QString& label, QWidget* field, const char* name) {
    auto* cell = new QVBoxLayout;
    auto* words = new QLabel(label);
    words->setBuddy(field);
    field->setObjectName(name);
    field->setAccessibleName(QString(label).remove('&'));
    cell->addWidget(words);
    cell->addWidget(field);
    row->addLayout(cell, 1);
  };
  add(tr("&Length"), length_, "field_length");
  add(tr("&Temperature"), temperature_, "field_temperature");
  add(tr("Top-&k"), top_k_, "field_top_k");
  add(tr("Top-&p"), top_p_, "field_top_p");
  add(tr("S&eed"), seed_, "field_seed");
  add(tr("St&op at"), stop_, "field_stop");
  return generation_box_;
}

QWidget* TryItPage::make_result() {
  auto* box = new QWidget;
  auto* column = new QVBoxLayout(box);
  column->setContentsMargins(0, 0, 0, 0);
  message_ = new Notice;
  message_->setObjectName("message");
  column->addWidget(message_);
  summary_ = heading_label({}, 1.2);
  summary_->setObjectName("summary");
  summary_->setTextFormat(Qt::PlainText);
  summary_->setWordWrap(true);
  column->addWidget(summary_);
  result_ = new QStackedWidget;

  nothing_ = note_label(tr("The answer appears here."));
  static_cast<QLabel*>(nothing_)->setAlignment(Qt::AlignTop | Qt::AlignLeft);
  scores_ = new QTableWidget(0, 2);
  scores_->setObjectName("scores");
  scores_->setAccessibleName(tr("Classes and how sure the model is of each"));
  scores_->setHorizontalHeaderLabels({tr("Class"), tr("Confidence")});
  scores_->verticalHeader()->hide();
  scores_->horizontalHeader()->setStretchLastSection(true);
  scores_->horizontalHeader()->setHighlightSections(false);
  scores_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  scores_->setSelectionBehavior(QAbstractItemView::SelectRows);
  scores_->setShowGrid(false);
  scores_->setTabKeyNavigation(false);
  scores_->setItemDelegateForColumn(1, new ScoreBar(scores_));
  marked_ = new QTextEdit;
  marked_->setObjectName("marked");
  marked_->setAccessibleName(tr("The answer in its text"));
  marked_->setReadOnly(true);
  marked_->setTabChangesFocus(true);
  for (QWidget* one : {nothing_, static_cast<QWidget*>(scores_), static_cast<QWidget*>(marked_)})
    result_->addWidget(one);
  column->addWidget(result_, 1);
  return box;
}

QWidget* TryItPage::make_history() {
  auto* box = new QWidget;
  auto* column = new QVBoxLayout(box);
  column->setContentsMargins(0, 0, 0, 0);
  auto* label = new QLabel(tr("Hi&story"));
  history_list_ = new QListWidget;
  history_list_->setObjectName("history");
  history_list_->setAccessibleName(tr("What was asked before"));
  history_list_->setAlternatingRowColors(true);
  history_list_->setTextElideMode(Qt::ElideRight);
  history_list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  label->setBuddy(history_list_);
  copy_button_ = new QPushButton(tr("Cop&y answer"));
  copy_button_->setObjectName("copy_button");
  again_button_ = new QPushButton(tr("&Use text again"));
  again_button_->setObjectName("again_button");
  auto* buttons = new QHBoxLayout;
  buttons->addWidget(copy_button_);
  buttons->addWidget(again_button_);
  column->addWidget(label);
  column->addWidget(history_list_, 1);
  column->addLayout(buttons);
  connect(history_list_, &QListWidget::currentRowChanged, this, &TryItPage::choose_try);
  connect(history_list_, &QListWidget::itemActivated, this, [this] { use_again(); });
  connect(copy_button_, &QPushButton::clicked, this, &TryItPage::copy_answer);
  connect(again_button_, &QPushButton::clicked, this, &TryItPage::use_again);
  return box;
}

void TryItPage::make_actions() {
  ask_action_ = new QAction(tr("Ask the model"), this);
  ask_action_->setShortcuts(
      {QKeySequence(Qt::CTRL | Qt::Key_Return), QKeySequence(Qt::CTRL | Qt::Key_Enter)});
  copy_action_ = new QAction(tr("Copy the answer"), this);
  copy_action_->setShortcut(QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_C));
  again_action_ = new QAction(tr("Use the text again"), this);
  for (QAction* action : {ask_action_, copy_action_, again_action_}) {
    action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
    addAction(action);
  }
  connect(ask_action_, &QAction::triggered, this, &TryItPage::ask);
  connect(copy_action_, &QAction::triggered, this, &TryItPage::copy_answer);
  connect(again_action_, &QAction::triggered, this, &TryItPage::use_again);
}

QList<QAction*> TryItPage::page_actions() {
  return {ask_action_, copy_action_, again_action_};
}

void TryItPage::set_active(bool active) {
  if (active) picker_->refresh();
}

void TryItPage::changeEvent(QEvent* event) {
  Page::changeEvent(event);
  // Texts keep the colours that they were written with.
  if (event->type() == QEvent::PaletteChange && !shown_.text.isEmpty())
    show_try(process_.is_running() && asked_.is_generation ? asked_ : shown_);
}

void TryItPage::show_run(const std::filesystem::path& run) {
  picker_->choose(run);
}

// --- The model ---------------------------------------------------------------------------------

void TryItPage::read_form() {
  cancel();
  message_->clear();
  const QString model = path_text(picker_->model());
  background_.ask([model] { return read_model_form(model); },
                  [this](const ModelForm& form, const QString& trouble) {
                    ModelForm taken = form;
                    if (!trouble.isEmpty()) taken.trouble = trouble;
                    take_form(taken);
                  });
  update_ask();
}

void TryItPage::take_form(const ModelForm& form) {
  const bool is_same_kind = form.kind == form_.kind && form.takes_pairs == form_.takes_pairs;
  form_ = form;
  if (!is_same_kind) {
    summary_->clear();
    result_->setCurrentWidget(nothing_);
  }
  if (form_.trouble.isEmpty())
    model_message_->clear();
  else
    model_message_->show_error(form_.trouble);
  show_form();
}

void TryItPage::show_form() {
  const bool can_ask = !picker_->model().empty() && form_.trouble.isEmpty();
  form_box_->setEnabled(can_ask);
  switch (form_.kind) {
    case FormKind::question:
      first_label_->setText(tr("&Question"));
      second_label_->setText(tr("Te&xt that answers it"));
      break;
    case FormKind::generation:
      first_label_->setText(tr("&Begin with"));
      break;
    default:
      first_label_->setText(tr("&Text"));
      second_label_->setText(tr("Second te&xt"));
  }
  first_->setAccessibleName(first_label_->text().remove('&'));
  second_->setAccessibleName(second_label_->text().remove('&'));
  first_->setPlaceholderText(picker_->model().empty() ? tr("Choose a run or a model above.")
                                                      : QString());
  second_box_->setVisible(form_.takes_pairs);
  generation_box_->setVisible(form_.kind == FormKind::generation);
  ask_button_->setText(form_.kind == FormKind::generation ? tr("&Go on") : tr("As&k"));
  update_ask();
}

// --- A question --------------------------------------------------------------------------------

QString TryItPage::trouble_of_form() const {
  if (picker_->model().empty()) return tr("Choose a run or a model first.");
  // Until then form_ is the former model's.
  if (background_.is_busy()) return tr("The model is looked at.");
  if (!form_.trouble.isEmpty()) return form_.trouble;
  const QString first = first_->toPlainText(), second = second_->toPlainText();
  if (first.trimmed().isEmpty()) return tr("Type a text first.");
  if (form_.takes_pairs && second.trimmed().isEmpty()) return tr("Both texts are needed.");
  if (std::max(first.toUtf8().size(), second.toUtf8().size()) > kBytesMax)
    return tr(
        "The text is too long to be asked here. For long texts, use ferry predict with a "
        "file.");
  return {};
}

void TryItPage::update_ask() {
  const bool is_running = process_.is_running();
  const QString trouble = trouble_of_form();
  ask_button_->setEnabled(!is_running && trouble.isEmpty());
  ask_button_->setToolTip(
      trouble.isEmpty() ? ask_action_->shortcut().toString(QKeySequence::NativeText) : trouble);
  ask_action_->setEnabled(ask_button_->isEnabled());
  cancel_button_->setVisible(is_running);
  busy_->setVisible(is_running);
  told_->setVisible(!is_running);
  copy_button_->setEnabled(!shown_.text.isEmpty());
  copy_action_->setEnabled(copy_button_->isEnabled());
  again_button_->setEnabled(!shown_.text.isEmpty());
  again_action_->setEnabled(again_button_->isEnabled());
}

QStringList TryItPage::predict_words() const {
  QStringList words{"predict", "--json", "--model=" + path_text(picker_->model())};
  if (form_.takes_pairs) words << "--pairs";
  words << "--" << first_->toPlainText();
  if (form_.takes_pairs) words << second_->toPlainText();
  return words;
}

QStringList TryItPage::generate_words() const {
  // Without --json the text of a single prompt comes as it is made.
  QStringList words{"generate", "--model=" + path_text(picker_->model()),
                    "--max-new-tokens=" + QString::number(length_->value()),
                    "--temperature=" + number_text(temperature_->value()),
                    "--seed=" + QString::number(seed_->value())};
  if (temperature_->value() > 0)
    words << "--top-k=" + QString::number(top_k_->value())
          << "--top-p=" + number_text(top_p_->value());
  if (!stop_->text().isEmpty()) words << "--stop=" + stop_->text();
  words << "--" << first_->toPlainText();
  return words;
}

void TryItPage::ask() {
  if (process_.is_running() || !trouble_of_form().isEmpty()) return;
  const bool generates = form_.kind == FormKind::generation;
  asked_ = {.model = path_text(picker_->model()),
            .text = first_->toPlainText(),
            .context = form_.takes_pairs ? second_->toPlainText() : QString(),
            .answer = {},
            .generated = {},
            .said = {},
            .is_generation = generates};
  begin(generates ? generate_words() : predict_words(),
        generates ? FerryProcess::Output::text : FerryProcess::Output::json);
}

void TryItPage::begin(const QStringList& words, FerryProcess::Output output) {
  message_->clear();
  told_->clear();
  clock_.start();
  process_.start(words, output);
  if (asked_.is_generation) show_try(asked_);
  update_ask();
}

void TryItPage::cancel() {
  if (!process_.is_running()) return;
  process_.cancel();
  if (asked_.is_generation && !asked_.generated.isEmpty()) keep(asked_);
  told_->setText(tr("Cancelled."));
  update_ask();
}

void TryItPage::take_answer(const nlohmann::ordered_json& line) {
  const auto trouble = trouble_of(
      [&] { asked_.answer = parse_answer(line, form_.kind, asked_.text, asked_.context); });
  if (!trouble) return;
  process_.cancel();
  end(tr("The answer is not understood: %1").arg(*trouble));
}

void TryItPage::take_text(const QString& text) {
  asked_.generated += text;
  QTextCursor cursor(marked_->document());
  cursor.movePosition(QTextCursor::End);
  QTextCharFormat format;
  cursor.insertText(text, format);
  marked_->verticalScrollBar()->setValue(marked_->verticalScrollBar()->maximum());
}

void TryItPage::end(const QString& trouble) {
  if (!trouble.isEmpty()) {
    message_->show_error(trouble);
  } else if (!asked_.is_generation && asked_.answer.kind == FormKind::none) {
    message_->show_error(tr("ferry gave no answer."));
  } else {
    if (asked_.is_generation && asked_.generated.endsWith('\n')) asked_.generated.chop(1);
    asked_.said = (QStringList{tr("Answered in %1 s.")
                                   .arg(QLocale().toString(
                                       static_cast<double>(clock_.elapsed()) / 1000, 'f', 1))} +
                   process_.notes())
                      .join(' ');
    keep(asked_);
    show_try(asked_);
  }
  update_ask();
}

// --- Its answer --------------------------------------------------------------------------------

void TryItPage::show_try(const Try& shown) {
  shown_ = shown;
  told_->setText(shown.said);
  told_->setToolTip(shown.said);
  if (shown.is_generation) {
    summary_->setVisible(false);
    marked_->clear();
    QTextCursor cursor(marked_->document());
    QTextCharFormat quiet;
    quiet.setForeground(palette().color(QPalette::PlaceholderText));
    cursor.insertText(shown.text, quiet);
    cursor.insertText(shown.generated, QTextCharFormat());
    result_->setCurrentWidget(marked_);
  } else {
    summary_->setVisible(true);
    const bool lists = shown.answer.kind == FormKind::tokens;
    summary_->setText(lists ? tr("%n found", nullptr, static_cast<int>(shown.answer.marks.size()))
                            : shown.answer.short_text());
    if (shown.answer.kind == FormKind::classification)
      show_scores(shown.answer);
    else
      show_marks(shown.answer);
  }
  update_ask();
}

void TryItPage::show_scores(const TextAnswer& answer) {
  if (answer.number) return result_->setCurrentWidget(nothing_);
  scores_->setRowCount(static_cast<int>(answer.scores.size()));
  for (int row = 0; row < scores_->rowCount(); ++row) {
    const TextAnswer::Score& score = answer.scores[static_cast<size_t>(row)];
    auto* label =
        new QTableWidgetItem(score.is_chosen ? tr("%1 (chosen)").arg(score.label) : score.label);
    QFont font = label->font();
    font.setBold(score.is_chosen);
    label->setFont(font);
    auto* bar = new QTableWidgetItem;
    bar->setData(ScoreBar::share_role, score.share);
    bar->setText(std::isnan(score.share)
                     ? tr("not a number")
                     : tr("%1 %").arg(QLocale().toString(score.share * 100, 'f', 1)));
    bar->setData(Qt::AccessibleTextRole, tr("%1: %2").arg(score.label, bar->text()));
    scores_->setItem(row, 0, label);
    scores_->setItem(row, 1, bar);
  }
  scores_->resizeColumnToContents(0);
  scores_->setColumnWidth(0, std::min(scores_->columnWidth(0), scores_->width() / 2));
  result_->setCurrentWidget(scores_);
}

void TryItPage::show_marks(const TextAnswer& answer) {
  const QString& text = answer.kind == FormKind::question ? answer.context : answer.text;
  marked_->clear();
  QTextCursor cursor(marked_->document());
  const QTextCharFormat plain;
  QStringList kinds;
  qsizetype at = 0;
  for (const TextAnswer::Mark& mark : answer.marks) {
    if (mark.begin < at || mark.end > text.size()) continue;  // one within another
    if (!kinds.contains(mark.label)) kinds << mark.label;
    cursor.insertText(text.mid(at, mark.begin - at), plain);
    QTextCharFormat marked;
    marked.setBackground(mark_colour(palette(), static_cast<int>(kinds.indexOf(mark.label))));
    marked.setFontUnderline(true);
    cursor.insertText(text.mid(mark.begin, mark.end - mark.begin), marked);
    // The kind in words: nobody needs to tell colours apart.
    marked.setFontUnderline(false);
    marked.setFontWeight(QFont::Bold);
    cursor.insertText(std::isnan(mark.score)
                          ? tr(" [%1]").arg(mark.label)
                          : tr(" [%1 %2]").arg(mark.label, QLocale().toString(mark.score, 'f', 2)),
                      marked);
    at = mark.end;
  }
  cursor.insertText(text.mid(at), plain);
  marked_->moveCursor(QTextCursor::Start);
  result_->setCurrentWidget(marked_);
}

// --- What was asked before ---------------------------------------------------------------------

void TryItPage::keep(Try shown) {
  const QString answer =
      shown.is_generation ? shown.generated.simplified() : shown.answer.short_text();
  auto* item =
      new QListWidgetItem(tr("%1\n%2").arg(shown.text.simplified().left(120), answer.left(120)));
  item->setToolTip(shown.model);
  {
    const QSignalBlocker blocker(history_list_);
    history_list_->insertItem(0, item);
    history_list_->setCurrentRow(0);
    if (history_list_->count() > kHistoryMax) delete history_list_->takeItem(kHistoryMax);
  }
  history_.insert(history_.begin(), std::move(shown));
  if (std::ssize(history_) > kHistoryMax) history_.pop_back();
}

void TryItPage::choose_try(int row) {
  if (row < 0 || row >= std::ssize(history_) || process_.is_running()) return;
  message_->clear();
  show_try(history_[static_cast<size_t>(row)]);
}

void TryItPage::use_again() {
  if (shown_.text.isEmpty()) return;
  first_->setPlainText(shown_.text);
  second_->setPlainText(shown_.context);
  first_->setFocus();
}

void TryItPage::copy_answer() {
  if (shown_.text.isEmpty()) return;
  QApplication::clipboard()->setText(shown_.is_generation ? shown_.text + shown_.generated
                                                          : shown_.answer.plain_text());
  emit shared().navigator.said(tr("The answer is in the clipboard."));
}

}  // namespace ferry::gui
