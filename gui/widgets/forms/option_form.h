#pragma once
// A form of settings: fields by group, of the basic level or of all. Fields that are not shown are
// not made; many are made in several turns of the event loop.

#include <QTimer>
#include <QWidget>
#include <vector>

#include "gui/models/settings/settings_model.h"

class QFormLayout;

namespace ferry::gui {

class GroupLayout;
class OptionField;

class OptionForm : public QWidget {
  Q_OBJECT

 public:
  /** `prefix` begins the names of its editors. */
  explicit OptionForm(SettingsModel& settings,
                      const QString& prefix = QStringLiteral("field_"),
                      QWidget* parent = nullptr);

  /** The settings that the form may show, in this order. `has_headings`: the groups' names stand
   * above them. */
  void set_keys(const QStringList& keys, bool has_headings);
  /** All of them, or the basic ones of the run's task, those of adapters where these are trained,
   * and those that were changed or are wrong. */
  void set_shows_all(bool all);
  /** Only those that have the words; an empty text: as set_shows_all() says. */
  void set_search(const QString& words);
  /** The tab key comes from `before` into the form; both are in one window. */
  void set_tab_after(QWidget* before);
  /** The last one that the tab key comes to; nullptr: the form shows none. */
  QWidget* last_stop() const;
  /** Letters that other things of the page have as mnemonics. */
  void set_reserved_letters(const QString& letters);

  /** The field, made and shown where it was not; nullptr: none of the form's. */
  OptionField* field(const QString& key);
  /** The field, where it was made. */
  OptionField* made_field(const QString& key) const;
  /** Those that it shows, made or not yet. */
  int n_shown() const { return n_shown_; }
  bool is_complete() const { return !more_.isActive(); }

 signals:
  void focused(const QString& key);
  /** A field was made: the page adds what its own knowledge gives. */
  void field_made(ferry::gui::OptionField* field);

 private:
  struct Row {
    QString key;
    OptionField* field = nullptr;
    bool is_pinned = false;  ///< was asked for by name
  };
  struct Group {
    QString name;
    QWidget* box = nullptr;  ///< its heading and its form
    QFormLayout* form = nullptr;
    std::vector<Row> rows;
  };
  QString in_force(const char* key) const;
  bool wants(const Row& row) const;
  void make(Group& group, size_t row);
  void update_rows();
  void update_rows(int n_may_make);
  void set_mnemonics();
  void set_tab_order();

  SettingsModel& settings_;
  QString prefix_, words_, reserved_, task_, tuning_;
  bool shows_all_ = false, has_headings_ = false;
  bool has_new_ = false;  ///< a field was made that has no place in the tab order yet
  int n_shown_ = 0;
  std::vector<Group> groups_;
  QTimer more_;  ///< fields are wanted that are not made yet
  GroupLayout* layout_ = nullptr;
  QWidget* tab_after_ = nullptr;
};

}  // namespace ferry::gui
