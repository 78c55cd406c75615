#include "gui/pages/compare/comparer.h"

#include "gui/models/text.h"

namespace ferry::gui {

Comparer::~Comparer() = default;

void Comparer::compare(std::vector<std::filesystem::path> runs) {
  runs_ = std::move(runs);
  ++n_questions_;
  // A comparison that goes on cannot be ended: the next begins when it has.
  if (!is_busy_) begin();
}

void Comparer::begin() {
  is_busy_ = true;
  thread_ = std::jthread([this, runs = runs_, question = n_questions_] {
    std::shared_ptr<const service::RunComparison> comparison;
    const auto trouble = trouble_of([&] {
      comparison = std::make_shared<const service::RunComparison>(service::compare_runs(runs));
    });
    QMetaObject::invokeMethod(
        this,
        [this, question, comparison, text = trouble.value_or(QString())] {
          take(question, comparison, text);
        },
        Qt::QueuedConnection);
  });
}

void Comparer::take(int question,
                    std::shared_ptr<const service::RunComparison> comparison,
                    const QString& trouble) {
  is_busy_ = false;
  if (question != n_questions_) return begin();
  emit compared(std::move(comparison), trouble);
}

}  // namespace ferry::gui
