#pragma once
// A run in words and shares: how far it is, how long it takes still, why it ended. No widgets.

#include <QString>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "gui/models/runs/run_words.h"
#include "src/service/runs/metrics_reader.h"
#include "src/service/runs/run_actions.h"

namespace ferry::gui {

struct RunProgress {
  int64_t step = 0, n_steps = 0;   ///< n_steps: 0 where it is not known
  double epoch = 0, n_epochs = 0;  ///< n_epochs: 0 where it is not known
  std::optional<double> seconds_left;
  bool is_estimating = false;  ///< it trains, and this session has had too few steps to tell
  std::optional<double> tokens_per_second, loss;

  double share() const;
  /** The share of all epochs that is done, from 0 to 1; 0.5 at "epoch 1.5 of 3". */
  double epoch_share() const;
};
/** Steps of this session after which the time left is told. */
inline constexpr int64_t kSteps_to_estimate = 5;

RunProgress progress_of(const nlohmann::ordered_json& record,
                        const service::RunFacts& facts,
                        const service::MetricsReader& metrics);

struct HostRoom {
  std::string host;  ///< this machine's name
  int64_t free_bytes = 0;
};
/** This machine's. */
HostRoom read_host_room();

/** True where the run trains on a GPU, as its metrics or its promise show. */
bool uses_gpu(const nlohmann::ordered_json& record, const service::MetricsReader& metrics);

/** Bytes of host memory that the run held at its last step. */
std::optional<double> used_host_bytes(const service::MetricsReader& metrics);

/** Why a run ended that did not finish, or what is wrong with one that did; empty: nothing is. Of a
 * run that was killed it tells whether host memory was the reason, as far as its record and `room`
 * say. */
QString why_ended(const nlohmann::ordered_json& record,
                  const service::RunFacts& facts,
                  std::optional<double> used_host_bytes,
                  const HostRoom& room);

}  // namespace ferry::gui
