#include "gui/pages/new_run/new_run_page.h"

#include <QtWidgets>

#include "gui/models/process/ferry_command.h"
#include "gui/models/settings/option_text.h"
#include "gui/models/settings/settings_file.h"
#include "gui/models/text.h"
#include "gui/pages/new_run/model_panel.h"
#include "gui/pages/new_run/preset_picker.h"
#include "gui/pages/new_run/review_panel.h"
#include "gui/pages/new_run/step_list.h"
#include "gui/widgets/dropped_path.h"
#include "gui/widgets/forms/option_field.h"
#include "gui/widgets/forms/option_form.h"
#include "gui/widgets/look.h"
#include "src/files/paths.h"
#include "src/inputs/given_data.h"
#include "src/service/train_check.h"

namespace ferry::gui {

namespace fs = std::filesystem;

namespace {

constexpr int kSettleMs = 50, kSearchMs = 120;
constexpr const char *kStoredTexts = "new_run/texts", *kOtherTexts = "new_run/other_texts";

/** Settings that belong to the data and not to a method: a preset leaves them alone. */
const QStringList kDataKeys = {
    "dataset",        "eval_dataset",      "dataset_format", "dataset_encoding", "dataset_quoting",
    "dataset_header", "dataset_delimiter", "text_column",    "text_pair_column", "label_column"};

QMap<QString, QString> without_data(QMap<QString, QString> texts) {
  for (const QString& key : kDataKeys)
    texts.remove(key);
  return texts;
}

}  // namespace

NewRunPage::NewRunPage(Shared& shared, QWidget* parent)
    : Page(shared, parent), finding_(this), listing_(this), checking_(this) {
  settle_timer_.setSingleShot(true);
  settle_timer_.setInterval(kSettleMs);
  search_timer_.setSingleShot(true);
  search_timer_.setInterval(kSearchMs);
  make_actions();
  auto* const layout = new QVBoxLayout(this);
  const int margin = fontMetrics().height();
  layout->setContentsMargins(margin, margin, margin, margin);
  layout->addWidget(make_top());
  layout->addWidget(make_body(), 1);
  layout->addWidget(make_bottom());
  connect_settings();
  connect_launcher();
  const QMap<QString, QString> stored = kept_texts(kStoredTexts);
  if (!stored.isEmpty()) settings_.load_texts(stored);
  stored_texts_ = settings_.texts();
  setAcceptDrops(true);
  update_mode();
  update_problems();
}

NewRunPage::Step NewRunPage::step_of(const config::Option& option) {
  const std::string_view group = option.group;
  // A run that goes on begins with its checkpoint, as another one with its model.
  if (option.key == "resume_from_checkpoint" || option.key == "new_identity") return model_step;
  if (group == "Model") return model_step;
  if (group == "Data") return data_step;
  if (group == "Memory and placement" || group == "Threads" || group == "Hosts and restarts")
    return memory_step;
  if (group == "Output") return review_step;
  return method_step;
}

void NewRunPage::search(const QString& words) {
  if (words.isEmpty()) {
    if (hits_area_) stack_->setCurrentIndex(steps_->currentRow());
    return;
  }
  const bool is_new = !hits_area_;
  if (is_new) make_search();
  hits_->set_search(words);
  if (is_new) {
    QStringList keys;
    for (int row = 0; row < settings_.rowCount(); ++row)
      keys << to_text(settings_.option(row).key);
    hits_->set_keys(keys, true);
  }
  n_hits_->setText(hits_->n_shown() == 0
                       ? tr("No setting has “%1” in its name or help.").arg(words)
                       : tr("Settings with “%1”: %2").arg(words).arg(hits_->n_shown()));
  stack_->setCurrentWidget(hits_area_);
  hits_area_->ensureVisible(0, 0);
}

NewRunPage::Step NewRunPage::step() const {
  return static_cast<Step>(std::max(steps_->currentRow(), 0));
}

void NewRunPage::show_step(Step step) {
  make_step(step);
  if (steps_->currentRow() != step) {
    const QSignalBlocker quiet(steps_);
    steps_->setCurrentRow(step);
  }
  if (!search_->text().isEmpty()) {
    const QSignalBlocker quiet(search_);
    search_->clear();
    search_timer_.stop();
  }
  stack_->setCurrentIndex(step);
  back_action_->setEnabled(step != model_step);
  next_action_->setEnabled(step != review_step);
  back_->setEnabled(step != model_step);
  next_->setEnabled(step != review_step);
  help_->clear();
  if (step == review_step) check_training();
}

void NewRunPage::show_field(const QString& key) {
  const int row = settings_.row_of(key);
  if (row < 0) return;
  const Step step = step_of(settings_.option(row));
  show_step(step);
  OptionField* const field = forms_[step]->field(key);
  if (!field) return;
  field->editor()->setFocus(Qt::OtherFocusReason);
  show_help(key);  // also where it had the focus
  // The form lays itself out first where the field is new.
  QTimer::singleShot(0, field, [area = areas_[step], field] { area->ensureWidgetVisible(field); });
}

void NewRunPage::connect_settings() {
  connect(&settings_, &SettingsModel::settings_changed, this, &NewRunPage::on_change);
  connect(&settle_timer_, &QTimer::timeout, this, &NewRunPage::settle);
  connect(&presets_, &PresetModel::loaded, this, [this] {
    if (!preset_name_.isEmpty()) choose_preset(std::exchange(preset_name_, {}));
  });
  connect(qApp, &QCoreApplication::aboutToQuit, this, &NewRunPage::store);
}

void NewRunPage::on_change() {
  // Until the next plan what did not fit still does not: Start stays "Start anyway".
  if (!fits_) verdict_ = tr("Planning anew…");
  check_problem_.clear();
  if (settings_.texts() != message_texts_) show_message({});  // it was of other settings
  picker_->set_edited(without_data(settings_.texts()) != preset_texts_);
  update_problems();
  settle_timer_.start();
}

/** After the last of several changes. */
void NewRunPage::settle() {
  ask_found();
  show_defaults();
  emit draft_changed(settings_.valid_part());
  if (const auto& settled = settings_.settled())
    emit settings_changed(*settled);
  else if (const auto& problems = settings_.problems();
           !problems.empty() && settings_.is_missing(problems.front().key))
    emit unsettled(problems.front().text);
  if (step() == review_step && forms_[review_step]) check_training();
}

void NewRunPage::update_mode() {
  const bool all = shared().settings.shows_all_options();
  {
    const QSignalBlocker quiet(all_);
    (all ? all_ : basic_)->setChecked(true);
  }
  for (OptionForm* const form : forms_)
    if (form) form->set_shows_all(all);
}

void NewRunPage::show_help(const QString& key) {
  const config::Option& option = settings_.option(settings_.row_of(key));
  help_->setHtml(QStringLiteral("<b>%1.</b> %2")
                     .arg(label_of(option).toHtmlEscaped(), help_of(option).toHtmlEscaped()));
}

void NewRunPage::show_message(const QString& text, const QString& command) {
  message_texts_ = settings_.texts();
  message_text_->set_error(text);
  message_command_->setPlainText(command);
  message_command_->setVisible(!command.isEmpty());
  message_->setVisible(!text.isEmpty());
}

void NewRunPage::begin(const config::Config& settings) {
  preset_texts_.clear();
  picker_->set_current({});
  settings_.load(settings);
  show_message({});
  const auto& problems = settings_.problems();
  const int row = problems.empty() ? -1 : settings_.row_of(problems.front().key);
  show_step(row < 0 ? review_step : step_of(settings_.option(row)));
}

void NewRunPage::choose_preset(const QString& name) {
  if (!presets_.is_loaded()) {  // taken once they are read
    preset_name_ = name;
    return;
  }
  const config::Config* const settings = presets_.settings(presets_.row_of(name));
  if (!settings) return show_message(tr("The preset “%1” cannot be read.").arg(isolated(name)));
  QMap<QString, QString> kept;
  for (const QString& key : kDataKeys)
    if (settings_.is_changed(key) && !settings->is_set(key.toStdString()))
      kept[key] = settings_.text(key);
  config::Config taken = *settings;
  settings_.load(taken);
  QMap<QString, QString> texts = settings_.texts();
  if (kept.contains("eval_dataset")) texts.remove("eval_fraction");  // one takes the other's place
  preset_texts_ = without_data(texts);
  texts.insert(kept);
  settings_.load_texts(texts);
  picker_->set_current(name);
  show_message({});
}

void NewRunPage::load_settings(const fs::path& file) {
  config::Config settings;
  if (const auto trouble = words_of_trouble([&] { settings = read_settings_file(file); }))
    return show_message(*trouble);
  begin(settings);
  emit shared().navigator.said(tr("Settings of %1").arg(shown_path(file)));
}

void NewRunPage::save_settings(const fs::path& file) {
  const auto config = settings_.config();
  if (!config) return show_message(tr("Fix what is wrong first: a file holds valid settings."));
  const QString trouble = write_settings_file(file, *config);
  show_message(trouble);
  if (trouble.isEmpty()) emit shared().navigator.said(tr("Saved as %1").arg(shown_path(file)));
}

void NewRunPage::browse_load() {
  auto* const dialog = new QFileDialog(this, tr("Open settings"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setNameFilter(tr("Settings (*.toml)"));
  dialog->setFileMode(QFileDialog::ExistingFile);
  connect(dialog, &QFileDialog::fileSelected, this,
          [this](const QString& file) { load_settings(to_path(file)); });
  dialog->open();
}

void NewRunPage::browse_save() {
  auto* const dialog = new QFileDialog(this, tr("Save settings"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setNameFilter(tr("Settings (*.toml)"));
  dialog->setDefaultSuffix(QStringLiteral("toml"));
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  connect(dialog, &QFileDialog::fileSelected, this,
          [this](const QString& file) { save_settings(to_path(file)); });
  dialog->open();
}

void NewRunPage::add_to_queue() {
  if (const auto config = settings_.config()) emit queue_wanted(*config);
}

void NewRunPage::start() {
  const auto config = settings_.config();
  if (!config || is_starting_) return;
  show_message({});
  is_starting_ = true;
  is_launching_ = true;
  update_start();
  const auto trouble = words_of_trouble([&] {
    const std::string& from = config->text("resume_from_checkpoint");
    if (from.empty()) {
      starting_ = shared().launcher.start(*config, shared().settings.runs_directory());
      return;
    }
    const fs::path point = fs::absolute(from);
    starting_ = run_of_checkpoint(point);
    QStringList extra;
    for (const QString& argument : arguments_of(*config, config::kTrain))
      if (!argument.startsWith("--resume-from-checkpoint=") &&
          !argument.startsWith("--output-dir="))
        extra << argument;
    shared().launcher.resume(point, extra);
  });
  is_launching_ = false;
  if (!trouble) return;
  is_starting_ = false;
  show_message(*trouble);
  update_start();
}

void NewRunPage::connect_launcher() {
  connect(&shared().launcher, &Launcher::started, this, [this](const fs::path& run) {
    if (!is_starting_ || run != starting_) return;
    is_starting_ = false;
    update_start();
    emit shared().navigator.live_wanted(run);
  });
  connect(&shared().launcher, &Launcher::doing_changed, this, [this](const fs::path& run) {
    if (is_starting_ && run == starting_) update_start();
  });
  connect(&shared().launcher, &Launcher::failed, this,
          [this](const fs::path& run, const QString& message, const QString& command) {
            // Without a program to start it fails before its directory is known.
            if (!is_starting_ || (!is_launching_ && run != starting_)) return;
            is_starting_ = false;
            show_message(tr("The run did not start. %1").arg(message), command);
            update_start();
          });
}

QMap<QString, QString> NewRunPage::kept_texts(const char* key) {
  QMap<QString, QString> texts;
  const QVariantMap kept = shared().settings.value(key).toMap();
  for (auto it = kept.begin(); it != kept.end(); ++it)
    texts[it.key()] = it.value().toString();
  return texts;
}

void NewRunPage::keep_texts(const char* key, const QMap<QString, QString>& texts) {
  QVariantMap kept;
  for (auto it = texts.begin(); it != texts.end(); ++it)
    kept[it.key()] = it.value();
  shared().settings.set_value(key, kept);
}

/** No draft is lost where two apps are open: one that the other app has stored meanwhile is kept
 * beside this one. */
void NewRunPage::store() {
  const QMap<QString, QString> texts = settings_.texts();
  if (texts == stored_texts_) return;  // nobody changed it here
  shared().settings.read_again();
  const QMap<QString, QString> there = kept_texts(kStoredTexts);
  const bool is_of_another = !there.isEmpty() && there != stored_texts_ && there != texts;
  if (is_of_another && texts.isEmpty()) return;
  if (is_of_another) keep_texts(kOtherTexts, there);
  stored_texts_ = texts;
  keep_texts(kStoredTexts, texts);
}

void NewRunPage::take_other_draft() {
  const QMap<QString, QString> other = kept_texts(kOtherTexts);
  if (other.isEmpty()) return;
  keep_texts(kOtherTexts, settings_.texts());
  settings_.load_texts(other);
  picker_->set_current({});
  show_step(model_step);
}

void NewRunPage::set_active(bool active) {
  if (!active) {
    if (is_seen_) store();
    return;
  }
  ask_again();  // a model or data may have come since
  other_action_->setEnabled(!kept_texts(kOtherTexts).isEmpty());
}

void NewRunPage::ask_again() {
  found_for_.clear();
  settle_timer_.start();
  ask_models();
}

void NewRunPage::dragEnterEvent(QDragEnterEvent* event) {
  if (dropped_path(*event->mimeData())) event->acceptProposedAction();
}

/** A model's directory, settings, or data: wherever on the page it is dropped. */
void NewRunPage::dropEvent(QDropEvent* event) {
  const auto path = dropped_path(*event->mimeData());
  if (!path) return;
  if (path->extension() == ".toml") return load_settings(*path);
  const bool is_model = is_there(*path / "config.json");
  if (is_model) settings_.reset("config_name");
  settings_.set_text(is_model ? "model_name_or_path" : "dataset", path_text(*path));
  show_step(is_model ? model_step : data_step);
}

void NewRunPage::showEvent(QShowEvent* event) {
  Page::showEvent(event);
  if (is_seen_) return;
  is_seen_ = true;
  presets_.reload();
  show_step(step());
  settle_timer_.start();
}

QList<QAction*> NewRunPage::page_actions() {
  return page_actions_;
}

}  // namespace ferry::gui
