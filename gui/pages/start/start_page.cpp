#include "gui/pages/start/start_page.h"

#include <QButtonGroup>
#include <QComboBox>
#include <QDropEvent>
#include <QFileDialog>
#include <QGroupBox>
#include <QLineEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/models/inputs/data_columns.h"
#include "gui/models/settings/option_text.h"
#include "gui/models/text.h"
#include "gui/widgets/data/hub_box.h"
#include "gui/widgets/dropped_path.h"
#include "gui/widgets/forms/choice_card.h"
#include "gui/widgets/look.h"
#include "gui/widgets/notice.h"
#include "gui/widgets/sheet.h"
#include "src/config/models/models.h"

namespace ferry::gui {

namespace {

/** The offer whose model lies in a directory; -1: there is none. */
int place_of(const std::filesystem::path& directory, const std::vector<ModelOffer>& offers) {
  const auto lies_there = [&](const ModelOffer& offer) {
    std::error_code error;
    const auto own = config::locate_model(offer.settings.text("model_name_or_path"));
    return own && std::filesystem::equivalent(*own, directory, error);
  };
  const auto at = std::ranges::find_if(offers, lies_there);
  return at == offers.end() ? -1 : static_cast<int>(at - offers.begin());
}

QLabel* make_fact(const char* name) {
  auto* label = new TextLabel;
  label->setObjectName(name);
  label->setWordWrap(true);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  return label;
}

}  // namespace

StartPage::StartPage(Shared& shared, QWidget* parent)
    : Page(shared, parent), looking_(this), finding_(this), planning_(this), naming_(this) {
  auto* outer = new QVBoxLayout(this);
  outer->setContentsMargins(0, 0, 0, 0);
  auto* scroll = new QScrollArea;
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setFocusPolicy(Qt::ClickFocus);  // the tab key passes: it would show no focus
  outer->addWidget(scroll);
  auto* content = new QWidget;
  auto* column = new QVBoxLayout(content);
  column->addWidget(heading_label(tr("Train a model of your own"), 1.5));
  column->addWidget(
      note_label(tr("Ferry fine-tunes transformers, also those that do not fit the GPU. Your texts "
                    "and models stay on this machine.")));
  column->addWidget(make_machine());
  column->addWidget(make_cards());
  column->addWidget(make_plan());
  column->addWidget(make_next());
  const int gap = fontMetrics().height();
  column->setSpacing(gap);
  column->setContentsMargins(gap, gap, gap, gap);
  scroll->setWidget(new Sheet(content));

  connect(&shared.launcher, &Launcher::started, this, [this](const std::filesystem::path& run) {
    if (run != started_) return;
    started_.clear();
    this->shared().settings.set_has_seen_start(true);
    update_start();
    emit this->shared().navigator.live_wanted(run);
  });
  connect(&shared.launcher, &Launcher::failed, this,
          [this](const std::filesystem::path& run, const QString& message, const QString&) {
            if (run != started_ && !is_asking_) return;
            started_.clear();
            start_trouble_->show_error(message);
            update_start();
          });
  setAcceptDrops(true);
  update_start();
}

QWidget* StartPage::make_machine() {
  auto* group = new QGroupBox(tr("This machine"));
  auto* grid = new QGridLayout(group);
  const auto add = [&](int row, const QString& name, QLabel* value) {
    auto* label = note_label(name);
    label->setWordWrap(false);
    grid->addWidget(label, row / 2, row % 2 * 2, Qt::AlignTop);
    grid->addWidget(value, row / 2, row % 2 * 2 + 1, Qt::AlignTop);
    value->setAccessibleName(name);
  };
  add(0, tr("GPU"), gpu_ = make_fact("machine_gpu"));
  add(1, tr("Memory"), memory_ = make_fact("machine_memory"));
  add(2, tr("Processor"), processor_ = make_fact("machine_processor"));
  add(3, tr("Disk"), disk_ = make_fact("machine_disk"));
  grid->setColumnStretch(1, 1);
  grid->setColumnStretch(3, 1);
  machine_state_ = new TextLabel(tr("Looking at this machine..."));
  machine_state_->setObjectName("machine_state");
  machine_state_->setFont(bold_font(machine_state_->font()));
  doctor_ = new QPushButton(tr("&Check everything"));
  doctor_->setObjectName("doctor_button");
  auto* row = new QHBoxLayout;
  machine_trouble_ = new Notice;
  machine_trouble_->setObjectName("machine_trouble");
  machine_trouble_->keep_room();
  row->addWidget(machine_state_);
  row->addWidget(machine_trouble_, 1);
  row->addWidget(doctor_);
  grid->addLayout(row, 2, 0, 1, 4);
  connect(doctor_, &QPushButton::clicked, this,
          [this] { emit shared().navigator.page_wanted(PageId::doctor); });
  return group;
}

QWidget* StartPage::make_cards() {
  auto* box = new QWidget;
  auto* column = new QVBoxLayout(box);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(heading_label(tr("1. Choose what it learns")));
  auto* row = new QHBoxLayout;
  cards_ = new QButtonGroup(this);
  const auto add = [&](StartKind kind, const char* name, const QString& title,
                       const QString& text) {
    auto* card = new ChoiceCard(title, text);
    card->setObjectName(name);
    cards_->addButton(card, static_cast<int>(kind));
    row->addWidget(card, 1);
  };
  add(StartKind::classify, "card_classify", tr("Classify &texts"),
      tr("Topics, moods, kinds of requests: a label for each text. Sample texts are built in."));
  add(StartKind::go_on, "card_go_on", tr("Continue te&xts"),
      tr("A language model learns to write like a text: Romeo and Juliet where its package is "
         "here, "
         "or a text of yours."));
  add(StartKind::own_data, "card_own_data", tr("My &own data"),
      tr("A table (.csv, .tsv, .jsonl, .parquet) with texts and labels, or a folder with one "
         "sub-folder for each label."));
  cards_->button(static_cast<int>(kind_))->setChecked(true);
  column->addLayout(row);
  connect(cards_, &QButtonGroup::idClicked, this,
          [this](int id) { choose(static_cast<StartKind>(id)); });
  return box;
}

QWidget* StartPage::make_plan() {
  auto* box = new QWidget;
  auto* column = new QVBoxLayout(box);
  column->setContentsMargins(0, 0, 0, 0);
  plan_trouble_ = new Notice;
  plan_trouble_->setObjectName("plan_trouble");
  column->addLayout(heading_with(tr("2. See that it fits"), *plan_trouble_));
  auto* grid = new QGridLayout;
  models_ = new QComboBox;
  models_->setObjectName("field_model");
  models_->setAccessibleName(tr("Model"));
  give_way(models_);
  auto* model_label = new TextLabel(tr("&Model"));
  model_label->setBuddy(models_);
  auto* directory = new QPushButton(tr("Choose a model folder..."));
  directory->setObjectName("choose_model");
  wants_fetch_ = new QPushButton(tr("&Download a model..."));
  wants_fetch_->setObjectName("wants_fetch");
  wants_fetch_->setCheckable(true);
  connect(wants_fetch_, &QPushButton::toggled, this, &StartPage::show_fetch);
  auto* model_row = new QHBoxLayout;
  model_row->addWidget(models_);
  model_row->addWidget(directory);
  model_row->addWidget(wants_fetch_);
  model_row->addStretch(1);
  grid->addWidget(model_label, 0, 0);
  grid->addLayout(model_row, 0, 1);
  connect(directory, &QPushButton::clicked, this, [this] {
    const QString chosen = QFileDialog::getExistingDirectory(this, tr("Folder of a model"));
    if (!chosen.isEmpty()) take_path(to_path(chosen));
  });
  data_ = make_fact("data");
  data_->setAccessibleName(tr("Data"));
  auto* file = new QPushButton(tr("Choose f&ile..."));
  file->setObjectName("choose_file");
  auto* folder = new QPushButton(tr("Choose fo&lder..."));
  folder->setObjectName("choose_folder");
  data_buttons_ = new QWidget;
  auto* buttons = new QHBoxLayout(data_buttons_);
  buttons->setContentsMargins(0, 0, 0, 0);
  buttons->addWidget(file);
  buttons->addWidget(folder);
  auto* data_row = new QHBoxLayout;
  data_row->addWidget(data_buttons_);
  data_row->addWidget(data_, 1);
  grid->addWidget(new TextLabel(tr("Data")), 1, 0);
  grid->addLayout(data_row, 1, 1);
  grid->addWidget(make_columns(), 4, 1);
  data_trouble_ = new ErrorLabel;
  data_trouble_->setObjectName("data_trouble");
  grid->addWidget(data_trouble_, 5, 1);
  verdict_ = make_fact("verdict");
  promise_ = make_fact("promise");
  grid->addWidget(new TextLabel(tr("Plan")), 6, 0, Qt::AlignTop);
  grid->addWidget(verdict_, 6, 1);
  grid->addWidget(promise_, 7, 1);
  grid->setColumnStretch(1, 1);
  column->addLayout(grid);
  column->addWidget(make_fetch());
  column->addSpacing(fontMetrics().height() / 2);
  column->addWidget(heading_label(tr("3. Start")));
  auto* row = new QHBoxLayout;
  start_button_ = new QPushButton(tr("&Start training"));
  start_button_->setObjectName("start_button");
  start_button_->setDefault(true);
  QFont font = start_button_->font();
  font.setBold(true);
  start_button_->setFont(font);
  start_button_->setMinimumHeight(fontMetrics().height() * 2);
  all_settings_ = new QPushButton(tr("All s&ettings..."));
  all_settings_->setObjectName("all_settings_button");
  row->addWidget(start_button_);
  row->addWidget(all_settings_);
  row->addStretch(1);
  column->addLayout(row);
  start_trouble_ = new Notice;
  start_trouble_->setObjectName("start_trouble");
  column->addWidget(start_trouble_);
  connect(models_, &QComboBox::activated, this, [this] { plan(); });
  connect(file, &QPushButton::clicked, this, [this] { choose_data(false); });
  connect(folder, &QPushButton::clicked, this, [this] { choose_data(true); });
  connect(start_button_, &QPushButton::clicked, this, &StartPage::start);
  connect(all_settings_, &QPushButton::clicked, this, &StartPage::open_settings);
  return box;
}

/** Which columns of a table of the user's hold what. */
QWidget* StartPage::make_columns() {
  columns_box_ = new QWidget;
  auto* row = new QHBoxLayout(columns_box_);
  row->setContentsMargins(0, 0, 0, 0);
  const auto add = [&](const QString& words, const char* name) {
    auto* combo = new QComboBox;
    combo->setObjectName(name);
    combo->setAccessibleName(words);
    give_way(combo);
    auto* label = new TextLabel(words);
    label->setBuddy(combo);
    row->addWidget(label);
    row->addWidget(combo);
    connect(combo, &QComboBox::activated, this, &StartPage::plan);
    return combo;
  };
  text_column_ = add(tr("Text column"), "field_text_column");
  label_column_ = add(tr("Label column"), "field_label_column");
  row->addStretch(1);
  columns_box_->hide();
  return columns_box_;
}

/** Models of a hub, for who has none here or wants another. */
QWidget* StartPage::make_fetch() {
  fetch_ = new QWidget;
  fetch_->setObjectName("fetch");
  auto* grid = new QGridLayout(fetch_);
  grid->setContentsMargins(0, 0, 0, 0);
  fetch_words_ = new TextLabel;
  fetch_words_->setWordWrap(true);
  grid->addWidget(fetch_words_, 0, 0, 1, 2);
  hub_name_ = new QLineEdit;
  hub_name_->setObjectName("hub_name");
  hub_name_->setPlaceholderText(tr("ORGANISATION/NAME"));
  auto* label = new TextLabel(tr("&Name on the hub"));
  label->setBuddy(hub_name_);
  grid->addWidget(label, 1, 0);
  grid->addWidget(hub_name_, 1, 1);
  hub_ = new HubBox(HubDownload::Kind::model);
  grid->addWidget(hub_, 2, 0, 1, 2);
  grid->setColumnStretch(1, 1);
  connect(hub_name_, &QLineEdit::textChanged, this,
          [this](const QString& name) { hub_->offer(name.trimmed()); });
  connect(hub_name_, &QLineEdit::returnPressed, this, [this] { hub_->download().look(); });
  connect(&hub_->download(), &HubDownload::fetched, this, &StartPage::take_fetched);
  fetch_->hide();
  return fetch_;
}

void StartPage::show_fetch() {
  const bool lacks = machine_ && !finding_.is_busy() && found_.models.offers.empty();
  fetch_->setVisible(lacks || wants_fetch_->isChecked());
  if (fetch_->isHidden()) return;
  fetch_words_->setVisible(lacks);
  fetch_words_->setText(
      tr("No model for this is on this machine yet. Download one by its name: the one below is "
         "small and good to begin with. Or choose the folder of a model that you have."));
  HubDownload& download = hub_->download();
  if (!hub_name_->isModified() && !download.is_busy()) hub_name_->setText(found_.models.hub_name);
  // Its size is offered without a click, once.
  if (lacks && download.state() == HubDownload::State::idle) download.look();
}

void StartPage::take_fetched(const std::filesystem::path& directory) {
  fetched_ = directory;
  wants_fetch_->setChecked(false);
  find();
}

// --- Files that are dropped ----------------------------------------------------------------------

void StartPage::take_path(const std::filesystem::path& path) {
  if (!is_there(path / "config.json")) {
    if (!takes_own()) choose(StartKind::own_data);
    return set_data(path);
  }
  const auto offer = offer_of(kind_, path);
  if (!offer)
    return plan_trouble_->show_error(tr("%1 is no model for this.").arg(shown_path(path)));
  found_.models.offers.insert(found_.models.offers.begin(), *offer);
  own_models_.push_back(path);
  fill_models();
  plan();
}

void StartPage::dragEnterEvent(QDragEnterEvent* event) {
  if (dropped_path(*event->mimeData())) event->acceptProposedAction();
}

void StartPage::dropEvent(QDropEvent* event) {
  if (const auto path = dropped_path(*event->mimeData())) take_path(*path);
}

QWidget* StartPage::make_next() {
  auto* box = new QWidget;
  auto* column = new QVBoxLayout(box);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(heading_label(tr("What comes then")));
  auto* row = new QHBoxLayout;
  row->setSpacing(fontMetrics().height() * 2);
  const auto add = [&](const QString& title, const QString& text) {
    auto* part = new QVBoxLayout;
    part->setSpacing(fontMetrics().height() / 4);
    auto* heading = heading_label(title, 1);
    part->addWidget(heading);
    part->addWidget(note_label(text));
    part->addStretch(1);
    row->addLayout(part, 1);
  };
  add(tr("Watch it learn"),
      tr("Live shows the loss, the speed, the time left and where the memory goes. You may close "
         "this window: the run continues."));
  add(tr("Pause it for a game"), tr("Pause gives the GPU back at once, Resume continues from the "
                                    "same step. A run that was cut "
                                    "off continues from its last checkpoint."));
  add(tr("Use what it learnt"),
      tr("Try it asks the model. Export writes a folder that transformers and other programs "
         "load."));
  column->addLayout(row, 1);
  return box;
}

// --- This machine ------------------------------------------------------------------------------

void StartPage::set_active(bool active) {
  if (active) look();
}

void StartPage::look() {
  looking_.ask([] { return look_at_machine(); },
               [this](const MachineLook& look, const QString& trouble) {
                 if (!trouble.isEmpty())
                   return machine_trouble_->show_error(message_of(trouble).text);
                 take_machine(look);
               });
}

void StartPage::take_machine(const MachineLook& look) {
  const bool is_first = !machine_;
  machine_ = look;
  gpu_->setText(look.gpu.isEmpty() ? tr("none that Ferry can use: the processor trains")
                                   : look.gpu);
  processor_->setText(look.processor);
  memory_->setText(look.memory);
  disk_->setText(look.disk);
  machine_state_->setText(look.can_train ? tr("Ferry can train here.")
                                         : tr("Ferry cannot train here yet."));
  if (look.troubles.empty()) {
    machine_trouble_->clear();
  } else {
    const MachineLook::Trouble& worst = look.troubles.front();
    const QString text = worst.words.cure.isEmpty()
                             ? worst.words.what
                             : tr("%1. %2").arg(worst.words.what, worst.words.cure);
    if (worst.is_error)
      machine_trouble_->show_error(text);
    else
      machine_trouble_->show_warning(text);
  }
  if (is_first) find();
  update_start();
}

// --- What to learn -----------------------------------------------------------------------------

void StartPage::choose(StartKind kind) {
  cards_->button(static_cast<int>(kind))->setChecked(true);
  kind_ = kind;
  found_ = {};
  start_trouble_->clear();
  find();
}

void StartPage::set_data(const std::filesystem::path& data) {
  own() = data;
  if (kind_ != StartKind::go_on) {
    fill_columns({});
    naming_.ask([data] { return data_columns(data.string()); },
                [this](const QStringList& columns, const QString&) { fill_columns(columns); });
  }
  plan();
}

void StartPage::fill_columns(const QStringList& columns) {
  for (QComboBox* combo : {text_column_, label_column_}) {
    combo->clear();
    combo->addItem(tr("found by its name"));
    combo->addItems(columns);
  }
  show_columns();
}

/** A text to continue has no columns. */
void StartPage::show_columns() {
  columns_box_->setVisible(takes_own() && kind_ != StartKind::go_on && !own().empty() &&
                           text_column_->count() > 1);
}

void StartPage::choose_data(bool folder) {
  const QString chosen =
      folder ? QFileDialog::getExistingDirectory(
                   this, kind_ == StartKind::go_on ? tr("Folder of texts")
                                                   : tr("Folder with a sub-folder for each label"))
             : QFileDialog::getOpenFileName(
                   this, tr("Your data"), {},
                   tr("Data (*.csv *.tsv *.jsonl *.parquet *.arrow *.conll *.txt);;All files (*)"));
  if (!chosen.isEmpty()) set_data(to_path(chosen));
}

void StartPage::find() {
  is_planned_ = false;
  planning_.forget();
  if (!machine_) return update_start();
  finding_.ask(
      [kind = kind_, here = machine_->here, own = own_models_, fetched = fetched_] {
        Found found{.models = find_offers(kind, here), .data = {}};
        for (const auto& directory : own)
          if (auto offer = offer_of(kind, directory))
            found.models.offers.insert(found.models.offers.begin(), std::move(*offer));
        if (!fetched.empty()) found.fetched = place_of(fetched, found.models.offers);
        if (kind != StartKind::own_data)
          found.data =
              find_sample_data(kind == StartKind::go_on ? SampleKind::prose : SampleKind::labelled);
        return found;
      },
      [this](const Found& found, const QString& trouble) {
        take_found(found);
        if (!trouble.isEmpty()) plan_trouble_->show_error(message_of(trouble).text);
      });
  update_start();
}

void StartPage::take_found(const Found& found) {
  found_ = found;
  fill_models();
  if (found_.fetched >= 0) models_->setCurrentIndex(found_.fetched);
  const bool is_of_no_use = !fetched_.empty() && found_.fetched < 0;
  fetched_.clear();
  plan();
  if (is_of_no_use)
    plan_trouble_->show_error(tr("The model that came cannot be trained for this."));
}

void StartPage::fill_models() {
  const QSignalBlocker blocker(models_);
  models_->clear();
  for (const ModelOffer& offer : found_.models.offers)
    models_->addItem(offer.preset.isEmpty()
                         ? offer.name
                         : tr("%1 (preset %2)").arg(isolated(offer.name), isolated(offer.preset)));
  models_->setEnabled(models_->count() > 0);
  if (models_->count() == 0) models_->addItem(tr("none on this machine"));
  show_fetch();
}

bool StartPage::takes_own() const {
  return kind_ != StartKind::classify || (machine_ && !finding_.is_busy() && !found_.data);
}

std::vector<std::pair<std::string, std::string>> StartPage::columns_set() const {
  std::vector<std::pair<std::string, std::string>> set;
  if (text_column_->currentIndex() > 0)
    set.emplace_back("text_column", text_column_->currentText().toStdString());
  if (label_column_->currentIndex() > 0)
    set.emplace_back("label_column", label_column_->currentText().toStdString());
  return set;
}

std::optional<config::Config> StartPage::settings_now() {
  const int at = models_->currentIndex();
  if (at < 0 || at >= std::ssize(found_.models.offers)) return std::nullopt;
  const ModelOffer& offer = found_.models.offers[static_cast<size_t>(at)];
  const bool is_own = takes_own() && !own().empty();
  if (!is_own && !found_.data) return std::nullopt;
  std::optional<config::Config> settings;
  const auto trouble = words_of_trouble([&] {
    settings = is_own
                   ? settings_of(offer, own(),
                                 kind_ == StartKind::go_on ? sample_settings(own()) : columns_set())
                   : settings_of(offer, found_.data->path, found_.data->settings);
  });
  if (trouble) plan_trouble_->show_error(*trouble);
  return settings;
}

// --- Whether it fits ---------------------------------------------------------------------------

void StartPage::plan() {
  is_planned_ = fits_ = false;
  planning_.forget();
  verdict_->clear();
  promise_->clear();
  data_buttons_->setVisible(takes_own());
  const bool is_own = takes_own() && !own().empty();
  data_->setText(is_own        ? path_text(own())
                 : found_.data ? found_.data->what
                 : kind_ == StartKind::own_data
                     ? tr("Choose a file or a folder.")
                     : tr("No sample text is on this machine. Choose a .txt file of "
                          "yours."));
  data_->setToolTip(is_own || !found_.data ? QString() : path_text(found_.data->path));
  show_columns();
  plan_trouble_->clear();
  data_trouble_->set_error({});
  const auto settings = settings_now();
  if (settings) {
    verdict_->setText(tr("Reading the data and planning..."));
    planning_.ask(
        [planner = planner_, settings = *settings] { return planner->plan(settings); },
        [this](const PlanWords& words, const QString& trouble) { take_plan(words, trouble); });
  }
  update_start();
}

void StartPage::take_plan(const PlanWords& words, const QString& trouble) {
  is_planned_ = true;
  fits_ = trouble.isEmpty() && words.fits;
  verdict_->setText(words.verdict);
  promise_->setText(words.promise);
  const bool is_of_data = trouble.startsWith(QLatin1String("[data."));
  if (is_of_data)  // at the field that it is of
    data_trouble_->set_error(message_of(trouble).text);
  else if (!trouble.isEmpty())
    plan_trouble_->show_error(message_of(trouble).text);
  else if (!words.help.isEmpty())
    plan_trouble_->show_warning(words.help);
  else
    plan_trouble_->clear();
  update_start();
}

// --- The start ---------------------------------------------------------------------------------

void StartPage::update_start() {
  const bool is_starting = !started_.empty();
  const QString why = !machine_                      ? tr("Reading what this machine has.")
                      : is_starting                  ? tr("The run is being started.")
                      : !machine_->can_train         ? tr("Ferry cannot train here yet.")
                      : found_.models.offers.empty() ? tr("There is no model for it.")
                      : !is_planned_                 ? tr("There is no plan yet.")
                      : !fits_                       ? tr("It does not fit.")
                                                     : QString();
  start_button_->setEnabled(why.isEmpty());
  start_button_->setToolTip(why);
  start_button_->setText(is_starting ? tr("Starting...") : tr("&Start training"));
  all_settings_->setEnabled(!is_starting && !found_.models.offers.empty());
}

void StartPage::start() {
  if (!start_button_->isEnabled()) return;
  const auto settings = settings_now();
  if (!settings) return;
  start_trouble_->clear();
  // A start that fails at once says so before its run's path is known here.
  is_asking_ = true;
  const auto trouble = words_of_trouble(
      [&] { started_ = shared().launcher.start(*settings, shared().settings.runs_directory()); });
  is_asking_ = false;
  if (trouble) start_trouble_->show_error(*trouble);
  update_start();
}

void StartPage::open_settings() {
  auto settings = settings_now();
  if (!settings) {  // no data yet
    const int at = models_->currentIndex();
    if (at < 0 || at >= std::ssize(found_.models.offers)) return;
    settings = found_.models.offers[static_cast<size_t>(at)].settings;
  }
  shared().settings.set_has_seen_start(true);
  emit shared().navigator.new_run_wanted(*settings);
}

}  // namespace ferry::gui
