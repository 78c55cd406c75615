#pragma once
// The settings that a new run is planned with. On this machine they are the settings of the run. On
// a card that is not here, some amounts are tried in the plan alone and never change the run.
//
//   what_if.set_run(settings);
//   what_if.set_machine("3090-24g");
//   what_if.change("gpu_memory", "12GiB");   // of the plan
//   planner.ask(what_if.planned());

#include <QString>
#include <optional>
#include <utility>
#include <vector>

#include "src/config/config.h"

namespace ferry::gui {

class WhatIf {
 public:
  void set_run(const config::Config& settings) { run_ = settings; }
  bool has_run() const { return run_.has_value(); }
  /** "auto": this one. What was tried on another machine goes. */
  void set_machine(const QString& name);
  bool is_elsewhere() const { return machine_ != QLatin1String("auto"); }
  /** Tries a setting in the plan of another machine, in place of the one before. */
  void change(const QString& key, const QString& value);
  /** Keys and values that were tried, in the order of the first tries. */
  const std::vector<std::pair<QString, QString>>& changes() const { return changes_; }

  // The run's settings as the planner takes them; values that are none are left out.
  /** On the chosen machine, with what was tried. */
  config::Config planned() const;
  /** On this machine, as the run is. */
  config::Config here() const;

 private:
  std::optional<config::Config> run_;
  QString machine_ = QStringLiteral("auto");
  std::vector<std::pair<QString, QString>> changes_;
};

}  // namespace ferry::gui
