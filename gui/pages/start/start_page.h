#pragma once
// The first page: this machine, a model that fits it, sample data, and a training in three clicks.

#include <optional>

#include "gui/models/inputs/sample_data.h"
#include "gui/models/latest_worker.h"
#include "gui/models/machine/start_offer.h"
#include "gui/pages/page.h"

class QButtonGroup;
class QComboBox;
class QGridLayout;
class QLabel;
class QLineEdit;
class QPushButton;
class QVBoxLayout;

namespace ferry::gui {

class ErrorLabel;
class HubBox;
class Notice;

class StartPage : public Page {
  Q_OBJECT

 public:
  explicit StartPage(Shared& shared, QWidget* parent = nullptr);
  void set_active(bool active) override;

  /** Chooses what to do, as a click on its card does. */
  void choose(StartKind kind);
  /** The user's own data for what is chosen: labelled texts, or a text to go on with. */
  void set_data(const std::filesystem::path& data);

 private:
  /** The models and data for a kind: looked for in a thread. */
  struct Found {
    ModelOffers models;
    std::optional<SampleData> data;
    int fetched = -1;  ///< the offer of the model that was fetched just now
  };
  QWidget* make_machine();
  QWidget* make_cards();
  QWidget* make_plan();
  QWidget* make_next();
  QWidget* make_columns();
  void fill_columns(const QStringList& columns);
  void show_columns();
  QWidget* make_fetch();
  void show_fetch();
  void take_fetched(const std::filesystem::path& directory);
  /** A model's directory, or data. */
  void take_path(const std::filesystem::path& path);
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  std::vector<std::pair<std::string, std::string>> columns_set() const;
  void look();
  void take_machine(const MachineLook& look);
  void find();
  void take_found(const Found& found);
  void fill_models();
  void plan();
  void take_plan(const PlanWords& words, const QString& trouble);
  void update_start();
  void start();
  void open_settings();
  void choose_data(bool folder);
  bool takes_own() const;
  std::optional<config::Config> settings_now();

  QLabel *machine_state_, *gpu_, *processor_, *memory_, *disk_;
  Notice* machine_trouble_;
  QPushButton* doctor_;
  QButtonGroup* cards_;
  QComboBox* models_;
  QWidget *data_buttons_, *columns_box_, *fetch_;
  QPushButton* wants_fetch_;
  QComboBox *text_column_, *label_column_;
  QLabel* fetch_words_;
  QLineEdit* hub_name_;
  HubBox* hub_;
  ErrorLabel* data_trouble_;
  QLabel *data_, *verdict_, *promise_;
  Notice *plan_trouble_, *start_trouble_;
  QPushButton *start_button_, *all_settings_;

  LatestWorker looking_, finding_, planning_, naming_;
  std::shared_ptr<StartPlanner> planner_ = std::make_shared<StartPlanner>();
  std::optional<MachineLook> machine_;
  StartKind kind_ = StartKind::classify;
  Found found_;
  /** The user's own, for StartKind::own_data and for StartKind::go_on. */
  std::filesystem::path own_data_, own_text_;
  std::vector<std::filesystem::path> own_models_;  ///< folders that were chosen
  std::filesystem::path fetched_;                  ///< the model that came just now
  std::filesystem::path& own() { return kind_ == StartKind::go_on ? own_text_ : own_data_; }
  bool is_planned_ = false, fits_ = false, is_asking_ = false;
  std::filesystem::path started_;  ///< the run that Start began
};

}  // namespace ferry::gui
