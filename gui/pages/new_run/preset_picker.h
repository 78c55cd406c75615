#pragma once
// The preset of a new run: a button with its name, a list to search under it, and a menu for the
// user's own presets.

#include <QFrame>
#include <QWidget>
#include <functional>

#include "gui/models/settings/preset_model.h"

class QCheckBox;
class QLabel;
class QLineEdit;
class QMenu;
class QPushButton;
class QToolButton;
class QTreeWidget;

namespace ferry::gui {

/** The list under the button: by task, with purpose, card and plan. */
class PresetList : public QFrame {
  Q_OBJECT

 public:
  explicit PresetList(PresetModel& presets, QWidget* parent = nullptr);
  void open_below(QWidget* button);

 signals:
  void chosen(const QString& name);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void fill();
  void choose_current();

  PresetModel& presets_;
  QLineEdit* search_ = nullptr;
  QCheckBox* fits_ = nullptr;
  QTreeWidget* tree_ = nullptr;
  QLabel* none_ = nullptr;
};

class PresetPicker : public QWidget {
  Q_OBJECT

 public:
  PresetPicker(PresetModel& presets, QWidget* parent = nullptr);

  /** The preset that the settings began with; empty: none. */
  const QString& current() const { return current_; }
  void set_current(const QString& name);
  /** The settings were changed since. */
  void set_edited(bool edited);
  /** The settings that "Save as preset" saves; nullopt where the settings are no settings. */
  std::function<std::optional<config::Config>()> settings;

 signals:
  void chosen(const QString& name);
  /** It could not be done, and why. */
  void failed(const QString& text);
  void said(const QString& text);

 private:
  void make_menu();
  void update_button();
  /** Asks for a name; `done` says why it will not do, and is asked until it will. */
  void ask_name(const QString& title,
                const QString& name,
                std::function<QString(const QString&)> done);
  void save();

  PresetModel& presets_;
  QString current_;
  bool is_edited_ = false;
  QPushButton* button_ = nullptr;
  QToolButton* more_ = nullptr;
  QAction *save_ = nullptr, *copy_ = nullptr, *rename_ = nullptr, *remove_ = nullptr;
  PresetList* list_ = nullptr;
};

}  // namespace ferry::gui
