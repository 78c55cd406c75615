#include "gui/models/machine/host_load.h"

#include <QCoreApplication>
#include <QFile>
#include <QStringList>

#include "gui/models/runs/run_words.h"
#include "gui/models/text.h"
#include "src/base/process/host_memory.h"

namespace ferry::gui {

namespace {

constexpr int kHostLookMs = 2000;

struct HostLoadWords {
  Q_DECLARE_TR_FUNCTIONS(ferry::gui::HostLoad)
};

}  // namespace

HostLoadWatch::HostLoadWatch(QObject* parent) : QObject(parent) {
  timer_.setInterval(kHostLookMs);
  connect(&timer_, &QTimer::timeout, this, &HostLoadWatch::look);
}

void HostLoadWatch::set_active(bool active) {
  if (active == timer_.isActive()) return;
  if (!active) return timer_.stop();
  timer_.start();
  look();
}

void HostLoadWatch::look() {
  HostLoad load;
  // "cpu  user nice system idle iowait irq softirq steal guest guest_nice"; guests are in user.
  QFile file(QStringLiteral("/proc/stat"));
  if (file.open(QIODevice::ReadOnly)) {
    const QList<QByteArray> ticks = file.readLine().simplified().split(' ');
    int64_t all = 0, idle = 0;
    for (qsizetype i = 1; i < std::min<qsizetype>(ticks.size(), 9); ++i) {
      const int64_t n = ticks[i].toLongLong();
      all += n;
      if (i == 4 || i == 5) idle += n;
    }
    if (all_ > 0 && all > all_)
      load.busy_share = static_cast<double>(all - idle - busy_) / static_cast<double>(all - all_);
    all_ = all;
    busy_ = all - idle;
  }
  trouble_of([&] {
    const HostMemory memory = read_host_memory();
    load.total_bytes = memory.total_bytes;
    load.used_bytes = memory.total_bytes - memory.free_bytes();
  });
  load_ = load;
  emit changed();
}

QString load_in_words(const HostLoad& load) {
  QStringList words;
  if (load.busy_share)
    words << HostLoadWords::tr("CPU %1 %").arg(qBound(0, qRound(*load.busy_share * 100), 100));
  if (load.total_bytes > 0)
    words << HostLoadWords::tr("memory %1 of %2")
                 .arg(bytes_text(load.used_bytes), bytes_text(load.total_bytes));
  return words.join(QStringLiteral(" · "));
}

}  // namespace ferry::gui
