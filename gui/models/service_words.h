#pragma once
// The service's own short sentences in the app's language: why something may not be done now, how a
// run ended, what a plan chose. Sentences that are not known stay as they are.

#include <QString>
#include <string_view>

namespace ferry::gui {

/** Parts between semicolons are taken by themselves, and numbers stand for any number. */
QString service_words(const QString& said);

/** A metric of an evaluation in words, by the metric's key in metrics.jsonl: "eval_f1_macro" is
 * "f1 macro". Unknown names stay as they are. */
QString metric_words(std::string_view key);

}  // namespace ferry::gui
