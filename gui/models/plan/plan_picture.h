#pragma once
// A plan's answer as bars, lines of figures and words. The numbers are those of `ferry plan
// --json`.

#include <QCoreApplication>
#include <QString>
#include <utility>
#include <vector>

#include "gui/models/plan/bars.h"
#include "gui/models/plan/plan_thread.h"

namespace ferry::gui {

class PlanPicture {
  Q_DECLARE_TR_FUNCTIONS(ferry::gui::PlanPicture)

 public:
  PlanPicture() = default;
  /** The reason for an outcome without an answer: there is no plan, and there are no bars. */
  explicit PlanPicture(const PlanOutcome& outcome);

  std::vector<Bar> memory;  ///< one for each place
  std::vector<Bar> time;    ///< of a step, one for each resource; empty where it is not known
  service::Verdict verdict = service::Verdict::does_not_fit;
  QString verdict_word;  ///< "Fits", "Tight", "Does not fit"
  QString why;           ///< a sentence: what was chosen, or what is missing
  QString help;          ///< of a plan that does not fit: what would help, in the planner's words
  /** Name and value: "Speed", "41.2 samples/s". */
  std::vector<std::pair<QString, QString>> figures;
  QString machine;  ///< "2080ti-11g, by its profile"
  QStringList notes;
  QStringList assumptions;  ///< that the machine's figures rest on
  QString summary;          ///< all of it in some sentences

  static QString gib(double n_bytes);
  /** A size as settings are written, in whole MiB: "8GiB". */
  static QString setting_of(int64_t n_bytes);
  static QString milliseconds(double seconds);
  /** "Max length 1024 (−3.0 GiB)" */
  static QString text_of(const PlanChange& change);

 private:
  /** The service's own words in the app's language. */
  static QString name_of(const service::PlannedMachine& machine);
  void add_error(const Error& error);
  void add_memory(const service::PlanAnswer& answer);
  void add_time(const service::PlanAnswer& answer);
  void add_drive_figures(const service::PlannedNvme& nvme);
  void add_verdict(const PlanOutcome& outcome);
  void add_notes(const service::PlanAnswer& answer);
  void add_summary();

  bool is_complete_ = false;
};

}  // namespace ferry::gui
