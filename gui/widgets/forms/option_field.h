#pragma once
// An editor of one setting, made from its option: a check box, a choice, a line, a path with
// Browse. Its unit beside it, its default as placeholder, a dot and a reset button where it was
// changed, the help as tool tip and What's This, its error below.

#include <QLabel>
#include <QPointer>
#include <QWidget>

#include "gui/models/settings/settings_model.h"

class QAction;
class QCheckBox;
class QComboBox;
class QLineEdit;
class QToolButton;

namespace ferry::gui {

class ErrorLabel;

class OptionField : public QWidget {
  Q_OBJECT

 public:
  /** `settings` outlives it; `key` is one of its options. The editor is called PREFIXkey. */
  OptionField(SettingsModel& settings,
              const QString& key,
              const QString& prefix = QStringLiteral("field_"),
              QWidget* parent = nullptr);

  const QString& key() const { return key_; }
  const config::Option& option() const { return settings_.option(row_); }
  /** The name of the field, with the editor as its buddy: for the form's first column. */
  QLabel* label() const { return label_; }
  QWidget* editor() const;
  /** The line of a text, number or path; nullptr of a check box or choice. */
  QLineEdit* line() const { return line_; }
  /** The widgets that the tab key goes through, in order. */
  QList<QWidget*> tab_stops() const;
  /** Puts the letter of label into "&Label"; no letter: 0. */
  void set_mnemonic(QChar letter);
  /** Choices that cannot be taken now, and why. */
  void set_refused_choices(const QStringList& choices, const QString& why);
  /** Values that a text field offers beside what is typed: the columns of the data. */
  void set_suggestions(const QStringList& values);

 signals:
  /** The editor got the focus: the page shows the help. */
  void focused(const QString& key);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void make_editor(const QString& prefix);
  void make_browse();
  void browse(bool wants_directory);
  void refresh();
  QString help_text() const;

  SettingsModel& settings_;
  QString key_;
  int row_ = 0;
  QPointer<QLabel> label_;
  QLabel* dot_ = nullptr;
  QCheckBox* check_ = nullptr;
  QComboBox* combo_ = nullptr;
  QLineEdit* line_ = nullptr;
  QAction* suggest_ = nullptr;  ///< opens the list of suggestions
  QLabel* meaning_ = nullptr;   ///< of a number that is none to people
  QToolButton* browse_ = nullptr;
  QToolButton* reset_ = nullptr;
  ErrorLabel* error_ = nullptr;
};

}  // namespace ferry::gui
