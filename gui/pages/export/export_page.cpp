#include "gui/pages/export/export_page.h"

#include <QAction>
#include <QComboBox>
#include <QDesktopServices>
#include <QFileDialog>
#include <QHeaderView>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QTableWidget>
#include <QUrl>
#include <QVBoxLayout>

#include "gui/models/runs/run_words.h"
#include "gui/models/settings/option_text.h"
#include "gui/models/text.h"
#include "gui/widgets/column_fit.h"
#include "gui/widgets/look.h"
#include "gui/widgets/notice.h"
#include "gui/widgets/runs/run_picker.h"
#include "src/config/config.h"

namespace ferry::gui {

namespace fs = std::filesystem;

namespace {

constexpr int kWatchMs = 300, kTypingMs = 250, kSteps = 1000;

}  // namespace

ExportPage::ExportPage(Shared& shared, QWidget* parent)
    : Page(shared, parent), looking_(this), watching_(this), process_(this) {
  auto* column = new QVBoxLayout(this);
  column->addWidget(heading_label(tr("Export"), kTitle));
  column->addWidget(note_label(tr(
      "Writes a trained model as a Hugging Face folder for transformers, or as one GGUF file for "
      "llama.cpp. An adapter is merged into its model. The run stays as it is.")));
  picker_ = new RunPicker(shared.runs, shared.settings, RunPicker::For::model);
  column->addWidget(picker_);
  column->addWidget(make_form());
  column->addWidget(make_result());
  column->addWidget(make_about(), 1);
  column->addStretch(0);
  const int gap = fontMetrics().height();
  column->setSpacing(gap * 2 / 3);
  column->setContentsMargins(gap, gap, gap, gap);

  timer_.setInterval(kWatchMs);
  typing_.setInterval(kTypingMs);
  typing_.setSingleShot(true);
  connect(&timer_, &QTimer::timeout, this, &ExportPage::watch_progress);
  connect(&typing_, &QTimer::timeout, this, &ExportPage::look);
  connect(picker_, &RunPicker::chosen, this, &ExportPage::take_model);
  connect(&process_, &FerryProcess::text_came, this,
          [this](const QString& text) { verified_ += text; });
  connect(&process_, &FerryProcess::finished, this, [this] { end({}); });
  connect(&process_, &FerryProcess::failed, this, &ExportPage::end);

  export_action_ = new QAction(tr("Export the model"), this);
  export_action_->setShortcut(QKeySequence(Qt::CTRL | Qt::Key_E));
  verify_action_ = new QAction(tr("Verify the run"), this);
  for (QAction* action : {export_action_, verify_action_}) {
    action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
    addAction(action);
  }
  connect(export_action_, &QAction::triggered, this, &ExportPage::begin_export);
  connect(verify_action_, &QAction::triggered, this, &ExportPage::begin_verify);
  show_form();
  update_buttons();
}

QWidget* ExportPage::make_form() {
  auto* box = new QWidget;
  auto* column = new QVBoxLayout(box);
  column->setContentsMargins(0, 0, 0, 0);
  auto* row = new QHBoxLayout;
  target_ = new QLineEdit;
  target_->setObjectName("target");
  QLabel* label = new TextLabel(tr("Write &to"));
  label->setBuddy(target_);
  QLabel* form_label = new TextLabel(tr("&Write as"));
  // All fields begin at the same place.
  int width = 0;
  for (const QLabel* one : {picker_->run_label(), label, form_label})
    width = std::max(width, one->sizeHint().width());
  for (QLabel* one : {picker_->run_label(), label, form_label})
    one->setMinimumWidth(width);
  browse_ = new QPushButton(tr("&Browse..."));
  browse_->setObjectName("browse_target");
  row->addWidget(label);
  row->addWidget(target_, 1);
  row->addWidget(browse_);
  column->addWidget(make_options(form_label));
  column->addLayout(row);
  room_ = note_label();
  room_->setObjectName("room");
  column->addWidget(room_);
  auto* buttons = new QHBoxLayout;
  export_button_ = new QPushButton(tr("&Export"));
  export_button_->setObjectName("export_button");
  export_button_->setDefault(true);
  verify_button_ = new QPushButton(tr("Ver&ify run"));
  verify_button_->setObjectName("verify_button");
  verify_button_->setToolTip(
      tr("Reads the run's checkpoints and compares their checksums with those that were kept."));
  cancel_button_ = new QPushButton(tr("&Cancel"));
  cancel_button_->setObjectName("cancel_button");
  doing_text_ = note_label();
  doing_text_->setObjectName("doing");
  doing_text_->setWordWrap(false);
  doing_text_->setAlignment(Qt::AlignLeading | Qt::AlignVCenter);
  progress_ = new QProgressBar;
  progress_->setObjectName("progress");
  progress_->setAccessibleName(tr("How much is written"));
  buttons->addWidget(export_button_);
  buttons->addWidget(verify_button_);
  buttons->addWidget(cancel_button_);
  buttons->addWidget(progress_, 1);
  buttons->addWidget(doing_text_);
  buttons->addStretch(0);
  column->addLayout(buttons);
  // Below the buttons, which stay where they are.
  trouble_ = new Notice;
  trouble_->setObjectName("target_trouble");
  column->addWidget(trouble_);
  message_ = new Notice;
  message_->setObjectName("message");
  column->addWidget(message_);
  connect(target_, &QLineEdit::textChanged, this, [this] {
    check_.reset();
    typing_.start();
    update_buttons();
  });
  connect(browse_, &QPushButton::clicked, this, &ExportPage::browse);
  connect(export_button_, &QPushButton::clicked, this, &ExportPage::begin_export);
  connect(verify_button_, &QPushButton::clicked, this, &ExportPage::begin_verify);
  connect(cancel_button_, &QPushButton::clicked, this, &ExportPage::cancel);
  return box;
}

/** The form of the result, and what `ferry export` takes for it. */
QWidget* ExportPage::make_options(QLabel* label) {
  auto* box = new QWidget;
  auto* row = new QHBoxLayout(box);
  row->setContentsMargins(0, 0, 0, 0);
  form_ = new QComboBox;
  form_->setObjectName("export_form");
  form_->setAccessibleName(tr("What is written"));
  form_->addItem(tr("Hugging Face folder"));
  form_->addItem(tr("GGUF file"));
  label->setBuddy(form_);
  row->addWidget(label);
  row->addWidget(form_);
  for (const char* key : {"dtype", "max_shard_size", "gguf_type"})
    add_option(*row, key);
  row->addStretch(1);
  connect(form_, &QComboBox::currentIndexChanged, this, &ExportPage::take_form);
  return box;
}

void ExportPage::add_option(QHBoxLayout& row, const char* key) {
  const config::Option* const option = config::find_option(key).option;
  if (!option || !(option->verbs & config::kExport)) return;
  QWidget* field = nullptr;
  if (option->type == config::Type::choice) {
    auto* combo = new QComboBox;
    for (const std::string_view choice : option->choices)
      combo->addItem(to_text(choice), to_text(choice));
    combo->setCurrentIndex(combo->findData(to_text(option->value)));
    field = combo;
  } else {
    auto* line = new QLineEdit;
    line->setPlaceholderText(tr("default %1").arg(isolated(to_text(option->value))));
    line->setMaximumWidth(20 * line->fontMetrics().averageCharWidth());
    field = line;
  }
  field->setObjectName("export_" + QString::fromLatin1(key));
  field->setAccessibleName(label_of(*option));
  field->setToolTip(help_of(*option));
  auto* label = new TextLabel(label_of(*option));
  label->setBuddy(field);
  row.addWidget(label);
  row.addWidget(field);
  const bool is_of_gguf = key == std::string_view("gguf_type");
  if (auto* const combo = qobject_cast<QComboBox*>(field); combo && is_of_gguf)  // sizes differ
    connect(combo, &QComboBox::currentIndexChanged, this, &ExportPage::look);
  options_.push_back({key, label, field, is_of_gguf});
}

QString ExportPage::value_of(const Field& field) const {
  const auto* const combo = qobject_cast<const QComboBox*>(field.field);
  return combo ? combo->currentData().toString()
               : qobject_cast<const QLineEdit*>(field.field)->text().trimmed();
}

/** As the command takes them; those at their default are left out. */
QStringList ExportPage::option_words() const {
  const bool is_gguf = wanted().is_gguf;
  QStringList words;
  if (is_gguf) words << "--format=gguf";
  for (const Field& field : options_) {
    const QString value = value_of(field);
    if (field.is_of_gguf == is_gguf && !value.isEmpty() &&
        value != to_text(config::find_option(field.key).option->value))
      words << "--" + QString::fromStdString(field.key).replace('_', '-') + '=' + value;
  }
  return words;
}

ExportForm ExportPage::wanted() const {
  ExportForm wanted = {.is_gguf = form_->currentIndex() == 1};
  for (const Field& field : options_)
    if (field.key == "gguf_type") wanted.gguf_type = value_of(field).toStdString();
  return wanted;
}

/** Words and fields of the chosen form. */
void ExportPage::show_form() {
  const bool is_gguf = wanted().is_gguf;
  for (const Field& field : options_) {
    field.label->setVisible(field.is_of_gguf == is_gguf);
    field.field->setVisible(field.is_of_gguf == is_gguf);
  }
  target_->setAccessibleName(is_gguf ? tr("File to write") : tr("Folder to write to"));
  target_->setPlaceholderText(is_gguf ? tr("A new file whose name ends in .gguf")
                                      : tr("A folder that is new, or empty"));
}

void ExportPage::take_form() {
  show_form();
  take_model();
}

QWidget* ExportPage::make_result() {
  result_ = new QWidget;
  auto* column = new QVBoxLayout(result_);
  column->setContentsMargins(0, 0, 0, 0);
  result_title_ = heading_label({}, 1.1);
  result_title_->setObjectName("result_title");
  result_text_ = note_label();
  result_text_->setObjectName("result_text");
  result_text_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  result_text_->setFocusPolicy(Qt::ClickFocus);
  open_button_ = new QPushButton(tr("&Open folder"));
  open_button_->setObjectName("open_button");
  try_button_ = new QPushButton(tr("Tr&y it"));
  try_button_->setObjectName("try_button");
  auto* buttons = new QHBoxLayout;
  buttons->addWidget(open_button_);
  buttons->addWidget(try_button_);
  buttons->addStretch(1);
  column->addWidget(result_title_);
  column->addWidget(result_text_);
  column->addLayout(buttons);
  connect(open_button_, &QPushButton::clicked, this, [this] {
    const bool is_file = wanted().is_gguf;
    QDesktopServices::openUrl(
        QUrl::fromLocalFile(path_text(is_file ? exported_.parent_path() : exported_)));
  });
  connect(try_button_, &QPushButton::clicked, this,
          [this] { emit shared().navigator.try_wanted(exported_); });
  result_->hide();
  return result_;
}

QWidget* ExportPage::make_about() {
  about_ = new QWidget;
  auto* column = new QVBoxLayout(about_);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(heading_label(tr("What is written")));
  about_text_ = note_label();
  about_text_->setObjectName("about_text");
  column->addWidget(about_text_);
  files_ = new QTableWidget(0, 2);
  files_->setObjectName("files");
  files_->setAccessibleName(tr("Files that are written"));
  files_->setHorizontalHeaderLabels({tr("File"), tr("Size")});
  files_->horizontalHeaderItem(1)->setTextAlignment(kNumberSide);
  files_->verticalHeader()->hide();
  files_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  files_->setSelectionBehavior(QAbstractItemView::SelectRows);
  files_->setAlternatingRowColors(true);
  files_->setShowGrid(false);
  files_->setTabKeyNavigation(false);
  new ColumnFit(files_, {.rest = 0});
  column->addWidget(files_, 1);
  loading_title_ = heading_label({});
  column->addWidget(loading_title_);
  loading_ = new QPlainTextEdit;
  loading_->setObjectName("loading");
  loading_->setReadOnly(true);
  loading_->setTabChangesFocus(true);
  loading_->setLineWrapMode(QPlainTextEdit::NoWrap);
  show_code(*loading_);
  loading_->setFixedHeight(QFontMetrics(loading_->font()).lineSpacing() * 6);
  column->addWidget(loading_);
  about_->hide();
  return about_;
}

void ExportPage::show_about() {
  const bool has_model = check_ && !check_->files.empty();
  if (check_) about_->setVisible(has_model);
  if (!has_model) return;
  const ModelForm& form = check_->form;
  const QString kind = form.kind == FormKind::classification ? tr("classifies texts")
                       : form.kind == FormKind::tokens       ? tr("marks words")
                       : form.kind == FormKind::question     ? tr("answers questions")
                       : form.kind == FormKind::generation   ? tr("continues texts")
                                                             : tr("fills masked words");
  about_text_->setText(
      form.labels.isEmpty()
          ? tr("A %1 model that %2.").arg(isolated(form.family), kind)
          : tr("A %1 model that %2: %3.")
                .arg(isolated(form.family), kind, isolated(listed(form.labels.mid(0, 12)))));
  files_->setRowCount(static_cast<int>(check_->files.size()));
  for (int row = 0; row < files_->rowCount(); ++row) {
    const auto& [name, n_bytes] = check_->files[static_cast<size_t>(row)];
    auto* size = new QTableWidgetItem(bytes_text(n_bytes));
    size->setTextAlignment(kNumberSide);
    files_->setItem(row, 0, new QTableWidgetItem(name));
    files_->setItem(row, 1, size);
  }
  const bool is_gguf = wanted().is_gguf;
  loading_title_->setText(is_gguf ? tr("How llama.cpp and Ollama load it")
                                  : tr("How transformers loads it"));
  loading_->setAccessibleName(is_gguf ? tr("Commands that load the model")
                                      : tr("Python that loads the model"));
  loading_->setPlainText(is_gguf ? gguf_loading_lines(target()) : loading_lines(form, target()));
}

QList<QAction*> ExportPage::page_actions() {
  return {export_action_, verify_action_};
}

void ExportPage::set_active(bool active) {
  if (!active) return;
  picker_->refresh();
  if (doing_ == Doing::nothing) look();
}

void ExportPage::show_run(const fs::path& run) {
  picker_->choose(run);
}

fs::path ExportPage::target() const {
  return to_path(target_->text().trimmed());
}

// --- Before it begins --------------------------------------------------------------------------

void ExportPage::take_model() {
  if (doing_ == Doing::nothing) {
    message_->clear();
    result_->hide();
    export_button_->setDefault(true);
    // Another model wants another folder.
    if (target_->text() == suggested_ && !exported_.empty() && target() == exported_) {
      const QSignalBlocker blocker(target_);
      target_->clear();
    }
  }
  suggest_target();
  look();
}

/** Beside the runs, and named after the run; what was typed stays. */
void ExportPage::suggest_target() {
  if (!target_->text().isEmpty() && target_->text() != suggested_) return;
  fs::path name = picker_->run().empty() ? picker_->model() : picker_->run();
  if (name.empty()) return;
  if (!name.has_filename()) name = name.parent_path();
  const fs::path beside = shared().settings.runs_directory().parent_path() / "exported";
  std::string leaf = name.filename().string();
  if (picker_->model() != picker_->run() && !picker_->run().empty())
    leaf += "_" + picker_->model().filename().string();
  const char* const ending = wanted().is_gguf ? ".gguf" : "";
  fs::path free = beside / (leaf + ending);
  std::error_code error;
  for (int n = 2; fs::exists(free, error); ++n)
    free = beside / (leaf + "-" + std::to_string(n) + ending);
  suggested_ = path_text(free);
  target_->setText(suggested_);
}

void ExportPage::look() {
  typing_.stop();
  // The rest of a cancelled export goes first: a new one would lose its files with it.
  if (picker_->model().empty() || n_removing_ > 0) return update_buttons();
  check_.reset();
  looking_.ask([model = picker_->model(), to = target(),
                form = wanted()] { return check_export(model, to, form); },
               [this](ExportCheck check, const QString& trouble) {
                 if (!trouble.isEmpty()) check.trouble = trouble;
                 take_check(check);
               });
  update_buttons();
}

void ExportPage::take_check(const ExportCheck& check) {
  check_ = check;
  show_about();
  update_buttons();
}

void ExportPage::update_buttons() {
  const bool is_idle = doing_ == Doing::nothing;
  const bool is_good = check_ && check_->trouble.isEmpty();
  picker_->setEnabled(is_idle);
  form_->setEnabled(is_idle);
  for (const Field& field : options_)
    field.field->setEnabled(is_idle);
  target_->setEnabled(is_idle);
  browse_->setEnabled(is_idle);
  // The folder that was written just now is full, and nobody's fault.
  const bool is_done = result_->isVisibleTo(this) && target() == exported_;
  export_button_->setEnabled(is_idle && is_good && !is_done && !picker_->model().empty());
  export_action_->setEnabled(export_button_->isEnabled());
  verify_button_->setEnabled(is_idle && !picker_->run().empty());
  verify_action_->setEnabled(verify_button_->isEnabled());
  cancel_button_->setVisible(!is_idle);
  progress_->setVisible(!is_idle);
  doing_text_->setVisible(!is_idle);
  if (!is_idle) return trouble_->clear();
  if (check_ && !check_->trouble.isEmpty() && !is_done)
    trouble_->show_error(check_->trouble);
  else
    trouble_->clear();
  room_->setText(is_done ? wanted().is_gguf ? tr("Choose another file to export it again.")
                                            : tr("Choose another folder to export it again.")
                 : picker_->model().empty() ? tr("Choose a run or a model above.")
                 : !check_                  ? tr("Looking...")
                 : !is_good                 ? QString()
                 : check_->free_bytes < 0
                     ? tr("%1 will be written.").arg(bytes_text(check_->needed_bytes))
                     : tr("%1 will be written; %2 are free there.")
                           .arg(bytes_text(check_->needed_bytes), bytes_text(check_->free_bytes)));
  room_->setVisible(!room_->text().isEmpty());
}

void ExportPage::browse() {
  if (wanted().is_gguf) {
    // The page itself says where a file is there already.
    const QString file = QFileDialog::getSaveFileName(
        this, tr("GGUF file to write"), target_->text().trimmed(), tr("GGUF files (*.gguf)"),
        nullptr, QFileDialog::DontConfirmOverwrite);
    if (!file.isEmpty()) target_->setText(file);
    return;
  }
  const QString above = QFileDialog::getExistingDirectory(
      this, tr("Folder in which the model gets a new one"),
      path_text(target().parent_path().empty() ? shared().settings.runs_directory()
                                               : target().parent_path()));
  if (above.isEmpty()) return;
  // An empty folder is the target itself.
  std::error_code error;
  const fs::path chosen = to_path(above);
  const fs::path leaf = target().empty() ? fs::path("exported") : target().filename();
  target_->setText(path_text(fs::is_empty(chosen, error) ? chosen : chosen / leaf));
}

// --- While it goes on --------------------------------------------------------------------------

void ExportPage::begin_export() {
  if (!export_button_->isEnabled()) return;
  doing_ = Doing::exporting;
  exported_ = target();
  result_->hide();
  message_->clear();
  progress_->setRange(0, check_->needed_bytes > 0 ? kSteps : 0);
  progress_->setValue(0);
  doing_text_->setText(tr("Writes and reads back..."));
  process_.start(QStringList{"export", "--model=" + path_text(picker_->model()),
                             "--output=" + path_text(exported_)} +
                     option_words(),
                 FerryProcess::Output::text);
  timer_.start();
  update_buttons();
}

void ExportPage::begin_verify() {
  if (!verify_button_->isEnabled()) return;
  doing_ = Doing::verifying;
  verified_.clear();
  result_->hide();
  message_->clear();
  progress_->setRange(0, 0);
  doing_text_->setText(tr("Reads the checkpoints..."));
  process_.start({"runs", "check", path_text(picker_->run())}, FerryProcess::Output::text);
  update_buttons();
}

void ExportPage::watch_progress() {
  if (doing_ != Doing::exporting || watching_.is_busy()) return;
  // The file has its size from the start.
  if (wanted().is_gguf) return show_progress({.n_bytes = process_.n_bytes_written()});
  watching_.ask([partial = partial_of(exported_)] { return written_in(partial); },
                [this](const Written& written, const QString&) { show_progress(written); });
}

void ExportPage::show_progress(const Written& written) {
  if (doing_ != Doing::exporting || !check_ || check_->needed_bytes <= 0) return;
  const double share =
      static_cast<double>(written.n_bytes) / static_cast<double>(check_->needed_bytes);
  progress_->setValue(static_cast<int>(std::min(1., share) * kSteps));
  doing_text_->setText(
      share < 1 ? tr("%1 of %2").arg(bytes_text(written.n_bytes), bytes_text(check_->needed_bytes))
                : tr("Reads it back..."));
}

void ExportPage::cancel() {
  if (doing_ == Doing::nothing) return;
  const bool was_export = doing_ == Doing::exporting;
  process_.cancel();
  timer_.stop();
  doing_ = Doing::nothing;
  message_->show_warning(was_export ? tr("The export was cancelled. Nothing of it is left.")
                                    : tr("The check was cancelled."));
  watching_.forget();
  if (was_export) {
    check_.reset();
    ++n_removing_;
    // The check before saw no such directory: it is this export's own.
    removals_.emplace_back([this, target = exported_] {
      remove_partial(target);
      QMetaObject::invokeMethod(
          this,
          [this] {
            --n_removing_;
            look();
          },
          Qt::QueuedConnection);
    });
  }
  update_buttons();
}

void ExportPage::end(const QString& trouble) {
  const Doing was = std::exchange(doing_, Doing::nothing);
  timer_.stop();
  if (!trouble.isEmpty()) {
    message_->show_error(trouble);
    look();
  } else if (was == Doing::verifying) {
    message_->show_done(verified_.trimmed().isEmpty() ? tr("The checksums are as they were kept.")
                                                      : verified_.trimmed());
  } else {
    watching_.ask([to = exported_] { return written_in(to); },
                  [this](const Written& written, const QString&) { show_result(written); });
    look();
  }
  update_buttons();
}

void ExportPage::show_result(const Written& written) {
  result_title_->setText(tr("The model is exported"));
  result_text_->setText(
      wanted().is_gguf
          ? tr("%1\n%2. Each value was read back and is the model's, rounded to the type of the "
               "file.")
                .arg(shown_path(exported_), bytes_text(written.n_bytes))
          : tr("%1\n%2 in %n file(s). Each tensor was read back and is the same as in the run.",
               nullptr, static_cast<int>(written.n_files))
                .arg(shown_path(exported_), bytes_text(written.n_bytes)));
  try_button_->setVisible(!wanted().is_gguf);  // models that Ferry loads are folders
  result_->show();
  // The name of the folder stays, since the text below tells how to load that folder. A second
  // click then writes no second copy.
  open_button_->setDefault(true);
  open_button_->setFocus();
  update_buttons();
}

}  // namespace ferry::gui
