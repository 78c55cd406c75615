#pragma once
// The messages of the rank that leads to all others between sessions: the next session
// (rank_setup.h), a wish to time all (rank_timing.h), or the run's end. JSON, between processes of
// the same Ferry. Private to this folder.

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "src/comm/comm.h"

namespace ferry {

/** A rank that is there may be at work for as long as a step, or a pause of the run, lasts: its end
 * is seen at once, whatever the deadline is. */
inline constexpr std::chrono::hours kRankDeadline{24};

void tell_all(Comm& comm, const std::string& text);
std::string hear_leader(Comm& comm);

struct RankEnd {
  int exit_code = 0;
  std::string reason;  ///< why it failed or stopped; empty: the run is finished
};
nlohmann::ordered_json to_json(const RankEnd& end);
/** Nothing where the message is another one. */
std::optional<RankEnd> end_in(const nlohmann::ordered_json& message);

}  // namespace ferry
