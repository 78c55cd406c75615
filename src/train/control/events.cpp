#include "src/train/control/events.h"

#include <nlohmann/json.hpp>
#include <string>

#include "src/base/data_output.h"

namespace ferry {

void tell_event(std::string_view name, const nlohmann::ordered_json& fields) {
  if (!is_output_for_data()) return;
  nlohmann::ordered_json line = {{"event", name}};
  if (fields.is_object()) line.update(fields);
  print_data(line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

void tell_metrics(const nlohmann::ordered_json& line) {
  tell_event(line.contains("eval_loss") ? "evaluation"
             : line.contains("loss")    ? "progress"
                                        : "checkpoint",
             line);
}

}  // namespace ferry
