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
#include <QTabBar>
#include <QTableWidget>
#include <QTextEdit>
#include <QVBoxLayout>
#include <cmath>

#include "gui/models/text.h"
#include "gui/pages/try_it/chat_panel.h"
#include "gui/widgets/charts/score_bar.h"
#include "gui/widgets/look.h"
#include "gui/widgets/notice.h"
#include "gui/widgets/runs/run_picker.h"

namespace ferry::gui {

namespace {

// The system takes no longer word on a command line.
constexpr qsizetype kBytesMax = 120'000;
constexpr int kHistoryMax = 200;

QString number_text(double value) {
  return QString::number(value, 'g', 6);
}

}  // namespace

TryItPage::TryItPage(Shared& shared, QWidget* parent)
    : Page(shared, parent), background_(this), process_(this) {
  auto* column = new QVBoxLayout(this);
  model_message_ = new Notice;
  model_message_->setObjectName("model_message");
  column->addLayout(title_with(
      tr("Try a model"), tr("Ask a finished run, a checkpoint or a folder."), *model_message_));
  picker_ = new RunPicker(shared.runs, shared.settings, RunPicker::For::model);
  column->addWidget(picker_);

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
  ways_ = new QTabBar;
  ways_->setObjectName("ways");
  ways_->setAccessibleName(tr("How the model is asked"));
  ways_->setDrawBase(false);
  ways_->addTab(tr("Chat"));
  ways_->addTab(tr("Continue a text"));
  ways_->hide();
  column->addWidget(ways_);
  chat_ = new ChatPanel;
  parts_ = new QStackedWidget;
  parts_->addWidget(split);
  parts_->addWidget(chat_);
  column->addWidget(parts_, 1);

  const int gap = fontMetrics().height();
  column->setSpacing(gap * 2 / 3);
  column->setContentsMargins(gap, gap, gap, gap);
  make_actions();
  connect(picker_, &RunPicker::chosen, this, &TryItPage::read_form);
  connect(ways_, &QTabBar::currentChanged, this, &TryItPage::show_way);
  connect(chat_, &ChatPanel::changed, this, &TryItPage::update_ask);
  connect(&process_, &FerryProcess::line_came, this, &TryItPage::take_answer);
  connect(&process_, &FerryProcess::text_came, this, &TryItPage::take_text);
  connect(&process_, &FerryProcess::finished, this, [this] { end({}); });
  connect(&process_, &FerryProcess::failed, this, &TryItPage::end);
  show_form();
}

TryItPage::~TryItPage() {
  history_list_->disconnect(this);
}

QList<QAction*> TryItPage::page_actions() {
  return {ask_action_, copy_action_, again_action_};
}

void TryItPage::set_active(bool active) {
  if (active) return picker_->refresh();
  // A training that begins meanwhile finds the memory free.
  chat_->unload();
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
  if (form_.has_chat_template && form_.trouble.isEmpty())
    chat_->set_model(path_text(picker_->model()), picker_->name(), form_);
  else
    chat_->clear();
  if (!is_same_kind) {
    summary_->hide();
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
                                                      : tr("Type a text for the model here."));
  nothing_->setText(about_answer());
  second_box_->setVisible(form_.takes_pairs);
  generation_box_->setVisible(form_.kind == FormKind::generation);
  ask_button_->setText(form_.kind == FormKind::generation ? tr("Co&ntinue") : tr("As&k"));
  ways_->setVisible(can_ask && form_.has_chat_template);
  show_way();
}

bool TryItPage::is_chat() const {
  constexpr int kChat = 0;
  return ways_->isVisibleTo(this) && ways_->currentIndex() == kChat;
}

void TryItPage::show_way() {
  parts_->setCurrentIndex(is_chat() ? 1 : 0);
  if (!is_chat()) chat_->unload();
  update_ask();
}

/** A line on the kind of answer that the chosen model gives, in the place of the answer. */
QString TryItPage::about_answer() const {
  if (picker_->model().empty()) return tr("The model's answers appear here.");
  if (!form_.trouble.isEmpty()) return {};
  const auto n_labels = static_cast<int>(form_.labels.size());
  constexpr int kLabelsShown = 40;
  const QString labels = isolated(listed(form_.labels.mid(0, kLabelsShown))) +
                         (n_labels > kLabelsShown ? QStringLiteral("…") : QString());
  switch (form_.kind) {
    case FormKind::classification:
      if (form_.is_regression) return tr("The model answers with a number.");
      return (form_.is_multi_label
                  ? tr("The model says which of its %n label(s) suit the text: %1. "
                       "How sure it is of each appears here.",
                       nullptr, n_labels)
                  : tr("The model chooses one of its %n label(s): %1. "
                       "How sure it is of each appears here.",
                       nullptr, n_labels))
          .arg(labels);
    case FormKind::tokens:
      return tr("The model marks words of the text: %1. The marked text appears here.").arg(labels);
    case FormKind::question:
      return tr("The model looks for the answer in the text, and marks it here.");
    case FormKind::generation:
      return tr("The text appears here as the model writes it. Esc stops it.");
    case FormKind::none:
      break;
  }
  return tr("The answer appears here.");
}

// --- A question --------------------------------------------------------------------------------

QString TryItPage::trouble_of_form() const {
  if (picker_->model().empty()) return tr("Choose a run or a model first.");
  // Until then form_ is the former model's.
  if (background_.is_busy()) return tr("The model is being read.");
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
  ask_action_->setEnabled(is_chat() ? chat_->can_send() : ask_button_->isEnabled());
  cancel_button_->setVisible(is_running);
  busy_->setVisible(is_running);
  told_->setVisible(!is_running);
  copy_button_->setEnabled(!shown_.text.isEmpty());
  copy_action_->setEnabled(is_chat() ? !chat_->last_answer().isEmpty() : copy_button_->isEnabled());
  again_button_->setEnabled(!shown_.text.isEmpty());
  again_action_->setEnabled(!is_chat() && again_button_->isEnabled());
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
  if (is_chat()) return chat_->send();
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
  no_history_->hide();
  history_list_->show();
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
  const QString copied = is_chat()               ? chat_->last_answer()
                         : shown_.text.isEmpty() ? QString()
                         : shown_.is_generation  ? shown_.text + shown_.generated
                                                 : shown_.answer.plain_text();
  if (copied.isEmpty()) return;
  QApplication::clipboard()->setText(copied);
  emit shared().navigator.said(tr("The answer is in the clipboard."));
}

}  // namespace ferry::gui
