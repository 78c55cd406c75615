#include "gui/pages/settings/settings_page.h"

#include <unistd.h>

#include <QCheckBox>
#include <QComboBox>
#include <QDesktopServices>
#include <QDir>
#include <QFileDialog>
#include <QFormLayout>
#include <QGroupBox>
#include <QLineEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QStandardPaths>
#include <QTimeEdit>
#include <QUrl>
#include <QVBoxLayout>

#include "gui/models/runs/run_words.h"
#include "gui/models/text.h"
#include "gui/widgets/look.h"
#include "gui/widgets/notice.h"
#include "gui/widgets/sheet.h"

namespace ferry::gui {

namespace fs = std::filesystem;

namespace {

/** The user's own presets: where `ferry presets` looks for them, too. */
QString presets_folder() {
  return QStandardPaths::writableLocation(QStandardPaths::GenericConfigLocation) +
         QStringLiteral("/ferry/presets");
}

struct FolderTrouble {
  QString text;
};

/** Why runs cannot be made there. */
FolderTrouble trouble_of_folder(const fs::path& folder) {
  std::error_code error;
  fs::path at = folder;
  while (!at.empty() && !fs::exists(at, error) && at.has_relative_path())
    at = at.parent_path();
  if (!fs::is_directory(at, error))
    return {SettingsPage::tr("%1 is no folder.").arg(shown_path(at))};
  if (access(at.c_str(), W_OK | X_OK) != 0)
    return {
        SettingsPage::tr("Nothing may be written to %1. New runs would fail.").arg(shown_path(at))};
  return {};
}

QFormLayout* add_group(QVBoxLayout& column, const QString& title) {
  auto* group = new QGroupBox(title);
  auto* form = new QFormLayout(group);
  form->setVerticalSpacing(group->fontMetrics().height());
  form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  column.addWidget(group);
  return form;
}

/** Fields of all groups begin at one place. */
void align_fields(const QWidget& groups) {
  QList<QWidget*> labels;
  for (const QFormLayout* form : groups.findChildren<QFormLayout*>())
    for (int row = 0; row < form->rowCount(); ++row)
      if (QLayoutItem* label = form->itemAt(row, QFormLayout::LabelRole); label && label->widget())
        labels << label->widget();
  int width = 0;
  for (const QWidget* label : labels)
    width = std::max(width, label->sizeHint().width());
  for (QWidget* label : labels)
    label->setMinimumWidth(width);
}

/** A line of several widgets. */
QWidget* row_of(std::initializer_list<QWidget*> widgets, bool stretches_last = false) {
  auto* row = new QWidget;
  auto* layout = new QHBoxLayout(row);
  layout->setContentsMargins(0, 0, 0, 0);
  for (QWidget* widget : widgets)
    layout->addWidget(widget, qobject_cast<QLineEdit*>(widget) ? 1 : 0);
  if (stretches_last) layout->addStretch(1);
  return row;
}

/** A field with what it is for below it. */
QWidget* with_notes(QWidget* field, std::initializer_list<QWidget*> notes) {
  auto* cell = new QWidget;
  auto* column = new QVBoxLayout(cell);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(std::max(2, field->fontMetrics().height() / 4));
  column->addWidget(field);
  for (QWidget* note : notes)
    column->addWidget(note);
  return cell;
}

/** A label that belongs to a field inside a row. */
QLabel* label_for(QWidget* field, const QString& text) {
  auto* label = new TextLabel(text);
  label->setBuddy(field);
  field->setAccessibleName(QString(text).remove('&'));
  return label;
}

}  // namespace

SettingsPage::SettingsPage(Shared& shared, QWidget* parent)
    : Page(shared, parent), language_at_start_(shared.settings.language()), background_(this) {
  auto* outer = new QVBoxLayout(this);
  outer->setContentsMargins(0, 0, 0, 0);
  auto* scroll = new QScrollArea;
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setFocusPolicy(Qt::ClickFocus);  // the tab key passes: it would show no focus
  outer->addWidget(scroll);
  auto* content = new QWidget;
  auto* column = new QVBoxLayout(content);
  column->addWidget(heading_label(tr("Settings"), kTitle));
  column->addWidget(note_label(tr("Changes are kept at once.")));
  add_folders(*column);
  add_look(*column);
  add_hours(*column);
  add_notices(*column);
  align_fields(*content);
  const int gap = fontMetrics().height();
  column->setSpacing(gap);
  column->setContentsMargins(gap, gap, gap, gap);
  scroll->setWidget(new Sheet(content));
  show_settings();
  connect(&shared.settings, &AppSettings::changed, this, &SettingsPage::show_settings);
}

SettingsPage::~SettingsPage() {
  // A field that had the focus says at its end that it was edited.
  runs_->disconnect(this);
}

void SettingsPage::add_folders(QVBoxLayout& column) {
  QFormLayout* form = add_group(column, tr("Folders"));
  runs_ = new QLineEdit;
  runs_->setObjectName("field_runs_directory");
  auto* browse = new QPushButton(tr("&Browse..."));
  browse->setObjectName("browse_runs");
  runs_trouble_ = new Notice;
  runs_trouble_->setObjectName("runs_trouble");
  runs_trouble_->keep_room();
  runs_note_ = note_label(
      tr("New runs get a folder of their own in it. Runs that are there already stay where they "
         "are."));
  // One place: the trouble stands in for the note, and nothing below it moves.
  auto* below = new QWidget;
  auto* place = new QGridLayout(below);
  place->setContentsMargins(0, 0, 0, 0);
  place->addWidget(runs_note_, 0, 0);
  place->addWidget(runs_trouble_, 0, 0);
  form->addRow(label_for(runs_, tr("&Runs folder")), with_notes(row_of({runs_, browse}), {below}));
  connect(runs_, &QLineEdit::editingFinished, this, &SettingsPage::take_runs_folder);
  connect(browse, &QPushButton::clicked, this, [this] {
    const QString chosen =
        QFileDialog::getExistingDirectory(this, tr("Folder for new runs"), runs_->text());
    if (chosen.isEmpty()) return;
    runs_->setText(chosen);
    take_runs_folder();
  });

  presets_ = new QLineEdit(presets_folder());
  presets_->setObjectName("presets_directory");
  presets_->setReadOnly(true);
  auto* open = new QPushButton(tr("&Open"));
  open->setObjectName("open_presets");
  form->addRow(label_for(presets_, tr("&Presets folder")),
               with_notes(row_of({presets_, open}),
                          {note_label(tr("Your own presets, one .toml file each. One with the name "
                                         "of a built-in preset takes its place."))}));
  connect(open, &QPushButton::clicked, this, [this] {
    QDir().mkpath(presets_->text());
    QDesktopServices::openUrl(QUrl::fromLocalFile(presets_->text()));
  });
}

void SettingsPage::add_look(QVBoxLayout& column) {
  QFormLayout* form = add_group(column, tr("Look"));
  theme_ = new QComboBox;
  theme_->setObjectName("field_theme");
  theme_->addItem(tr("As the system"), static_cast<int>(Theme::system));
  theme_->addItem(tr("Light"), static_cast<int>(Theme::light));
  theme_->addItem(tr("Dark"), static_cast<int>(Theme::dark));
  form->addRow(label_for(theme_, tr("&Theme")), row_of({theme_}, true));
  language_ = new QComboBox;
  language_->setObjectName("field_language");
  language_->addItem(tr("As the system"), QString());
  // Each language by its own name.
  language_->addItem(QStringLiteral("English"), QStringLiteral("en"));
  language_->addItem(QString::fromUtf8("\u7b80\u4f53\u4e2d\u6587"), QStringLiteral("zh_CN"));
  language_note_ = note_label();
  language_note_->setObjectName("language_note");
  form->addRow(label_for(language_, tr("&Language")),
               with_notes(row_of({language_}, true), {language_note_}));
  connect(theme_, &QComboBox::activated, this, [this] {
    shared().settings.set_theme(static_cast<Theme>(theme_->currentData().toInt()));
  });
  connect(language_, &QComboBox::activated, this,
          [this] { shared().settings.set_language(language_->currentData().toString()); });
}

void SettingsPage::add_hours(QVBoxLayout& column) {
  QFormLayout* form = add_group(column, tr("When runs train"));
  hours_ = new QCheckBox(tr("Train only in these ho&urs"));
  hours_->setObjectName("field_run_hours");
  from_ = new QTimeEdit;
  from_->setObjectName("field_run_from");
  until_ = new QTimeEdit;
  until_->setObjectName("field_run_until");
  // Hours and minutes as the system writes them.
  for (QTimeEdit* edit : {from_, until_}) {
    edit->setLayoutDirection(Qt::LeftToRight);  // Qt would put the minutes before the hours
    edit->setDisplayFormat(QLocale().timeFormat(QLocale::ShortFormat).remove(":ss"));
  }
  hours_note_ = note_label();
  hours_note_->setObjectName("hours_note");
  form->addRow(with_notes(hours_, {row_of({label_for(from_, tr("Fro&m")), from_,
                                           label_for(until_, tr("u&ntil")), until_},
                                          true),
                                   hours_note_}));
  yields_ = new QCheckBox(tr("Pause while another program needs the &GPU's memory"));
  yields_->setObjectName("field_yields");
  form->addRow(with_notes(
      yields_,
      {note_label(tr("A game or another program gets the card. The run is resumed when it has "
                     "ended; at most one step is computed again."))}));
  queue_ = new QCheckBox(tr("Start runs of the &queue by themselves, one after another"));
  queue_->setObjectName("field_queue");
  form->addRow(with_notes(
      queue_,
      {note_label(tr("Off, runs wait in the queue until it is switched on. A run that you "
                     "start yourself starts in any case. All of this is done while this app "
                     "is open."))}));
  // A time counts when it has been typed, and may be typed before the hours hold.
  for (QTimeEdit* const edit : {from_, until_})
    edit->setKeyboardTracking(false);
  connect(hours_, &QCheckBox::toggled, this, &SettingsPage::take_hours);
  connect(from_, &QTimeEdit::timeChanged, this, &SettingsPage::take_hours);
  connect(until_, &QTimeEdit::timeChanged, this, &SettingsPage::take_hours);
  connect(yields_, &QCheckBox::toggled, this, [this](bool on) {
    if (!is_showing_) shared().settings.set_yields(on);
  });
  connect(queue_, &QCheckBox::toggled, this, [this](bool on) {
    if (!is_showing_) shared().settings.set_queue_on(on);
  });
}

void SettingsPage::add_notices(QVBoxLayout& column) {
  QFormLayout* form = add_group(column, tr("Notifications"));
  notices_ = new QCheckBox(tr("Tell me &when a run has ended"));
  notices_->setObjectName("field_notifications");
  form->addRow(
      with_notes(notices_, {note_label(tr("On the desktop, also of a run that fails or waits for "
                                          "room on the disk. The window says the same."))}));
  connect(notices_, &QCheckBox::toggled, this, [this](bool on) {
    if (!is_showing_) shared().settings.set_notifies(on);
  });
}

void SettingsPage::set_active(bool active) {
  if (!active) return;
  show_settings();
  check_runs_folder();
}

void SettingsPage::show_settings() {
  const AppSettings& settings = shared().settings;
  is_showing_ = true;
  if (!runs_->hasFocus()) runs_->setText(path_text(settings.runs_directory()));
  theme_->setCurrentIndex(theme_->findData(static_cast<int>(settings.theme())));
  language_->setCurrentIndex(std::max(0, language_->findData(settings.language())));
  hours_->setChecked(settings.has_run_hours());
  from_->setTime(settings.run_from());
  until_->setTime(settings.run_until());
  yields_->setChecked(settings.yields());
  queue_->setChecked(settings.is_queue_on());
  notices_->setChecked(settings.notifies());
  is_showing_ = false;
  language_note_->setText(
      settings.language() == language_at_start_
          ? tr("A change takes effect at the next start of Ferry.")
          : tr("Changed: takes effect at the next start of Ferry. Runs continue "
               "when it is closed."));
  show_hours_text();
}

void SettingsPage::show_hours_text() {
  const bool on = hours_->isChecked();
  const QTime from = from_->time(), until = until_->time();
  const auto text = [](QTime time) { return hour_text(time); };
  if (!on)
    hours_note_->setText(tr("Off: runs train at any hour."));
  else if (from == until)
    hours_note_->setText(tr("Both times are the same: runs train at any hour."));
  else if (from < until)
    hours_note_->setText(tr("Runs train from %1 until %2 and are paused at other times.")
                             .arg(text(from), text(until)));
  else
    hours_note_->setText(
        tr("Runs train from %1 until %2 of the next day and are paused at other times.")
            .arg(text(from), text(until)));
}

void SettingsPage::take_hours() {
  if (is_showing_) return;
  shared().settings.set_run_hours(hours_->isChecked(), from_->time(), until_->time());
  show_hours_text();
}

void SettingsPage::take_runs_folder() {
  const QString typed = runs_->text().trimmed();
  if (typed.isEmpty()) {
    runs_->setText(path_text(shared().settings.runs_directory()));
    return check_runs_folder();
  }
  if (!QDir::isAbsolutePath(typed))
    return show_folder_trouble(tr("Give the whole path, from / on. The folder is as before."));
  if (to_path(typed) != shared().settings.runs_directory())
    shared().settings.set_runs_directory(to_path(typed));
  check_runs_folder();
}

void SettingsPage::check_runs_folder() {
  background_.ask(
      [folder = shared().settings.runs_directory()] { return trouble_of_folder(folder); },
      [this](const FolderTrouble& found, const QString&) { show_folder_trouble(found.text); });
}

/** Empty: there is none. */
void SettingsPage::show_folder_trouble(const QString& trouble) {
  runs_note_->setVisible(trouble.isEmpty());
  runs_trouble_->show_error(trouble);
}

}  // namespace ferry::gui
