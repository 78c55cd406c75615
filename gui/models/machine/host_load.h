#pragma once
// The load of this machine's processor and memory, read every other second while somebody looks.

#include <QObject>
#include <QTimer>
#include <cstdint>
#include <optional>

namespace ferry::gui {

struct HostLoad {
  std::optional<double> busy_share;  ///< of all cores since the reading before, 0 to 1
  int64_t used_bytes = 0, total_bytes = 0;
};

class HostLoadWatch : public QObject {
  Q_OBJECT

 public:
  explicit HostLoadWatch(QObject* parent = nullptr);

  void set_active(bool active);
  const HostLoad& load() const { return load_; }

  /** A reading, as the timer does it; public for tests. */
  void look();

 signals:
  void changed();

 private:
  HostLoad load_;
  int64_t busy_ = 0, all_ = 0;  ///< ticks of all cores since the machine's start
  QTimer timer_;
};

/** "CPU 23 % · memory 3.1 GiB of 7.6 GiB" */
QString load_in_words(const HostLoad& load);

}  // namespace ferry::gui
