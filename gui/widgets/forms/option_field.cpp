#include "gui/widgets/forms/option_field.h"

#include <QAction>
#include <QCheckBox>
#include <QComboBox>
#include <QCompleter>
#include <QEvent>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QStandardItemModel>
#include <QStyle>
#include <QToolButton>
#include <QVBoxLayout>

#include "gui/models/settings/option_text.h"
#include "gui/models/text.h"
#include "gui/widgets/forms/wheel_guard.h"
#include "gui/widgets/icons.h"
#include "gui/widgets/look.h"
#include "gui/widgets/plain_tips.h"

namespace ferry::gui {

using config::Option;
using config::Type;

namespace {

/** The kind of thing that a path names: both where an option takes either. */
struct PathKind {
  bool is_directory = true, is_file = true, is_new_file = false, is_several = false;
};
PathKind path_kind(std::string_view key) {
  if (key == "dataset" || key == "eval_dataset") return {.is_several = true};
  if (key == "trace") return {.is_directory = false, .is_file = false, .is_new_file = true};
  if (key == "config_name") return {};
  return {.is_file = false};
}

bool is_wide(Type type) {
  return type == Type::text || type == Type::path || type == Type::list || type == Type::groups;
}

/** Characters of a number, a choice and a unit. */
constexpr int kNarrowChars = 26;

}  // namespace

OptionField::OptionField(SettingsModel& settings,
                         const QString& key,
                         const QString& prefix,
                         QWidget* parent)
    : QWidget(parent), settings_(settings), key_(key), row_(settings.row_of(key)) {
  label_ = new TextLabel(label_of(option()));
  make_editor(prefix);
  label_->setBuddy(editor());
  for (QWidget* widget : {static_cast<QWidget*>(label_), editor()}) {
    widget->setToolTip(help_text());
    allow_rich_tip(*widget);
    widget->setWhatsThis(help_text());
  }

  dot_ = new TextLabel(QStringLiteral("●"));
  dot_->setObjectName("changed_" + key);
  dot_->setFixedWidth(dot_->sizeHint().width() + 2);
  dot_->setAlignment(Qt::AlignCenter);
  reset_ = new QToolButton;
  reset_->setObjectName("reset_" + key);
  reset_->setText(tr("Reset"));
  reset_->setAutoRaise(true);
  reset_->setToolButtonStyle(Qt::ToolButtonTextOnly);
  reset_->setFocusPolicy(Qt::TabFocus);
  connect(reset_, &QToolButton::clicked, this, [this] {
    settings_.reset(key_);
    editor()->setFocus();
  });
  error_ = new ErrorLabel;
  error_->setObjectName("error_" + key);

  auto* const row = new QHBoxLayout;
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(fontMetrics().averageCharWidth());
  row->addWidget(dot_);
  row->addWidget(editor(), is_wide(option().type) ? 1 : 0);
  if (browse_) row->addWidget(browse_);
  if (const QString unit = unit_of(option()); !unit.isEmpty()) row->addWidget(quiet_label(unit));
  if (!option().special.value.empty()) {
    meaning_ = quiet_label();
    meaning_->setObjectName("meaning_" + key);
    row->addWidget(meaning_);
  }
  if (check_)
    row->addWidget(quiet_label(option().value == "true" ? tr("default on") : tr("default off")));
  row->addWidget(reset_);
  if (!is_wide(option().type)) row->addStretch(1);
  auto* const all = new QVBoxLayout(this);
  all->setContentsMargins(0, 0, 0, 0);
  all->setSpacing(2);
  all->addLayout(row);
  auto* const below = new QHBoxLayout;
  below->setContentsMargins(dot_->width() + row->spacing(), 0, 0, 0);
  below->addWidget(error_, 1);
  all->addLayout(below);
  QSizePolicy keeps = reset_->sizePolicy();
  keeps.setRetainSizeWhenHidden(true);
  reset_->setSizePolicy(keeps);
  keeps = dot_->sizePolicy();
  keeps.setRetainSizeWhenHidden(true);
  dot_->setSizePolicy(keeps);

  connect(&settings_, &QAbstractItemModel::dataChanged, this,
          [this](const QModelIndex& first, const QModelIndex& last) {
            if (first.row() <= row_ && row_ <= last.row()) refresh();
          });
  connect(&settings_, &QAbstractItemModel::modelReset, this, &OptionField::refresh);
  refresh();
}

QWidget* OptionField::editor() const {
  return check_ ? static_cast<QWidget*>(check_) : combo_ ? static_cast<QWidget*>(combo_) : line_;
}

QList<QWidget*> OptionField::tab_stops() const {
  return browse_ ? QList<QWidget*>{editor(), browse_, reset_} : QList<QWidget*>{editor(), reset_};
}

void OptionField::make_editor(const QString& prefix) {
  const int narrow = fontMetrics().averageCharWidth() * kNarrowChars;
  if (option().type == Type::boolean) {
    check_ = new QCheckBox;
    connect(check_, &QCheckBox::toggled, this,
            [this](bool on) { settings_.set_text(key_, on ? "true" : "false"); });
  } else if (option().type == Type::choice) {
    combo_ = new QComboBox;
    combo_->setMinimumWidth(narrow);
    for (std::string_view choice : option().choices) {
      const QString name = to_text(choice);
      combo_->addItem(choice == option().value ? tr("%1 (default)").arg(isolated(name)) : name,
                      name);
    }
    guard_wheel(combo_);
    connect(combo_, &QComboBox::currentIndexChanged, this, [this](int at) {
      if (at >= 0) settings_.set_text(key_, combo_->itemData(at).toString());
    });
  } else {
    line_ = new QLineEdit;
    if (is_wide(option().type))
      line_->setMinimumWidth(narrow);
    else
      line_->setFixedWidth(narrow);
    // A number is typed as it is written in files: 5e-5, whatever the language.
    line_->setLocale(QLocale::c());
    connect(line_, &QLineEdit::textEdited, this,
            [this](const QString& text) { settings_.set_text(key_, text); });
    if (option().type == Type::path) make_browse();
  }
  editor()->setObjectName(prefix + key_);
  editor()->installEventFilter(this);
}

void OptionField::make_browse() {
  browse_ = new QToolButton;
  browse_->setObjectName("browse_" + key_);
  browse_->setText(tr("Browse…"));
  browse_->setAccessibleName(tr("Browse for %1").arg(label_of(option())));
  const PathKind kind = path_kind(option().key);
  if (kind.is_directory && kind.is_file) {
    auto* const menu = new QMenu(browse_);
    menu->addAction(kind.is_several ? tr("Files…") : tr("File…"), this, [this] { browse(false); });
    menu->addAction(tr("Folder…"), this, [this] { browse(true); });
    browse_->setMenu(menu);
    browse_->setPopupMode(QToolButton::InstantPopup);
  } else {
    connect(browse_, &QToolButton::clicked, this, [this, kind] { browse(kind.is_directory); });
  }
}

void OptionField::browse(bool wants_directory) {
  const PathKind kind = path_kind(option().key);
  const QString now = settings_.text(key_).section(',', 0, 0);
  auto* const dialog = new QFileDialog(this, label_of(option()), now);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setObjectName("dialog_" + key_);
  if (wants_directory) {
    dialog->setFileMode(QFileDialog::Directory);
    dialog->setOption(QFileDialog::ShowDirsOnly);
  } else if (kind.is_new_file) {
    dialog->setAcceptMode(QFileDialog::AcceptSave);
  } else {
    dialog->setFileMode(kind.is_several ? QFileDialog::ExistingFiles : QFileDialog::ExistingFile);
  }
  connect(dialog, &QFileDialog::filesSelected, this, [this](const QStringList& files) {
    settings_.set_text(key_, files.join(','));
    editor()->setFocus();
  });
  dialog->open();
}

QString OptionField::help_text() const {
  QStringList names{to_text(option().key)};
  for (const config::Alias& alias : option().aliases)
    names << to_text(alias.name);
  const QString effect = option().effect == config::Effect::free
                             ? tr("It does not change what is learned.")
                         : option().effect == config::Effect::fixes_bits
                             ? tr("A run that is resumed keeps it.")
                             : tr("It may be changed when a run is resumed.");
  return QStringLiteral("<p><b>%1</b></p><p>%2</p><p>%3</p><p><code>%4</code></p>")
      .arg(label_of(option()).toHtmlEscaped(), help_of(option()).toHtmlEscaped(),
           effect.toHtmlEscaped(), names.join(QStringLiteral(", ")).toHtmlEscaped());
}

void OptionField::set_mnemonic(QChar letter) {
  QString text = label_of(option()).replace('&', QStringLiteral("&&"));
  const qsizetype at = letter.isNull() ? -1 : text.indexOf(letter, 0, Qt::CaseInsensitive);
  if (at >= 0) text.insert(at, '&');
  label_->setText(text);
}

void OptionField::set_refused_choices(const QStringList& choices, const QString& why) {
  if (!combo_) return;
  auto* const items = qobject_cast<QStandardItemModel*>(combo_->model());
  for (int i = 0; items && i < combo_->count(); ++i) {
    const bool is_refused = choices.contains(combo_->itemData(i).toString());
    items->item(i)->setEnabled(!is_refused);
    items->item(i)->setToolTip(is_refused ? why : QString());
  }
}

void OptionField::set_suggestions(const QStringList& values) {
  if (!line_) return;
  if (line_->completer()) delete line_->completer();
  if (suggest_) suggest_->setVisible(!values.isEmpty());
  if (values.isEmpty()) return;
  auto* const completer = new QCompleter(values, line_);
  completer->setCaseSensitivity(Qt::CaseInsensitive);
  completer->setFilterMode(Qt::MatchContains);
  connect(completer, qOverload<const QString&>(&QCompleter::activated), this,
          [this](const QString& value) { settings_.set_text(key_, value); });
  line_->setCompleter(completer);
  if (suggest_) return;
  suggest_ = line_->addAction(line_icon("down"), QLineEdit::TrailingPosition);
  suggest_->setObjectName("suggest_" + key_);
  suggest_->setToolTip(tr("Choose one of the data's columns"));
  connect(suggest_, &QAction::triggered, this, [this] {
    line_->completer()->setCompletionPrefix({});
    line_->completer()->complete();
  });
}

void OptionField::refresh() {
  const QString text = settings_.text(key_), default_text = settings_.default_text(key_);
  const QString problem = settings_.problem(key_), name = label_of(option());
  const bool is_changed = !text.isEmpty();
  const QString shown = is_changed ? text : default_text;
  const QString default_word = special_word(option(), default_text);
  if (check_) {
    const QSignalBlocker quiet(check_);
    check_->setChecked(shown.compare(QLatin1String("true"), Qt::CaseInsensitive) == 0);
  } else if (combo_) {
    const QSignalBlocker quiet(combo_);
    combo_->setCurrentIndex(combo_->findData(shown));
  } else {
    if (line_->text() != text) line_->setText(text);
    line_->setPlaceholderText(settings_.is_missing(key_) ? problem
                              : default_text.isEmpty()   ? QString()
                              : default_word.isEmpty()   ? tr("default %1").arg(default_text)
                                                         : tr("default: %1").arg(default_word));
  }
  if (meaning_) {
    const QString word = special_word(option(), text);
    meaning_->setText(word.isEmpty() ? QString() : tr("= %1", "meaning of a number").arg(word));
  }
  editor()->setAccessibleName(is_changed ? tr("%1, changed").arg(name) : name);
  editor()->setAccessibleDescription(problem.isEmpty() ? help_of(option()) : problem);
  const QString was = default_text.isEmpty()
                          ? tr("Changed. The default is empty.")
                          : tr("Changed. The default is %1.").arg(in_words(option(), default_text));
  dot_->setVisible(is_changed);
  dot_->setToolTip(was);
  dot_->setAccessibleName(tr("%1 is changed").arg(name));
  reset_->setVisible(is_changed);
  reset_->setAccessibleName(tr("Reset %1").arg(name));
  reset_->setToolTip(was);
  // Nobody did anything wrong yet where a setting is still to come.
  error_->set_error(settings_.is_missing(key_) ? QString() : problem);
}

bool OptionField::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::FocusIn) emit focused(key_);
  return QWidget::eventFilter(watched, event);
}

}  // namespace ferry::gui
