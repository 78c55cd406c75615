#pragma once
// service::compare_runs in a thread: it reads the runs' metrics whole. The latest question wins.

#include <QObject>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "src/service/runs/comparison.h"

namespace ferry::gui {

class Comparer : public QObject {
  Q_OBJECT

 public:
  using QObject::QObject;
  ~Comparer() override;

  void compare(std::vector<std::filesystem::path> runs);

 signals:
  /** comparison: null where trouble says why. */
  void compared(std::shared_ptr<const ferry::service::RunComparison> comparison,
                const QString& trouble);

 private:
  void begin();
  void take(int question,
            std::shared_ptr<const service::RunComparison> comparison,
            const QString& trouble);

  int n_questions_ = 0;
  bool is_busy_ = false;
  std::vector<std::filesystem::path> runs_;
  std::jthread thread_;
};

}  // namespace ferry::gui
