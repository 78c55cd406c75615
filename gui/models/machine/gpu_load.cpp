#include "gui/models/machine/gpu_load.h"

#include <QCoreApplication>
#include <QStringList>

#include "gui/models/runs/run_words.h"
#include "gui/models/text.h"

namespace ferry::gui {

namespace {

using namespace std::chrono_literals;

struct LoadWords {
  Q_DECLARE_TR_FUNCTIONS(ferry::gui::GpuLoad)
};

}  // namespace

GpuLoadWatch::~GpuLoadWatch() = default;

void GpuLoadWatch::set_active(bool active) {
  if (!active) {
    // The reading that goes on ends soon; nobody waits for it here.
    thread_.request_stop();
    return;
  }
  if (!has_driver_ || (thread_.joinable() && !thread_.get_stop_token().stop_requested())) return;
  thread_ = std::jthread([this](std::stop_token stop) { watch(std::move(stop)); });
}

void GpuLoadWatch::watch(std::stop_token stop) {
  const service::GpuMeter meter;
  do {
    std::vector<service::GpuLoad> loads;
    for (int gpu = 0; gpu < meter.n_gpus(); ++gpu)
      loads.push_back(meter.read(gpu));
    QMetaObject::invokeMethod(
        this,
        [this, loads = std::move(loads)]() mutable {
          has_driver_ = !loads.empty();
          loads_ = std::move(loads);
          emit changed();
        },
        Qt::QueuedConnection);
    if (meter.n_gpus() == 0) return;
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, stop, 2s, [] { return false; });
  } while (!stop.stop_requested());
}

QString load_in_words(const service::GpuLoad& load) {
  QStringList words;
  if (load.busy_share) words << LoadWords::tr("%1 % busy").arg(qRound(*load.busy_share * 100));
  if (load.memory_used_bytes && load.memory_total_bytes)
    words << LoadWords::tr("%1 of %2 used")
                 .arg(bytes_text(*load.memory_used_bytes), bytes_text(*load.memory_total_bytes));
  if (load.power_w) words << LoadWords::tr("%1 W").arg(qRound(*load.power_w));
  if (load.temperature_c) words << LoadWords::tr("%1 °C").arg(*load.temperature_c);
  return words.join(LoadWords::tr(", "));
}

}  // namespace ferry::gui
