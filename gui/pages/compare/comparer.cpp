#include "gui/pages/compare/comparer.h"

#include <utility>

namespace ferry::gui {

Comparer::Comparer(QObject* parent) : QObject(parent), worker_(this) {}

void Comparer::compare(std::vector<std::filesystem::path> runs) {
  using Comparison = std::shared_ptr<const service::RunComparison>;
  worker_.ask(
      [runs = std::move(runs)]() -> Comparison {
        return std::make_shared<const service::RunComparison>(service::compare_runs(runs));
      },
      [this](Comparison comparison, const QString& trouble) {
        emit compared(std::move(comparison), trouble);
      });
}

}  // namespace ferry::gui
