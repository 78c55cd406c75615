#include "gui/widgets/hub/fetch_box.h"

#include <QtWidgets>

#include "gui/models/settings/option_text.h"
#include "gui/models/text.h"
#include "gui/widgets/look.h"
#undef slots  // of Qt; a name in the plan
#include "src/service/hub/hub_inputs.h"

namespace ferry::gui {

namespace {

QString size_text(int64_t n_bytes) {
  return to_text(service::decimal_bytes(n_bytes));
}

}  // namespace

FetchBox::FetchBox(bool asks_name, QWidget* parent)
    : QWidget(parent),
      fetch_(this,
             {.found = [this](const FetchOffer& offer) { show_offer(offer); },
              .progress = [this](int64_t done, int64_t all) { show_progress(done, all); },
              .fetched =
                  [this](const std::filesystem::path& directory) {
                    enter(State::idle);
                    emit fetched(path_text(directory));
                  },
              .failed =
                  [this](const QString& trouble) {
                    enter(State::idle);
                    trouble_->set_error(message_of(trouble).text);
                  }}) {
  name_ = new QLineEdit;
  name_->setObjectName("fetch_name");
  name_->setAccessibleName(tr("Name of a model on the Hugging Face hub"));
  name_->setPlaceholderText(tr("ORGANISATION/NAME of a model on the Hugging Face hub"));
  name_->setVisible(asks_name);
  button_ = new QPushButton;
  button_->setObjectName("fetch_button");
  cancel_ = new QPushButton(tr("Cancel"));
  cancel_->setObjectName("fetch_cancel");
  words_ = new TextLabel;
  words_->setObjectName("fetch_words");
  words_->setWordWrap(true);
  bar_ = new QProgressBar;
  bar_->setObjectName("fetch_progress");
  bar_->setTextVisible(false);
  trouble_ = new ErrorLabel;
  trouble_->setObjectName("fetch_trouble");

  auto* const row = new QHBoxLayout;
  row->addWidget(name_, 1);
  row->addWidget(button_);
  row->addWidget(cancel_);
  if (!asks_name) row->addStretch(1);
  auto* const column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addLayout(row);
  column->addWidget(bar_);
  column->addWidget(words_);
  column->addWidget(trouble_);
  connect(name_, &QLineEdit::textChanged, this, [this] {
    fetch_.cancel();
    enter(State::idle);
  });
  connect(name_, &QLineEdit::returnPressed, this, [this] {
    if (button_->isEnabled()) go_on();
  });
  connect(button_, &QPushButton::clicked, this, &FetchBox::go_on);
  connect(cancel_, &QPushButton::clicked, this, [this] {
    fetch_.cancel();
    enter(State::idle);
    words_->setText(tr("Stopped. A later download goes on from here."));
  });
  enter(State::idle);
}

void FetchBox::set_name(const QString& name) {
  if (name != name_->text()) name_->setText(name);
}

void FetchBox::enter(State state) {
  state_ = state;
  const bool is_busy = state == State::looking || state == State::fetching;
  button_->setEnabled(!is_busy && !name_->text().trimmed().isEmpty());
  button_->setText(state == State::offered || state == State::fetching ? tr("Do&wnload")
                                                                       : tr("Look up its si&ze"));
  cancel_->setVisible(is_busy);
  bar_->setVisible(state == State::fetching);
  trouble_->set_error({});
  words_->setText(state == State::looking ? tr("Asking the hub...") : QString());
}

void FetchBox::go_on() {
  const bool fetches = state_ == State::offered;
  enter(fetches ? State::fetching : State::looking);
  bar_->setRange(0, 0);  // until bytes come
  const QString name = name_->text().trimmed();
  if (fetches)
    fetch_.fetch(name);
  else
    fetch_.look(name);
}

void FetchBox::show_offer(const FetchOffer& offer) {
  if (offer.n_missing_bytes == 0) {  // the directory is wanted
    state_ = State::offered;
    return go_on();
  }
  enter(State::offered);
  words_->setText(offer.n_missing_bytes < offer.n_bytes
                      ? tr("%1 of %2 are still to come; %3 are free.")
                            .arg(size_text(offer.n_missing_bytes), size_text(offer.n_bytes),
                                 size_text(offer.free_bytes))
                      : tr("%1 are to be fetched; %2 are free.")
                            .arg(size_text(offer.n_bytes), size_text(offer.free_bytes)));
}

void FetchBox::show_progress(int64_t done_bytes, int64_t all_bytes) {
  if (state_ != State::fetching) return;
  constexpr int kParts = 1000;
  bar_->setRange(0, kParts);
  bar_->setValue(all_bytes > 0 ? static_cast<int>(kParts * done_bytes / all_bytes) : 0);
  words_->setText(tr("%1 of %2").arg(size_text(done_bytes), size_text(all_bytes)));
}

}  // namespace ferry::gui
