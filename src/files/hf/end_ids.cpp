#include "src/files/hf/end_ids.h"

namespace ferry {

std::vector<int32_t> end_ids_in(const JsonReader& config) {
  std::vector<int32_t> ids;
  const auto found = config.find("eos_token_id");
  if (!found) return ids;
  const auto add = [&](const JsonReader& id) {
    ids.push_back(static_cast<int32_t>(id.integer(-1, INT32_MAX)));
  };
  if (!found->is_list()) {
    add(*found);
    return ids;
  }
  for (size_t i = 0; i < found->size(); ++i)
    add(found->at(i));
  return ids;
}

}  // namespace ferry
