#pragma once
// Beside the settings of the model: those that are on this machine, and what the chosen one is.

#include <QWidget>

#include "gui/models/inputs/model_facts.h"

class QLabel;
class QTreeWidget;

namespace ferry::gui {

class HubBox;

class ModelPanel : public QWidget {
  Q_OBJECT

 public:
  explicit ModelPanel(QWidget* parent = nullptr);

  void show_models(const std::vector<ModelHere>& models);
  void show_facts(const ModelFacts& facts, const QString& name);

 signals:
  /** A model of the list, by its name. */
  void chosen(const QString& name);
  /** The chosen model has come from a hub. */
  void fetched();

 private:
  QTreeWidget* models_ = nullptr;
  QLabel *none_ = nullptr, *facts_ = nullptr, *trains_ = nullptr;
  HubBox* hub_ = nullptr;
};

}  // namespace ferry::gui
