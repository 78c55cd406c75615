#include "src/train/ranks/rank_messages.h"

#include <nlohmann/json.hpp>
#include <span>

namespace ferry {

void tell_all(Comm& comm, const std::string& text) {
  // The size comes first: it has the same number of bytes for all ranks.
  comm.broadcast_value(static_cast<int64_t>(text.size()), 0);
  std::string bytes = text;
  if (!bytes.empty()) comm.broadcast(std::as_writable_bytes(std::span(bytes)), 0);
}

std::string hear_leader(Comm& comm) {
  std::string text(static_cast<size_t>(comm.broadcast_value(int64_t{0}, 0)), '\0');
  if (!text.empty()) comm.broadcast(std::as_writable_bytes(std::span(text)), 0);
  return text;
}

nlohmann::ordered_json to_json(const RankEnd& end) {
  return {{"exit_code", end.exit_code}, {"reason", end.reason}};
}

std::optional<RankEnd> end_in(const nlohmann::ordered_json& message) {
  if (!message.contains("exit_code")) return std::nullopt;
  return RankEnd{message.at("exit_code"), message.at("reason")};
}

}  // namespace ferry
