#pragma once
// The queue under the list of runs: what waits, in order, and the switch that lets it start.

#include <QWidget>

#include "gui/models/runs/run_queue.h"
#include "gui/models/settings/app_settings.h"

class QCheckBox;
class QLabel;
class QListView;
class QPushButton;

namespace ferry::gui {

class QueueSection : public QWidget {
  Q_OBJECT

 public:
  QueueSection(AppSettings& settings, RunQueue& queue, QWidget* parent = nullptr);

 private:
  void show_state();
  QPushButton* add_button(const char* name, const QString& text);
  int row() const;

  AppSettings& settings_;
  RunQueue& queue_;
  QCheckBox* switch_;
  QLabel *status_, *empty_;
  QListView* list_;
  QWidget* content_;
  QPushButton *up_ = nullptr, *down_ = nullptr, *start_ = nullptr, *remove_ = nullptr;
};

}  // namespace ferry::gui
