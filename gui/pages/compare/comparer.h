#pragma once
// service::compare_runs in a thread: it reads the runs' metrics whole. The latest question wins.

#include <QObject>
#include <filesystem>
#include <memory>
#include <vector>

#include "gui/models/latest_worker.h"
#include "src/service/runs/comparison.h"

namespace ferry::gui {

class Comparer : public QObject {
  Q_OBJECT

 public:
  explicit Comparer(QObject* parent = nullptr);

  void compare(std::vector<std::filesystem::path> runs);

 signals:
  /** comparison: null where trouble says why. */
  void compared(std::shared_ptr<const ferry::service::RunComparison> comparison,
                const QString& trouble);

 private:
  LatestWorker worker_;
};

}  // namespace ferry::gui
