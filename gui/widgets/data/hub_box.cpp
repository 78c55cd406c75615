#include "gui/widgets/data/hub_box.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QLocale>
#include <QProgressBar>
#include <QPushButton>

#include "gui/models/text.h"
#include "gui/widgets/look.h"

namespace ferry::gui {

namespace {

constexpr int kWhole = 1000;

QString size_text(qint64 n_bytes) {
  return isolated(QLocale().formattedDataSize(n_bytes, 1, QLocale::DataSizeSIFormat));
}

}  // namespace

HubBox::HubBox(HubDownload::Kind kind, QWidget* parent) : QWidget(parent), download_(kind) {
  setObjectName("hub_box");
  words_ = new TextLabel;
  words_->setObjectName("hub_words");
  words_->setWordWrap(true);
  bar_ = new QProgressBar;
  bar_->setObjectName("hub_progress");
  bar_->setRange(0, kWhole);
  bar_->setTextVisible(false);
  act_ = new QPushButton;
  act_->setObjectName("hub_act");
  cancel_ = new QPushButton(tr("Cancel"));
  cancel_->setObjectName("hub_cancel");
  error_ = new ErrorLabel;
  error_->setObjectName("hub_trouble");
  auto* const row = new QHBoxLayout;
  row->addWidget(words_, 2);
  row->addWidget(bar_, 1);
  row->addWidget(act_);
  row->addWidget(cancel_);
  auto* const column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addLayout(row);
  column->addWidget(error_);
  connect(act_, &QPushButton::clicked, this, &HubBox::act);
  connect(cancel_, &QPushButton::clicked, &download_, &HubDownload::cancel);
  connect(&download_, &HubDownload::changed, this, &HubBox::show_state);
  hide();
  show_state();
}

void HubBox::offer(const QString& name) {
  download_.set_name(name);
  setVisible(!name.isEmpty());
}

void HubBox::act() {
  // After a fault the size may not be known yet.
  download_.summary().isEmpty() ? download_.look() : download_.fetch();
}

void HubBox::show_state() {
  using State = HubDownload::State;
  const State state = download_.state();
  const QString& name = download_.name();
  bar_->setVisible(state == State::fetching);
  cancel_->setVisible(download_.is_busy());
  act_->setVisible(!download_.is_busy() && state != State::fetched);
  act_->setText(state == State::failed          ? tr("Try again")
                : download_.summary().isEmpty() ? tr("Look on the hub")
                                                : tr("Download"));
  error_->set_error(download_.trouble());
  switch (state) {
    case State::idle:
      words_->setText(tr("%1 is not on this machine. Ferry can bring it from the Hugging Face hub.")
                          .arg(isolated(name)));
      break;
    case State::looking:
      words_->setText(tr("Asking the hub for %1...").arg(isolated(name)));
      break;
    case State::offered:
      words_->setText(QStringLiteral("%1: %2").arg(isolated(name), download_.summary()));
      break;
    case State::fetching: {
      const double share = download_.n_bytes() > 0 ? static_cast<double>(download_.n_done()) /
                                                         static_cast<double>(download_.n_bytes())
                                                   : 0;
      bar_->setValue(static_cast<int>(share * kWhole));
      words_->setText(download_.n_bytes() > 0
                          ? tr("Downloading %1: %2 of %3")
                                .arg(isolated(name), size_text(download_.n_done()),
                                     size_text(download_.n_bytes()))
                          : tr("Downloading %1...").arg(isolated(name)));
      break;
    }
    case State::fetched:
      words_->setText(tr("%1 is on this machine now.").arg(isolated(name)));
      break;
    case State::failed:
      words_->setText(tr("%1 did not come.").arg(isolated(name)));
      break;
  }
}

}  // namespace ferry::gui
