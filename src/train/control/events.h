#pragma once
// `ferry train --json` writes a line of JSON on standard output for each event of a training. The
// events are choosing (each plan that is timed), start, plan, promise, progress (each step),
// evaluation, checkpoint and end. Without --json nothing is told.

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace ferry {

/** One line: `{"event": NAME, ...fields}`. */
void tell_event(std::string_view name, const nlohmann::ordered_json& fields);

/** A line of metrics.jsonl as an event. */
void tell_metrics(const nlohmann::ordered_json& line);

}  // namespace ferry
