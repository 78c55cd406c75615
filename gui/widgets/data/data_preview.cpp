#include "gui/widgets/data/data_preview.h"

#include <QtWidgets>
#include <algorithm>
#include <numeric>

#include "gui/models/service_words.h"
#include "gui/models/settings/option_text.h"
#include "gui/models/text.h"
#include "gui/widgets/charts/length_chart.h"
#include "gui/widgets/charts/score_bar.h"
#include "gui/widgets/column_fit.h"
#include "gui/widgets/data/token_view.h"
#include "gui/widgets/look.h"
#include "gui/widgets/notice.h"
#include "src/chat/conversation.h"

namespace ferry::gui {

using service::Preview;
using service::PreviewSample;

namespace {

constexpr int kLabelsTab = 3;

QLabel* words(const char* name) {
  auto* label = new TextLabel;
  label->setObjectName(name);
  label->setWordWrap(true);
  label->setTextFormat(Qt::PlainText);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  return label;
}

/** `rest`: the column that takes the width that the others leave. */
QTableWidget* table(const char* name, const QString& words, const QStringList& heads, int rest) {
  auto* made = new QTableWidget(0, static_cast<int>(heads.size()));
  made->setObjectName(name);
  made->setAccessibleName(words);
  made->setHorizontalHeaderLabels(heads);
  made->verticalHeader()->hide();
  made->setEditTriggers(QAbstractItemView::NoEditTriggers);
  made->setSelectionBehavior(QAbstractItemView::SelectRows);
  made->setAlternatingRowColors(true);
  made->setShowGrid(false);
  made->setTabKeyNavigation(false);
  new ColumnFit(made, {.rest = rest});
  return made;
}

QTableWidgetItem* cell(const QString& text, bool is_number = false) {
  auto* item = new QTableWidgetItem(text);
  item->setTextAlignment(is_number ? kNumberSide : Qt::AlignLeading | Qt::AlignVCenter);
  return item;
}

QString percent(int64_t n, int64_t of) {
  return QLocale::c().toString(
      of > 0 ? 100.0 * static_cast<double>(n) / static_cast<double>(of) : 0.0, 'f', 1);
}

/** One line of at most so many characters. */
QString shortened(const QString& text, int most) {
  const QString all = text.left(4 * qsizetype{most}).simplified();
  return all.size() > most ? all.left(most) + QStringLiteral("\u2026") : all;
}

/** A turn of a chat as people say it. */
QString name_of(const chat::Turn& turn) {
  if (turn.role == chat::kAssistant)
    return turn.is_trained ? DataPreview::tr("assistant")
                           : DataPreview::tr("assistant, not trained on");
  if (turn.role == chat::kUser) return DataPreview::tr("user");
  if (turn.role == chat::kSystem) return DataPreview::tr("system");
  return turn.role == chat::kTool ? DataPreview::tr("tool") : to_text(turn.role);
}

QString text_of(const chat::Turn& turn) {
  QStringList parts;
  if (!turn.thinking.empty()) parts << to_text("<think>" + turn.thinking + "</think>");
  if (turn.text) parts << to_text(*turn.text);
  for (const chat::ToolCall& call : turn.calls)
    parts << to_text(call.name + "(" + call.arguments.dump() + ")");
  return parts.join(QLatin1Char(' '));
}

/** The row as it was read: of a chat its turns. */
std::vector<std::pair<QString, QString>> rows_of(const PreviewSample& sample) {
  std::vector<std::pair<QString, QString>> rows;
  for (const auto& [name, value] : sample.fields) {
    if (!sample.is_chat || name != "chat") {
      rows.emplace_back(to_text(name), to_text(value));
      continue;
    }
    const chat::Conversation conversation = chat::unpacked(value);
    for (const chat::Turn& turn : conversation.turns)
      rows.emplace_back(name_of(turn), text_of(turn));
    if (!conversation.tools.is_null())
      rows.emplace_back(DataPreview::tr("tools"), to_text(conversation.tools.dump()));
  }
  return rows;
}

}  // namespace

DataPreview::DataPreview(QWidget* parent) : QWidget(parent) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  facts_ = words("preview_facts");
  facts_->setForegroundRole(QPalette::PlaceholderText);
  column->addWidget(facts_);
  error_ = new ErrorLabel;
  error_->setObjectName("preview_error");
  column->addWidget(error_);
  findings_ = new QWidget;
  findings_->setObjectName("preview_findings");
  findings_column_ = new QVBoxLayout(findings_);
  findings_column_->setContentsMargins(0, 0, 0, 0);
  findings_->hide();
  column->addWidget(findings_);
  busy_ = words("preview_busy");
  busy_->hide();
  column->addWidget(busy_);
  tabs_ = new QTabWidget;
  tabs_->setObjectName("preview_tabs");
  tabs_->setDocumentMode(true);
  tabs_->addTab(make_samples(), tr("Texts"));
  tabs_->addTab(make_lengths(), tr("Lengths"));
  tabs_->addTab(make_batch(), tr("First batch"));
  tabs_->addTab(make_labels(), tr("Labels"));
  column->addWidget(tabs_, 1);
  // Without tabs words stand at the top, where they are looked for.
  column->addStretch(0);
  tabs_->hide();
  slow_ = new QTimer(this);
  slow_->setSingleShot(true);
  slow_->setInterval(250);
  connect(slow_, &QTimer::timeout, this, [this] {
    busy_->setText(outcome_ && outcome_->preview ? tr("Counting the tokens of all texts\u2026")
                                                 : tr("Reading the data\u2026"));
    busy_->show();
  });
  connect(&thread_, &PreviewThread::answered, this, &DataPreview::show_outcome);
}

QWidget* DataPreview::make_samples() {
  auto* page = new QWidget;
  auto* column = new QVBoxLayout(page);
  auto* row = new QHBoxLayout;
  const auto button = [&](const QString& text, const char* name, Qt::Key key, int step) {
    auto* made = new QPushButton(text);
    made->setObjectName(name);
    made->setToolTip(QKeySequence(key).toString(QKeySequence::NativeText));
    connect(made, &QPushButton::clicked, this, [this, step] { go_to(sample_ + step); });
    auto* shortcut = new QShortcut(QKeySequence(key), this);
    shortcut->setContext(Qt::WidgetWithChildrenShortcut);
    connect(shortcut, &QShortcut::activated, this, [this, step] { go_to(sample_ + step); });
    return made;
  };
  previous_ = button(tr("Prev&ious"), "preview_previous", Qt::Key_PageUp, -1);
  next_ = button(tr("Ne&xt"), "preview_next", Qt::Key_PageDown, 1);
  place_ = words("preview_place");
  place_->setWordWrap(false);
  row->addWidget(previous_);
  row->addWidget(next_);
  row->addSpacing(8);
  row->addWidget(place_, 1);
  column->addLayout(row);
  learnt_ = words("preview_learnt");
  column->addWidget(learnt_);

  const auto add = [&](const QString& title, QWidget* widget, int stretch) {
    auto* label = new TextLabel(title);
    label->setFont(bold_font(label->font()));
    label->setBuddy(widget);
    column->addSpacing(4);
    column->addWidget(label);
    column->addWidget(widget, stretch);
  };
  fields_ = table("preview_fields", tr("The row as it was read"), {tr("Field"), tr("Value")}, 1);
  fields_->horizontalHeader()->hide();
  fields_->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
  // Values are wrapped: rows are as high as the width of their column makes them.
  connect(fields_->findChild<ColumnFit*>(), &ColumnFit::fitted, this, &DataPreview::fit_fields);
  add(tr("The row as it was read"), fields_, 0);
  text_ = new TokenView(TokenView::Shows::text);
  text_->setObjectName("preview_text");
  text_->setAccessibleName(tr("The text that the model reads; underlined: trained on"));
  add(tr("What the model reads of it"), text_, 0);
  // No taller than its text, so that the tokens have the room.
  connect(text_->document()->documentLayout(), &QAbstractTextDocumentLayout::documentSizeChanged,
          this, [this](const QSizeF& size) {
            constexpr int kMostLines = 12;
            const int frame = 2 * text_->frameWidth() + 2;
            text_->setFixedHeight(std::min(static_cast<int>(size.height()) + frame,
                                           kMostLines * text_->fontMetrics().lineSpacing()));
          });
  tokens_ = new TokenView(TokenView::Shows::tokens);
  tokens_->setObjectName("preview_tokens");
  tokens_->setAccessibleName(tr("The tokens; underlined: trained on"));
  add(tr("Its tokens"), tokens_, 1);
  return page;
}

QWidget* DataPreview::make_lengths() {
  auto* page = new QWidget;
  auto* column = new QVBoxLayout(page);
  numbers_ = words("preview_numbers");
  column->addWidget(numbers_);
  chart_ = new LengthChart;
  chart_->setObjectName("preview_lengths");
  column->addWidget(chart_, 1);
  auto* read_out = words("preview_read_out");
  read_out->setForegroundRole(QPalette::PlaceholderText);
  const QString hint = tr("Point at a bar, or use the arrow keys, to read it out.");
  read_out->setText(hint);
  connect(chart_, &LengthChart::read_out_changed, read_out, [read_out, hint](const QString& text) {
    read_out->setText(text.isEmpty() ? hint : text);
  });
  column->addWidget(read_out);
  return page;
}

QWidget* DataPreview::make_batch() {
  auto* page = new QWidget;
  auto* column = new QVBoxLayout(page);
  batch_words_ = words("preview_batch_words");
  column->addWidget(batch_words_);
  batch_ = table("preview_batch", tr("The samples of the first step"),
                 {tr("Text"), tr("Tokens"), tr("Trained on"), tr("Label"), tr("Begins")}, 4);
  batch_->setWordWrap(false);
  column->addWidget(batch_, 1);
  return page;
}

QWidget* DataPreview::make_labels() {
  labels_ = table("preview_label_counts", tr("How many texts have each label"),
                  {tr("Label"), tr("Texts, or words")}, 1);
  labels_->setItemDelegateForColumn(1, new ScoreBar(labels_));
  return labels_;
}

void DataPreview::set_settings(const config::Config& settings) {
  if (!thread_.ask(settings)) return;
  slow_->start();
}

void DataPreview::show_missing(const QString& why) {
  if (preview()) return;  // what was read stays, until other data are
  slow_->stop();
  error_->set_error({});
  busy_->setText(why);
  busy_->show();
}

const Preview* DataPreview::preview() const {
  return outcome_ && outcome_->preview ? &*outcome_->preview : nullptr;
}

void DataPreview::show_outcome(const std::shared_ptr<const PreviewOutcome>& outcome) {
  const Preview* const before = preview();
  const bool is_same_data =
      before && outcome->preview && outcome->preview->samples.size() == before->samples.size();
  outcome_ = outcome;
  if (outcome->is_complete) {
    slow_->stop();
    busy_->hide();
  }
  const QString trouble = outcome->error ? to_text(outcome->error->what()) : QString();
  // Who shows it at the field that it is of says so.
  error_->set_error(says_trouble_ ? message_of(trouble).text : QString());
  emit trouble_changed(trouble);
  tabs_->setVisible(outcome->preview.has_value());
  facts_->setVisible(outcome->preview.has_value());
  if (const Preview* const now = preview()) {
    QStringList facts = {tr("Task %1, at most %2 tokens a text.")
                             .arg(isolated(to_text(now->task)))
                             .arg(now->max_length)};
    for (const std::string& note : now->notes)
      facts << sentence(service_words(to_text(note)));
    facts.removeDuplicates();
    facts_->setText(facts.join(QLatin1Char('\n')));
    go_to(is_same_data ? sample_ : 0);
    show_numbers();
    show_batch();
    show_labels();
  }
  show_findings();
  emit shown();
}

void DataPreview::go_to(int sample) {
  const Preview* const now = preview();
  if (!now) return;
  const auto n = static_cast<int>(now->samples.size());
  sample_ = std::clamp(sample, 0, std::max(n - 1, 0));
  previous_->setEnabled(sample_ > 0);
  next_->setEnabled(sample_ + 1 < n);
  show_sample();
}

void DataPreview::show_sample() {
  const Preview& now = *preview();
  if (now.samples.empty()) {
    place_->setText(tr("There is no text."));
    return;
  }
  const PreviewSample& sample = now.samples[static_cast<size_t>(sample_)];
  QString place =
      tr("Text %1 of the first %2").arg(sample.example + 1).arg(now.samples.back().example + 1);
  if (sample.n_parts > 1)
    place = tr("%1, part %2 of %3").arg(place).arg(sample.part + 1).arg(sample.n_parts);
  place_->setText(place);
  QStringList learnt = {tr("%n token(s).", nullptr, static_cast<int>(sample.tokens.size()))};
  if (sample.has_answer)
    learnt << tr("Label: %1.").arg(isolated(to_text(sample.answer)));
  else if (sample.n_trained() > 0)
    learnt << tr("%n of them are trained on (underlined).", nullptr,
                 static_cast<int>(sample.n_trained()));
  else
    learnt << tr("\u26A0 Nothing of it is trained on.");
  if (sample.is_truncated) learnt << tr("\u26A0 It is cut to the longest text allowed.");
  if (sample.is_held_out) learnt << tr("It is held out for evaluation.");
  learnt_->setText(learnt.join(QLatin1Char(' ')));
  fields_->setRowCount(0);
  for (const auto& [name, value] : rows_of(sample)) {
    const int row = fields_->rowCount();
    fields_->insertRow(row);
    fields_->setItem(row, 0, cell(name));
    constexpr int kShown = 2000;
    fields_->setItem(row, 1, cell(shortened(value, kShown)));
    fields_->item(row, 1)->setToolTip(shortened(value, kShown));
  }
  fields_->findChild<ColumnFit*>()->fit();
  fit_fields();
  text_->set_sample(sample);
  tokens_->set_sample(sample);
}

void DataPreview::fit_fields() {
  constexpr int kMostLines = 9;
  fields_->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  fields_->resizeRowsToContents();
  const int needed = fields_->verticalHeader()->length() + 2 * fields_->frameWidth() + 2;
  const int most = kMostLines * fields_->fontMetrics().lineSpacing();
  if (needed > most) fields_->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOn);
  fields_->setFixedHeight(std::min(needed, most));
}

/** Above the tabs: they concern all of the texts. */
void DataPreview::show_findings() {
  qDeleteAll(findings_->findChildren<Notice*>(Qt::FindDirectChildrenOnly));
  const Preview* const now = preview();
  findings_->setVisible(now && !now->findings.empty());
  if (!now) return;
  for (const PreflightFinding& finding : now->findings) {
    const QString hint = service_words(to_text(finding.hint));
    const bool asks = hint.endsWith('?') || hint.endsWith(QStringLiteral("？"));
    auto* notice = new Notice;
    notice->say(finding.gravity == Gravity::error ? Notice::Kind::error : Notice::Kind::warning,
                (asks ? tr("%1: %2") : tr("%1: %2."))
                    .arg(sentence(service_words(to_text(finding.text))), hint));
    findings_column_->addWidget(notice);
  }
}

void DataPreview::show_numbers() {
  const Preview& now = *preview();
  const service::PreviewNumbers& numbers = now.numbers;
  const int64_t n = numbers.n_sequences;
  const QLocale c = QLocale::c();
  QStringList lines;
  lines << (now.is_of_all
                ? tr("All texts that are trained on: %1, %2 tokens on average, at most %3.")
                : tr("The first texts: %1, %2 tokens on average, at most %3."))
               .arg(
                   c.toString(static_cast<qlonglong>(n)),
                   c.toString(
                       n > 0 ? static_cast<double>(numbers.n_tokens) / static_cast<double>(n) : 0.0,
                       'f', 1),
                   c.toString(static_cast<qlonglong>(numbers.n_longest)));
  const auto count = [&](const QString& text, int64_t part) {
    const QString said = text.arg(c.toString(static_cast<qlonglong>(part)), percent(part, n));
    lines << (part > 0 ? tr("\u26A0 %1").arg(said) : said);
  };
  count(tr("Cut to the longest text allowed: %1 (%2 %)."), numbers.n_truncated);
  if (numbers.n_untrained)
    count(tr("Texts with nothing to learn: %1 (%2 %)."), *numbers.n_untrained);
  const auto& uncut = outcome_->uncut;
  if (now.is_of_all) {
    const auto tokens = [&](int64_t count) { return c.toString(static_cast<qlonglong>(count)); };
    const service::PreviewNumbers& whole = uncut ? *uncut : numbers;
    const QString field = label_of(*config::find_option("max_length").option);
    // Texts that the model's own limit cuts are longer than is known.
    const bool is_beyond = uncut && whole.n_longest >= outcome_->uncut_max_length;
    const auto holding = [&](int64_t count) {
      return is_beyond && count >= whole.n_longest ? tr("none") : tokens(count);
    };
    if (uncut && numbers.n_truncated > 0)
      lines << (is_beyond
                    ? tr("Before they are cut the longest has %1 tokens or more, which is all "
                         "that the model takes.")
                    : tr("Before they are cut the longest has %1 tokens."))
                   .arg(tokens(whole.n_longest));
    // Windows and filled sequences have the length that they are given.
    const bool are_whole_texts = numbers.n_truncated == 0 && numbers.n_longest < now.max_length;
    if (uncut || are_whole_texts)
      lines << tr("“%1” that holds 95 % of them whole: %2; 99 %: %3; all: %4.")
                   .arg(field, holding(whole.n_tokens_95), holding(whole.n_tokens_99),
                        holding(whole.n_longest));
  }
  numbers_->setText(lines.join(QLatin1Char('\n')));
  chart_->set_numbers(uncut ? *uncut : numbers, now.max_length);
}

void DataPreview::show_labels() {
  const Preview& now = *preview();
  const std::vector<int64_t>& counts = now.numbers.label_counts;
  tabs_->setTabVisible(kLabelsTab, !now.labels.empty());
  tabs_->setTabEnabled(kLabelsTab, !counts.empty());
  tabs_->setTabToolTip(
      kLabelsTab, counts.empty() ? tr("They are counted once all texts are read.") : QString());
  labels_->setRowCount(static_cast<int>(counts.size()));
  const int64_t all = std::max<int64_t>(std::reduce(counts.begin(), counts.end()), 1);
  // The most frequent first.
  std::vector<size_t> order(counts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), [&](size_t i) { return counts[i]; });
  for (int row = 0; row < labels_->rowCount(); ++row) {
    const size_t at = order[static_cast<size_t>(row)];
    const double share = static_cast<double>(counts[at]) / static_cast<double>(all);
    const QString name = to_text(now.labels[at]);
    auto* bar = new QTableWidgetItem;
    bar->setData(ScoreBar::share_role, share);
    bar->setText(
        tr("%1 (%2 %)")
            .arg(QLocale().toString(static_cast<qlonglong>(counts[at])), percent(counts[at], all)));
    bar->setData(Qt::AccessibleTextRole, tr("%1: %2", "label and count").arg(name, bar->text()));
    labels_->setItem(row, 0, cell(name));
    labels_->setItem(row, 1, bar);
  }
}

void DataPreview::show_batch() {
  const Preview& now = *preview();
  tabs_->setTabEnabled(2, now.first_batch.has_value());
  tabs_->setTabToolTip(2,
                       now.first_batch ? QString() : tr("It is known once all texts are counted."));
  batch_->setRowCount(0);
  if (!now.first_batch) return;
  const service::PreviewBatch& batch = *now.first_batch;
  QStringList said = {
      tr("The first step: %n sample(s),", nullptr, static_cast<int>(batch.n_samples)),
      tr("%n token(s).", nullptr, static_cast<int>(batch.n_tokens))};
  if (batch.n_trained_tokens > 0)
    said << tr("%n of them are trained on.", nullptr, static_cast<int>(batch.n_trained_tokens));
  if (batch.is_shortened) said << tr("The first ones are shown.");
  batch_words_->setText(said.join(QLatin1Char(' ')));
  batch_->setRowCount(static_cast<int>(batch.rows.size()));
  for (int row = 0; row < batch_->rowCount(); ++row) {
    const PreviewSample& sequence = batch.rows[static_cast<size_t>(row)].sequence;
    batch_->setItem(row, 0, cell(QString::number(sequence.example + 1), true));
    batch_->setItem(row, 1, cell(QString::number(sequence.tokens.size()), true));
    batch_->setItem(
        row, 2,
        cell(sequence.has_answer ? tr("the label") : QString::number(sequence.n_trained()),
             !sequence.has_answer));
    batch_->setItem(row, 3, cell(to_text(sequence.answer)));
    batch_->setItem(row, 4, cell(shortened(to_text(sequence.text), 160)));
  }
}

}  // namespace ferry::gui
