#pragma once
// Chooses a run of the list of runs, and of it a model: the finished one or a checkpoint. Searched
// by typing; what the runs hold is read in a thread.

#include <QWidget>
#include <filesystem>
#include <vector>

#include "gui/models/latest_worker.h"
#include "gui/models/runs/run_choices.h"
#include "gui/models/runs/run_list_model.h"
#include "gui/models/settings/app_settings.h"

class QComboBox;
class QLabel;
class QToolButton;

namespace ferry::gui {

class RunPicker : public QWidget {
  Q_OBJECT

 public:
  enum class For {
    run,    ///< a run alone
    model,  ///< its model or a checkpoint, or a model directory that is no run
  };
  RunPicker(RunListModel& list, AppSettings& settings, For what, QWidget* parent = nullptr);
  ~RunPicker() override;

  /** Reads the runs again: when its page is shown. */
  void refresh();
  /** Chooses a run, a checkpoint or a model directory, whether it is in the list or not. */
  void choose(const std::filesystem::path& path);

  /** Empty: none is chosen. */
  const std::filesystem::path& run() const { return run_; }
  /** The value for --model: the run, one of its checkpoints, or a model directory; empty: none. */
  const std::filesystem::path& model() const { return model_; }
  /** The name of the model for people, by its run or its directory. */
  QString name() const;
  /** False until the runs have been read once. */
  bool has_read() const { return has_read_; }
  int n_runs() const { return static_cast<int>(choices_.size()); }

  /** For mnemonics of the page. */
  QLabel* run_label() const { return run_label_; }
  QComboBox* run_field() const { return runs_; }
  QComboBox* model_field() const { return models_; }

 signals:
  /** Another run or model is chosen. */
  void chosen();
  void runs_read();

 private:
  void read(bool is_last);
  void take(std::vector<RunChoice> choices, const QString& trouble);
  void fill_runs();
  void fill_models(const std::filesystem::path& wanted);
  void choose_row(int row);
  void choose_typed();
  void choose_model(int row);
  void browse();
  void set_chosen(const std::filesystem::path& run, const std::filesystem::path& model);
  int row_of(const std::filesystem::path& run) const;

  RunListModel& list_;
  AppSettings& settings_;
  For what_;
  QComboBox *runs_, *models_ = nullptr;
  QLabel *run_label_, *state_;
  std::vector<RunChoice> choices_;
  std::filesystem::path run_, model_;
  bool is_wanted_ = false, has_read_ = false;
  LatestWorker background_;
};

}  // namespace ferry::gui
