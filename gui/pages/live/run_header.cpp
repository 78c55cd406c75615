#include "gui/pages/live/run_header.h"

#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLocale>
#include <QProgressBar>
#include <QVBoxLayout>
#include <cmath>

#include "gui/models/curves/curve.h"
#include "gui/models/runs/run_words.h"
#include "gui/models/text.h"
#include "gui/pages/live/phase_mark.h"
#include "gui/widgets/look.h"

namespace ferry::gui {

namespace {

constexpr int kBarParts = 1000;

QString count(int64_t n) {
  return QLocale().toString(static_cast<qlonglong>(n));
}

/** "1.5", "3": at most two digits behind the point. */
QString epoch_text(double epochs) {
  return QLocale().toString(std::round(epochs * 100) / 100, 'g', 6);
}

}  // namespace

RunHeader::RunHeader(QWidget* parent) : QWidget(parent) {
  mark_ = new PhaseMark;
  mark_->setFont(heading_font(font(), kTitle));
  phase_ = new TextLabel;
  phase_->setObjectName("phase");
  phase_->setFont(heading_font(font(), kTitle));
  name_ = new TextLabel;
  name_->setObjectName("run_name");
  name_->setFont(heading_font(font(), kTitle));
  name_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  // A long name gives way to the rest of the line.
  name_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  detail_ = new TextLabel;
  detail_->setObjectName("phase_detail");
  detail_->setForegroundRole(QPalette::PlaceholderText);
  gpu_ = new TextLabel;
  gpu_->setObjectName("gpu_load");
  gpu_->setVisible(false);
  auto* const head = new QHBoxLayout;
  head->addWidget(mark_);
  head->addWidget(phase_);
  head->addSpacing(fontMetrics().averageCharWidth());
  head->addWidget(name_, 1);
  head->addWidget(detail_);
  head->addWidget(gpu_);

  const auto bar = [](const char* name, const QString& accessible) {
    auto* const made = new QProgressBar;
    made->setObjectName(name);
    made->setAccessibleName(accessible);
    made->setRange(0, kBarParts);
    made->setTextVisible(false);
    made->setMaximumHeight(made->fontMetrics().height());
    return made;
  };
  steps_ = new TextLabel;
  steps_->setObjectName("steps");
  epochs_ = new TextLabel;
  epochs_->setObjectName("epochs");
  step_bar_ = bar("step_bar", tr("Steps"));
  epoch_bar_ = bar("epoch_bar", tr("Epoch"));
  left_ = figure(tr("Time left"), "time_left");
  loss_ = figure(tr("Loss"), "loss_now");
  speed_ = figure(tr("Speed"), "speed");
  auto* const grid = new QGridLayout;
  grid->setHorizontalSpacing(3 * fontMetrics().averageCharWidth());
  grid->setVerticalSpacing(2);
  grid->addWidget(steps_, 0, 0);
  grid->addWidget(step_bar_, 1, 0);
  grid->addWidget(epochs_, 0, 1);
  grid->addWidget(epoch_bar_, 1, 1);
  int column = 2;
  for (const Figure& each : {left_, loss_, speed_}) {
    grid->addWidget(each.name, 0, column);
    grid->addWidget(each.value, 1, column++);
  }
  grid->setColumnStretch(0, 3);
  grid->setColumnStretch(1, 2);

  auto* const all = new QVBoxLayout(this);
  all->setContentsMargins({});
  all->addLayout(head);
  all->addLayout(grid);
}

RunHeader::Figure RunHeader::figure(const QString& name, const char* object_name) {
  auto* const label = new TextLabel(name);
  label->setForegroundRole(QPalette::PlaceholderText);
  auto* const value = new TextLabel;
  value->setObjectName(object_name);
  value->setFont(heading_font(font()));
  // Room for the usual values, so that nothing jumps as they change.
  value->setMinimumWidth(value->fontMetrics().horizontalAdvance("00,000 tokens"));
  return {label, value};
}

void RunHeader::show_name(const std::filesystem::path& run) {
  name_->setText(path_text(run.filename()));
  name_->setToolTip(path_text(run));
}

void RunHeader::show_state(const std::string& phase, const QString& detail) {
  mark_->show_group(run_group(phase));
  phase_->setText(state_text(phase));
  phase_->setAccessibleName(tr("State: %1").arg(state_text(phase)));
  detail_->setText(detail);
}

void RunHeader::show_progress(const RunProgress& progress, const std::string& phase) {
  steps_->setText(progress.n_steps > 0
                      ? tr("Step %1 of %2").arg(count(progress.step), count(progress.n_steps))
                      : tr("Step %1").arg(count(progress.step)));
  step_bar_->setValue(static_cast<int>(progress.share() * kBarParts));
  step_bar_->setAccessibleDescription(steps_->text());
  epochs_->setText(
      progress.n_epochs > 0
          ? tr("Epoch %1 of %2").arg(epoch_text(progress.epoch), epoch_text(progress.n_epochs))
          : tr("Epoch"));
  epoch_bar_->setValue(static_cast<int>(progress.epoch_share() * kBarParts));
  epoch_bar_->setAccessibleDescription(epochs_->text());

  QString left = tr("none", "no time left is known");
  if (phase == "paused")
    left = tr("paused");
  else if (progress.is_estimating || phase == "preparing")
    left = tr("estimating");
  else if (progress.seconds_left)
    left = duration_text(*progress.seconds_left);
  else
    left = QStringLiteral("–");
  const auto show = [](const Figure& figure, const QString& text) {
    figure.value->setText(text);
    figure.value->setAccessibleName(QStringLiteral("%1: %2").arg(figure.name->text(), text));
  };
  const QString none = QStringLiteral("–");
  show(left_, left);
  show(loss_, progress.loss ? value_text(*progress.loss, ValueUnit::number) : none);
  show(speed_, progress.tokens_per_second ? tr("%1 tokens/s")
                                                .arg(QLocale().toString(static_cast<qlonglong>(
                                                    std::llround(*progress.tokens_per_second))))
                                          : none);
}

void RunHeader::show_gpu(const QString& text) {
  gpu_->setText(text);
  gpu_->setVisible(!text.isEmpty());
}

}  // namespace ferry::gui
