#pragma once
// A row that brings a model or a data set of a hub: asks for its size, shows how much has come, and
// may be cancelled.

#include <QWidget>

#include "gui/models/inputs/hub_download.h"

class QLabel;
class QProgressBar;
class QPushButton;

namespace ferry::gui {

class ErrorLabel;

class HubBox : public QWidget {
  Q_OBJECT

 public:
  explicit HubBox(HubDownload::Kind kind, QWidget* parent = nullptr);

  /** Hidden for an empty name. */
  void offer(const QString& name);
  HubDownload& download() { return download_; }

 private:
  void show_state();
  void act();

  HubDownload download_;
  QLabel* words_;
  QProgressBar* bar_;
  QPushButton *act_, *cancel_;
  ErrorLabel* error_;
};

}  // namespace ferry::gui
