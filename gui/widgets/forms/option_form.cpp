#include "gui/widgets/forms/option_form.h"

#include <QFormLayout>
#include <QLabel>
#include <QVBoxLayout>
#include <utility>

#include "gui/models/settings/option_text.h"
#include "gui/widgets/forms/group_layout.h"
#include "gui/widgets/forms/option_field.h"
#include "gui/widgets/look.h"
#include "src/config/options/tuning.h"

namespace ferry::gui {

namespace {

constexpr int kMadeAtOnce = 3;  // a turn stays far below a frame, also on a busy machine
constexpr const char *kTask = "task", *kTuning = "tuning";

}  // namespace

OptionForm::OptionForm(SettingsModel& settings, const QString& prefix, QWidget* parent)
    : QWidget(parent), settings_(settings), prefix_(prefix) {
  more_.setObjectName("fields_to_make");
  more_.setSingleShot(true);
  more_.setInterval(0);
  connect(&more_, &QTimer::timeout, this, qOverload<>(&OptionForm::update_rows));
  layout_ = new GroupLayout(this);
  layout_->setContentsMargins(0, 0, 0, 0);
  connect(&settings_, &SettingsModel::settings_changed, this, [this] {
    if (in_force(kTask) != task_ || in_force(kTuning) != tuning_) return update_rows();
    // Set elsewhere, by a preset or a search, a setting is shown here, too.
    for (Group& group : groups_)
      for (const Row& row : group.rows)
        if ((!row.field || row.field->isHidden()) && wants(row)) return update_rows();
  });
}

void OptionForm::set_keys(const QStringList& keys, bool has_headings) {
  has_headings_ = has_headings;
  for (const QString& key : keys) {
    const int row = settings_.row_of(key);
    if (row < 0) continue;
    const QString name = has_headings ? group_of(settings_.option(row)) : QString();
    if (groups_.empty() || groups_.back().name != name) {
      Group group = {.name = name, .box = new QWidget, .rows = {}};
      auto* const inside = new QVBoxLayout(group.box);
      inside->setContentsMargins(0, 0, 0, 0);
      if (has_headings) inside->addWidget(heading_label(name));
      group.form = new QFormLayout;
      group.form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
      group.form->setRowWrapPolicy(QFormLayout::DontWrapRows);
      group.form->setLabelAlignment(Qt::AlignLeading | Qt::AlignVCenter);
      inside->addLayout(group.form);
      inside->addStretch(1);
      group.box->hide();
      layout_->addWidget(group.box);
      groups_.push_back(std::move(group));
    }
    groups_.back().rows.push_back({.key = key});
  }
  update_rows();
}

void OptionForm::set_shows_all(bool all) {
  if (shows_all_ == all) return;
  shows_all_ = all;
  for (Group& group : groups_)
    for (Row& row : group.rows)
      row.is_pinned = false;
  update_rows(/*n_may_make=*/0);  // the click that wants them has enough to do
}

void OptionForm::set_search(const QString& words) {
  if (words_ == words) return;
  words_ = words;
  update_rows();
}

void OptionForm::set_reserved_letters(const QString& letters) {
  reserved_ = letters;
  set_mnemonics();
}

QString OptionForm::in_force(const char* key) const {
  const QString name = QString::fromLatin1(key), text = settings_.text(name);
  return text.isEmpty() ? settings_.default_text(name) : text;
}

bool OptionForm::wants(const Row& row) const {
  const config::Option& option = settings_.option(settings_.row_of(row.key));
  if (!words_.isEmpty()) return matches(option, words_);
  // Those of adapters belong together: with adapters all of them count, without none does.
  const bool is_basic = config::is_of_adapters(option)
                            ? config::suits_tuning(option, tuning_.toStdString())
                            : option.level == config::Level::basic && suits_task(option, task_);
  return shows_all_ || row.is_pinned || is_basic || settings_.is_changed(row.key) ||
         !settings_.problem(row.key).isEmpty();
}

void OptionForm::make(Group& group, size_t at) {
  Row& row = group.rows[at];
  row.field = new OptionField(settings_, row.key, prefix_);
  int before = 0;  // rows keep the order of the keys, whenever they are made
  for (size_t i = 0; i < at; ++i)
    before += group.rows[i].field != nullptr;
  group.form->insertRow(before, row.field->label(), row.field);
  connect(row.field, &OptionField::focused, this, &OptionForm::focused);
  emit field_made(row.field);
}

void OptionForm::update_rows() {
  update_rows(kMadeAtOnce);
}

/** All of them take longer than a frame: they are made in several turns of the event loop. */
void OptionForm::update_rows(int n_may_make) {
  n_shown_ = 0;
  task_ = in_force(kTask);
  tuning_ = in_force(kTuning);
  bool has_new = std::exchange(has_new_, false);
  for (Group& group : groups_) {
    int n_of_group = 0;
    for (size_t i = 0; i < group.rows.size(); ++i) {
      const bool is_wanted = wants(group.rows[i]);
      if (is_wanted && !group.rows[i].field && n_may_make-- > 0) {
        make(group, i);
        has_new = true;
      }
      if (OptionField* const field = group.rows[i].field) {
        field->setVisible(is_wanted);
        field->label()->setVisible(is_wanted);
      }
      n_of_group += is_wanted;
    }
    group.box->setVisible(n_of_group > 0);
    n_shown_ += n_of_group;
  }
  if (has_new) {
    // Labels of all groups are as wide as the widest, so that editors stand in one column.
    int width = 0;
    for (const Group& group : groups_)
      for (const Row& row : group.rows)
        if (row.field)
          width = std::max(
              width, row.field->label()->sizeHint().width() + fontMetrics().averageCharWidth());
    for (const Group& group : groups_)
      for (const Row& row : group.rows)
        if (row.field) row.field->label()->setMinimumWidth(width);
    set_tab_order();
  }
  set_mnemonics();
  if (n_may_make < 0) more_.start();
}

/** Fields that are made late stand between others, and the tab key goes as the eye does. */
void OptionForm::set_tab_order() {
  QWidget* before = tab_after_;
  for (const Group& group : groups_)
    for (const Row& row : group.rows)
      if (row.field)
        for (QWidget* const stop : row.field->tab_stops()) {
          if (before) setTabOrder(before, stop);
          before = stop;
        }
}

void OptionForm::set_tab_after(QWidget* before) {
  tab_after_ = before;
  set_tab_order();
}

QWidget* OptionForm::last_stop() const {
  QWidget* last = nullptr;
  for (const Group& group : groups_)
    for (const Row& row : group.rows)
      if (row.field) last = row.field->tab_stops().back();
  return last;
}

/** The first letter of each label that nothing else on the page has; those of the first words
 * before others. */
void OptionForm::set_mnemonics() {
  QString taken = reserved_.toLower();
  for (const Group& group : groups_)
    for (const Row& row : group.rows) {
      if (!row.field || row.field->isHidden()) continue;
      QChar found;
      for (const QChar letter : label_of(row.field->option()))
        if (letter.isLetter() && letter.unicode() < 0x80 && !taken.contains(letter.toLower())) {
          found = letter;
          break;
        }
      if (!found.isNull()) taken += found.toLower();
      row.field->set_mnemonic(found);
    }
}

OptionField* OptionForm::made_field(const QString& key) const {
  for (const Group& group : groups_)
    for (const Row& row : group.rows)
      if (row.key == key) return row.field;
  return nullptr;
}

OptionField* OptionForm::field(const QString& key) {
  for (Group& group : groups_)
    for (size_t i = 0; i < group.rows.size(); ++i) {
      Row& row = group.rows[i];
      if (row.key != key) continue;
      if (!row.field || row.field->isHidden()) {
        row.is_pinned = true;
        if (!row.field) {  // at once: who asks wants to show it
          make(group, i);
          has_new_ = true;
        }
        update_rows();
      }
      return row.field;
    }
  return nullptr;
}

}  // namespace ferry::gui
