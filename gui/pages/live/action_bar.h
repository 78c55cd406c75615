#pragma once
// The buttons that steer a run, and their actions for menus and keys. allowed_actions() alone
// decides which are enabled, and says why one is not.

#include <QList>
#include <QWidget>
#include <array>

#include "src/service/runs/run_actions.h"

class QAction;
class QToolButton;

namespace ferry::gui {

class ActionBar : public QWidget {
  Q_OBJECT

 public:
  explicit ActionBar(QWidget* parent = nullptr);

  /** is_starting: a process of the run is on its way. */
  void show_run(const service::RunFacts& facts, bool is_starting);
  /** Null for one that this bar does not offer. */
  QAction* action(service::RunAction action) const { return actions_[static_cast<size_t>(action)]; }
  QList<QAction*> all_actions() const;

 signals:
  void wanted(ferry::service::RunAction action);

 private:
  QAction* add(service::RunAction action,
               const QString& text,
               const QString& tip,
               const char* name);
  QToolButton* button(const char* name);

  std::array<QAction*, service::kRunActions> actions_{};
  std::array<QString, service::kRunActions> tips_;
  QToolButton *pause_ = nullptr, *save_ = nullptr, *sample_ = nullptr, *stop_ = nullptr,
              *force_ = nullptr, *resume_ = nullptr;
};

}  // namespace ferry::gui
