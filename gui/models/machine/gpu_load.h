#pragma once
// The load of this machine's GPUs, asked of the driver in a thread every other second while
// somebody looks.

#include <QObject>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "src/service/machine/gpu_meter.h"

namespace ferry::gui {

class GpuLoadWatch : public QObject {
  Q_OBJECT

 public:
  using QObject::QObject;
  ~GpuLoadWatch() override;

  void set_active(bool active);
  /** A GPU each; empty without a driver, and before the first reading. */
  const std::vector<service::GpuLoad>& loads() const { return loads_; }

 signals:
  void changed();

 private:
  void watch(std::stop_token stop);

  std::vector<service::GpuLoad> loads_;
  bool has_driver_ = true;  ///< until a look finds none: then nobody looks again
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

/** "87 % busy, 5.3 of 8.0 GiB, 143 W, 71 °C": what of it is known. */
QString load_in_words(const service::GpuLoad& load);

}  // namespace ferry::gui
