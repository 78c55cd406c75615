#include "gui/widgets/plan/drive_fields.h"

#include <QtWidgets>

#include "gui/models/plan/plan_picture.h"
#include "gui/models/settings/option_text.h"
#include "gui/models/text.h"

namespace ferry::gui {

namespace {

const QString kPath = QStringLiteral("nvme_path"), kMemory = QStringLiteral("nvme_memory"),
              kAuto = QStringLiteral("auto");

/** A text that somebody types stays until it is taken. */
void show_text(QLineEdit* field, const QString& text) {
  if (!field->hasFocus() || !field->isModified()) field->setText(text);
}

}  // namespace

DriveFields::DriveFields(QWidget* parent) : QWidget(parent) {
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(0, 0, 0, 0);
  path_ = new QLineEdit;
  path_->setObjectName("plan_nvme_path");
  path_->setAccessibleName(tr("Folders on NVMe drives that Ferry may use"));
  path_->setPlaceholderText(tr("none: a folder on an NVMe drive holds what memory does not"));
  browse_ = new QToolButton;
  browse_->setObjectName("plan_nvme_browse");
  browse_->setText(tr("Browse..."));
  browse_->setAccessibleName(tr("Folder on an NVMe drive"));
  memory_ = new QLineEdit;
  memory_->setObjectName("plan_nvme_memory");
  memory_->setAccessibleName(tr("Space on the drives that Ferry may take"));
  memory_->setMaximumWidth(19 * memory_->fontMetrics().averageCharWidth());
  automatic_ = new QToolButton;
  automatic_->setObjectName("plan_nvme_memory_auto");
  automatic_->setText(tr("auto"));
  automatic_->setAccessibleName(tr("Space on the drives: as much as is free"));
  automatic_->setToolTip(tr("As much as is free, but a margin"));
  row->addWidget(path_, 1);
  for (QWidget* widget : std::initializer_list<QWidget*>{browse_, memory_, automatic_})
    row->addWidget(widget);
  connect(path_, &QLineEdit::editingFinished, this, [this] {
    if (path_->isModified()) wish_path(path_->text().trimmed());
  });
  connect(browse_, &QToolButton::clicked, this, [this] {
    const QString chosen =
        QFileDialog::getExistingDirectory(this, tr("Folder on an NVMe drive"), path_->text());
    if (!chosen.isEmpty()) wish_path(chosen);
  });
  connect(memory_, &QLineEdit::editingFinished, this, [this] {
    if (memory_->isModified()) wish_memory();
  });
  connect(automatic_, &QToolButton::clicked, this, [this] { emit change_wanted(kMemory, kAuto); });
}

void DriveFields::wish_path(const QString& path) {
  path_->setModified(false);
  // These say something of drives: without one they are a mistake.
  if (path.isEmpty())
    for (const char* key : {"nvme_memory", "nvme_endurance"})
      if (!settings_.is_auto(key)) emit change_wanted(QLatin1String(key), kAuto);
  emit change_wanted(kPath, path);
}

void DriveFields::wish_memory() {
  memory_->setModified(false);
  const QString text = memory_->text().trimmed(), wished = text.isEmpty() ? kAuto : text;
  config::Config trial;
  const auto trouble = words_of_trouble([&] {
    trial.set(kMemory.toStdString(), wished.toStdString(),
              {config::Source::command_line, "the memory plan"});
  });
  emit trouble_changed(trouble.value_or(QString()));
  if (!trouble) emit change_wanted(kMemory, wished);
}

void DriveFields::show_settings(const config::Config& settings) {
  settings_ = settings;
  const QString path = to_text(settings.text("nvme_path"));
  const std::optional<int64_t> given = settings.maybe_integer("nvme_memory");
  show_text(path_, path);
  show_text(memory_, given ? PlanPicture::setting_of(*given) : QString());
  memory_->setEnabled(!path.isEmpty());
  automatic_->setEnabled(given.has_value());
}

void DriveFields::show_budget(std::optional<int64_t> budget_bytes) {
  memory_->setPlaceholderText(
      budget_bytes ? tr("auto: %1").arg(PlanPicture::gib(static_cast<double>(*budget_bytes)))
                   : tr("auto"));
}

}  // namespace ferry::gui
