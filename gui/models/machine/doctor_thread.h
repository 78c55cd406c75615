#pragma once
// Looks at this machine, and has it measured, without anybody waiting.

#include <QElapsedTimer>
#include <QObject>
#include <memory>
#include <stop_token>
#include <utility>
#include <vector>

#include "gui/models/inputs/model_facts.h"
#include "gui/models/latest_worker.h"
#include "src/service/machine/facts.h"

namespace ferry::gui {

struct DoctorReport {
  service::Facts facts;
  std::vector<service::Finding> findings;  ///< the gravest first
  service::Measured measured;              ///< of this look, where it measured
  std::vector<ModelHere> models;
  bool is_usable = false;  ///< nothing prevents training
};

class DoctorThread : public QObject {
  Q_OBJECT

 public:
  explicit DoctorThread(QObject* parent = nullptr);
  ~DoctorThread() override;

  void look();
  /** As `ferry doctor` does: the trainer works some 20 s, and the profile is kept. */
  void measure();
  /** Ends a measurement; what was kept before stays. */
  void cancel();
  bool is_measuring() const { return is_measuring_; }
  bool is_waiting() const { return is_waiting_; }
  double measuring_s() const;

 signals:
  void looked(const std::shared_ptr<const ferry::gui::DoctorReport>& report);

 private:
  void post(bool measures);

  bool is_measuring_ = false, is_waiting_ = false;
  QElapsedTimer since_;
  std::stop_source stop_;
  LatestWorker worker_;
};

/** Names and values of what the machine has. */
std::vector<std::pair<QString, QString>> fact_rows(const service::Facts& facts);
/** The same of what was measured; empty where nothing was. */
std::vector<std::pair<QString, QString>> profile_rows(const MachineProfile& profile);
/** The report as `ferry doctor --json` prints it, to be copied. */
QString report_text(const DoctorReport& report);

}  // namespace ferry::gui
