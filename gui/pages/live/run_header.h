#pragma once
// The state of a run in a few lines: its name, its phase, how far it is, its figures.

#include <QWidget>
#include <filesystem>

#include "gui/models/runs/run_progress.h"

class QLabel;
class QProgressBar;

namespace ferry::gui {

class PhaseMark;

class RunHeader : public QWidget {
  Q_OBJECT

 public:
  explicit RunHeader(QWidget* parent = nullptr);

  void show_name(const std::filesystem::path& run);
  void show_state(const std::string& phase, const QString& detail);
  void show_progress(const RunProgress& progress, const std::string& phase);
  /** Empty: no GPU here, or nobody knows. */
  void show_gpu(const QString& text);

 private:
  struct Figure {
    QLabel* name;
    QLabel* value;
  };
  Figure figure(const QString& name, const char* object_name);

  PhaseMark* mark_ = nullptr;
  QLabel *name_ = nullptr, *phase_ = nullptr, *detail_ = nullptr, *gpu_ = nullptr;
  QLabel *steps_ = nullptr, *epochs_ = nullptr;
  QProgressBar *step_bar_ = nullptr, *epoch_bar_ = nullptr;
  Figure left_{}, loss_{}, speed_{};
};

}  // namespace ferry::gui
