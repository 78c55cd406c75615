#pragma once
// A new run: model, data, method, memory, review. The settings are those of SettingsModel; presets,
// files and clones are loaded into it, and Start hands them to the launcher.

#include <QTimer>
#include <array>

#include "gui/models/inputs/model_facts.h"
#include "gui/models/latest_worker.h"
#include "gui/models/settings/preset_model.h"
#include "gui/models/settings/settings_model.h"
#include "gui/pages/page.h"

class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QPushButton;
class QScrollArea;
class QStackedWidget;
class QTextBrowser;
class QVBoxLayout;

namespace ferry::gui {

class ErrorLabel;
class HubBox;
class ModelPanel;
class OptionField;
class OptionForm;
class PresetPicker;
class ReviewPanel;
class StepList;

class NewRunPage : public Page {
  Q_OBJECT

 public:
  enum Step { model_step, data_step, method_step, memory_step, review_step, n_steps };

  explicit NewRunPage(Shared& shared, QWidget* parent = nullptr);

  /** Begins anew with these settings, at the first step where something is to be done. */
  void begin(const config::Config& settings);
  /** Takes a preset's settings; the data that were chosen stay. */
  void choose_preset(const QString& name);
  /** A fault is shown on the page. */
  void load_settings(const std::filesystem::path& file);
  void save_settings(const std::filesystem::path& file);

  /** The step at which a setting is made. */
  static Step step_of(const config::Option& option);
  /** Shows a step; its fields are made when it is shown first. */
  void show_step(Step step);
  /** Shows the setting's field and gives it the focus. */
  void show_field(const QString& key);
  Step step() const;

  /** The preview of the data below their settings, and the plan below those of memory: the page
   * owns them. */
  void set_preview(QWidget* preview);
  void set_plan_view(QWidget* plan);
  /** The plan of the settings as they are; `words` say it in a line. Where it does not fit, Start
   * says so. A change of the settings takes it back. */
  void set_plan_verdict(bool fits, const QString& words);

  SettingsModel& settings() { return settings_; }
  PresetModel& presets() { return presets_; }

  void set_active(bool active) override;
  QList<QAction*> page_actions() override;

 public slots:
  void start();

 signals:
  /** The settings in force, as `ferry train` and `ferry plan` would have them: after a change, and
   * only where all are in order. */
  void settings_changed(const ferry::config::Config& settings);
  /** The settings do not make a run yet; `why` says which setting is missing. */
  void unsettled(const QString& why);
  /** Those that are values by themselves, while something else is still missing or wrong. */
  void draft_changed(const ferry::config::Config& settings);
  /** The settings that were made, for a queue: arguments_of() makes its command. */
  void queue_wanted(const ferry::config::Config& settings);

 protected:
  void showEvent(QShowEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;

 private:
  struct Found {
    ModelFacts facts;
    QString dataset, eval_dataset;  ///< why they cannot be read
    QStringList columns;
    QString hub_data;  ///< the first data set that a hub may have, and is not here
  };

  void make_actions();
  QWidget* make_top();
  QWidget* make_body();
  QWidget* make_bottom();
  void make_step(Step step);
  void make_search();
  void connect_settings();
  void connect_launcher();

  void on_change();
  void settle();
  void ask_found();
  /** Looks again: a model or data have come. */
  void ask_again();
  void take_found(const Found& found);
  /** Fields that name columns offer the columns of the data. */
  void show_defaults();
  void suggest_columns();
  void ask_models();
  void check_training();
  void update_problems();
  void update_start();
  void update_mode();
  void search(const QString& words);
  void show_help(const QString& key);
  void show_message(const QString& text, const QString& command = {});
  void add_to_queue();
  void store();
  /** The form as `key` of the app's settings has it. */
  QMap<QString, QString> kept_texts(const char* key);
  void keep_texts(const char* key, const QMap<QString, QString>& texts);
  void take_other_draft();
  void browse_load();
  void browse_save();
  void set_tab_order(Step step);
  void fill_place(QWidget* place, QWidget* content);

  SettingsModel settings_;
  PresetModel presets_;
  LatestWorker finding_, listing_, checking_;
  QTimer settle_timer_, search_timer_;
  QString found_for_, preset_name_;
  QMap<QString, QString> preset_texts_;
  QMap<QString, QString> message_texts_;  ///< that the message is of
  QMap<QString, QString> stored_texts_;   ///< as they were read, or kept last
  ModelFacts facts_;
  QStringList columns_;  ///< of the data
  QString wanted_data_;  ///< of a hub
  bool is_starting_ = false, is_launching_ = false, is_seen_ = false;
  std::filesystem::path starting_;
  bool fits_ = true;
  QString verdict_;
  QString check_problem_;  ///< what the review's look at the files found

  QAction *start_action_ = nullptr, *queue_action_ = nullptr, *load_action_ = nullptr,
          *save_action_ = nullptr, *find_action_ = nullptr, *clear_action_ = nullptr,
          *other_action_ = nullptr, *next_action_ = nullptr, *back_action_ = nullptr;
  QList<QAction*> page_actions_;
  PresetPicker* picker_ = nullptr;
  QLineEdit* search_ = nullptr;
  QPushButton *basic_ = nullptr, *all_ = nullptr;
  StepList* steps_ = nullptr;
  QStackedWidget* stack_ = nullptr;
  std::array<QScrollArea*, n_steps> areas_ = {};
  std::array<OptionForm*, n_steps> forms_ = {};
  QScrollArea* hits_area_ = nullptr;
  OptionForm* hits_ = nullptr;
  QLabel* n_hits_ = nullptr;
  ModelPanel* model_panel_ = nullptr;
  ReviewPanel* review_ = nullptr;
  HubBox* hub_data_ = nullptr;
  QWidget *preview_place_ = nullptr, *plan_place_ = nullptr;
  QTextBrowser* help_ = nullptr;
  QWidget* message_ = nullptr;
  ErrorLabel* message_text_ = nullptr;
  QPlainTextEdit* message_command_ = nullptr;
  QLabel* state_ = nullptr;
  QPushButton *back_ = nullptr, *next_ = nullptr, *queue_ = nullptr, *start_ = nullptr;
};

}  // namespace ferry::gui
