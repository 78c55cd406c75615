#include "src/plan/drive_life.h"

#include <fmt/format.h>

#include "src/base/bytes.h"

namespace ferry {

namespace {

constexpr double kHour_s = 3600, kDay_s = 24 * kHour_s, kYear_s = 365 * kDay_s;

/** "3.1 years", "17 days", "7.2 hours" */
std::string time_text(double seconds) {
  if (seconds >= kYear_s) return fmt::format("{:.1f} years", seconds / kYear_s);
  if (seconds >= 2 * kDay_s) return fmt::format("{:.0f} days", seconds / kDay_s);
  return fmt::format("{:.1f} hours", seconds / kHour_s);
}

}  // namespace

bool DriveLife::is_short() const {
  return seconds && *seconds < kYear_s;
}

std::optional<DriveLife> drive_life_of(const NvmeNeed& need,
                                       std::optional<int64_t> endurance_bytes,
                                       std::optional<double> step_s) {
  if (!endurance_bytes || need.written_bytes == 0) return std::nullopt;
  DriveLife life = {.n_steps = static_cast<double>(*endurance_bytes) /
                               static_cast<double>(need.written_bytes)};
  if (step_s) life.seconds = life.n_steps * *step_s;
  return life;
}

std::string wear_text(const NvmeNeed& need, const std::optional<DriveLife>& life) {
  if (need.n_pieces == 0) return {};
  const std::string traffic =
      fmt::format("A step reads {} from the drive and writes {} to it.",
                  format_bytes(need.read_bytes), format_bytes(need.written_bytes));
  if (!life) return traffic;
  const std::string time =
      life->seconds ? fmt::format("{} of training without a pause: ", time_text(*life->seconds))
                    : "";
  return fmt::format("{} nvme_endurance lasts for {}{:.0f} steps.", traffic, time, life->n_steps);
}

std::string wear_warning(const std::optional<DriveLife>& life) {
  if (!life || !life->is_short()) return {};
  return fmt::format(
      "this run writes so much to the drive that it is worn after {} of training without a pause; "
      "more host_memory, optim = adamw_8bit or a larger train_batch_size writes less",
      time_text(*life->seconds));
}

}  // namespace ferry
