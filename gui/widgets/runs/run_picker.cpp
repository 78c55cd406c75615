#include "gui/widgets/runs/run_picker.h"

#include <QComboBox>
#include <QCompleter>
#include <QFileDialog>
#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSignalBlocker>

#include "gui/models/runs/run_words.h"
#include "gui/models/text.h"
#include "gui/widgets/look.h"
#include "src/files/paths.h"

namespace ferry::gui {

namespace fs = std::filesystem;

namespace {

fs::path tidy(const fs::path& path) {
  std::error_code error;
  fs::path whole = fs::weakly_canonical(fs::absolute(path, error), error);  // as the list has it
  if (error) whole = fs::absolute(path, error).lexically_normal();
  return whole.has_filename() ? whole : whole.parent_path();
}

bool is_run(const fs::path& path) {
  std::error_code error;
  return fs::exists(path / "run.json", error);
}

QComboBox* make_combo(const char* name, const QString& accessible) {
  auto* combo = new QComboBox;
  combo->setObjectName(name);
  combo->setAccessibleName(accessible);
  // Long names end in dots; they do not make the page wide.
  combo->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  combo->setMinimumContentsLength(24);
  return combo;
}

}  // namespace

RunPicker::RunPicker(RunListModel& list, AppSettings& settings, For what, QWidget* parent)
    : QWidget(parent), list_(list), settings_(settings), what_(what), background_(this) {
  runs_ = make_combo("run_picker", tr("Run"));
  runs_->setEditable(true);
  runs_->setInsertPolicy(QComboBox::NoInsert);
  runs_->completer()->setFilterMode(Qt::MatchContains);
  runs_->completer()->setCompletionMode(QCompleter::PopupCompletion);
  runs_->lineEdit()->setPlaceholderText(tr("Type a part of a run's name"));
  runs_->lineEdit()->setAccessibleName(tr("Run"));
  state_ = note_label();
  state_->setObjectName("run_picker_state");

  auto* grid = new QGridLayout(this);
  grid->setContentsMargins(0, 0, 0, 0);
  run_label_ = new TextLabel(tr("&Run"));
  run_label_->setBuddy(runs_);
  grid->addWidget(run_label_, 0, 0);
  grid->addWidget(runs_, 0, 1);
  if (what_ == For::model) {
    models_ = make_combo("model_picker", tr("Model of the run"));
    auto* model_label = new TextLabel(tr("&Model"));
    model_label->setBuddy(models_);
    grid->addWidget(model_label, 0, 2);
    grid->addWidget(models_, 0, 3);
    auto* other = new QPushButton(tr("Fol&der..."));
    other->setObjectName("browse_model");
    other->setToolTip(tr("Choose a model's folder that is no run"));
    grid->addWidget(other, 0, 4);
    grid->setColumnStretch(3, 1);
    connect(other, &QPushButton::clicked, this, &RunPicker::browse);
    connect(models_, &QComboBox::activated, this, &RunPicker::choose_model);
  }
  grid->setColumnStretch(1, 2);
  grid->addWidget(state_, 1, 1, 1, what_ == For::model ? 4 : 1);
  connect(&list_, &RunListModel::searched, this, &RunPicker::read);
  connect(runs_, &QComboBox::activated, this, &RunPicker::choose_row);
  connect(runs_->lineEdit(), &QLineEdit::editingFinished, this, &RunPicker::choose_typed);
  fill_runs();
}

RunPicker::~RunPicker() {
  // A field that had the focus says at its end that it was edited.
  runs_->lineEdit()->disconnect(this);
}

void RunPicker::refresh() {
  is_wanted_ = true;
  list_.refresh();
}

void RunPicker::read(bool is_last) {
  if (!is_wanted_) return;
  is_wanted_ = !is_last;
  std::vector<fs::path> runs;
  for (int row = 0; row < list_.rowCount(); ++row)
    runs.push_back(list_.path_of(row));
  background_.ask([runs = std::move(runs)] { return read_run_choices(runs); },
                  [this](std::vector<RunChoice> choices, const QString& trouble) {
                    take(std::move(choices), trouble);
                  });
}

void RunPicker::take(std::vector<RunChoice> choices, const QString& trouble) {
  if (!list_.is_loading()) has_read_ = true;
  choices_ = std::move(choices);
  // A run that was chosen by its path may lie where nobody looks.
  if (!run_.empty() && row_of(run_) < 0)
    if (RunChoice own = read_run_choice(run_); own.phase != "unreadable")
      choices_.insert(choices_.begin(), std::move(own));
  const bool is_typing = runs_->lineEdit()->hasFocus() && runs_->lineEdit()->isModified();
  if (!is_typing) fill_runs();
  const fs::path was = model_;
  fill_models(model_);
  if (!trouble.isEmpty()) state_->setText(trouble);
  if (model_ != was) emit chosen();  // a checkpoint that its run has removed meanwhile
  emit runs_read();
}

QString RunPicker::name() const {
  return run_.empty() ? path_text(model_.filename()) : run_name(run_);
}

int RunPicker::row_of(const fs::path& run) const {
  for (size_t i = 0; i < choices_.size(); ++i)
    if (choices_[i].path == run) return static_cast<int>(i);
  return -1;
}

void RunPicker::fill_runs() {
  const QSignalBlocker blocker(runs_);
  runs_->clear();
  for (const RunChoice& choice : choices_) {
    runs_->addItem(tr("%1 (%2)").arg(choice.name, state_text(choice.phase)));
    runs_->setItemData(runs_->count() - 1, path_text(choice.path), Qt::ToolTipRole);
  }
  const int row = row_of(run_);
  runs_->setCurrentIndex(row);
  if (row < 0) runs_->setEditText({});
  state_->setText(!has_read_         ? tr("Looking for runs...")
                  : choices_.empty() ? tr("There are no runs yet.")
                                     : QString());
  state_->setVisible(!state_->text().isEmpty());
}

void RunPicker::fill_models(const fs::path& wanted) {
  if (!models_) return;
  const QSignalBlocker blocker(models_);
  models_->clear();
  const int row = row_of(run_);
  if (row >= 0) {
    const RunChoice& choice = choices_[static_cast<size_t>(row)];
    if (choice.has_final) models_->addItem(tr("Finished model"), path_text(choice.path));
    for (auto it = choice.checkpoints.rbegin(); it != choice.checkpoints.rend(); ++it)
      models_->addItem(tr("Checkpoint after %1 steps").arg(it->step), path_text(it->path));
    if (models_->count() == 0) models_->addItem(tr("No model yet"), path_text(choice.path));
  } else if (!model_.empty()) {
    models_->addItem(path_text(model_), path_text(model_));
  }
  models_->setEnabled(models_->count() > 0);
  const int at = models_->findData(path_text(wanted));
  models_->setCurrentIndex(at >= 0 ? at : models_->count() > 0 ? 0 : -1);
  if (at < 0 && models_->count() > 0) model_ = to_path(models_->currentData().toString());
}

void RunPicker::choose(const fs::path& path) {
  if (path.empty()) return;
  const fs::path given = tidy(path);
  const fs::path run = run_of_checkpoint(given);
  if (!is_run(run)) return set_chosen({}, given);
  // Its facts now, and not when all runs have been read: what comes next asks for them.
  if (row_of(run) < 0) choices_.insert(choices_.begin(), read_run_choice(run));
  set_chosen(run, given);
}

void RunPicker::set_chosen(const fs::path& run, const fs::path& model) {
  run_ = run;
  model_ = model;
  fill_runs();
  fill_models(model);
  runs_->lineEdit()->setModified(false);
  emit chosen();
}

void RunPicker::choose_row(int row) {
  if (row < 0 || row >= n_runs()) return;
  const fs::path& run = choices_[static_cast<size_t>(row)].path;
  if (run != run_) set_chosen(run, run);
}

/** Takes what was typed where it names one run; else the choice stays. */
void RunPicker::choose_typed() {
  if (!runs_->lineEdit()->isModified()) return;
  const QString typed = runs_->currentText().trimmed();
  int found = -1, n_found = 0;
  for (int row = 0; row < n_runs(); ++row) {
    const RunChoice& choice = choices_[static_cast<size_t>(row)];
    if (choice.name == typed || runs_->itemText(row) == typed) {
      found = row;
      n_found = 1;
      break;
    }
    if (choice.name.contains(typed, Qt::CaseInsensitive)) {
      found = row;
      ++n_found;
    }
  }
  if (typed.isEmpty() || n_found != 1)
    fill_runs();
  else if (choices_[static_cast<size_t>(found)].path == run_)
    fill_runs();
  else
    choose_row(found);
  runs_->lineEdit()->setModified(false);
}

void RunPicker::choose_model(int row) {
  const fs::path model = to_path(models_->itemData(row).toString());
  if (model == model_) return;
  model_ = model;
  emit chosen();
}

void RunPicker::browse() {
  const QString directory = QFileDialog::getExistingDirectory(
      this, tr("Folder of a model or a run"), path_text(settings_.runs_directory()));
  if (!directory.isEmpty()) choose(to_path(directory));
}

}  // namespace ferry::gui
