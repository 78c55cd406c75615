#pragma once
// The lines that the list of runs shows of one that is selected.

#include <QString>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "src/service/runs/run_actions.h"

namespace ferry::gui {

struct RunDetail {
  QString label, text;
};
/** Reads the names of its checkpoints. `trouble`: why its files cannot be read; `why`: why it
 * ended; each may be empty. */
std::vector<RunDetail> details_of(const std::filesystem::path& run,
                                  const service::RunFacts& facts,
                                  const nlohmann::ordered_json& record,
                                  const QString& trouble,
                                  const QString& why);

}  // namespace ferry::gui
