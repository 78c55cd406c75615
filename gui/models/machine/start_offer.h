#pragma once
// The first run that the app offers on this machine: what it can do, the models that are here and
// fit it, and whether the run fits. Plain functions for a thread; nothing here is kept.

#include <QString>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "gui/models/machine/finding_words.h"
#include "src/config/config.h"
#include "src/service/presets.h"

namespace ferry::service {
class Planner;
}

namespace ferry::gui {

/** This machine in short words. */
struct MachineLook {
  struct Trouble {
    bool is_error = false;  ///< training cannot run
    FindingWords words;
  };
  QString gpu;        ///< "NVIDIA H200, 139.8 GiB"; empty: training runs on the CPU
  QString processor;  ///< "AMD EPYC 7763, 64 cores"
  QString memory;     ///< "17.4 GiB free of 23.5 GiB"
  QString disk;       ///< "41.5 GiB free"
  bool can_train = false;
  std::vector<Trouble> troubles;  ///< the gravest first; no mere notes
  service::MachineHere here;
};
MachineLook look_at_machine();

enum class StartKind {
  classify,  ///< a label for each text
  go_on,     ///< a language model that continues texts
  own_data,  ///< a label for each of the user's own texts
};

/** A model that is here, and the settings that suit it. */
struct ModelOffer {
  QString name;    ///< as people call it
  QString preset;  ///< empty: of no preset
  config::Config settings;
  int64_t n_bytes = 0;  ///< of its weights
};

struct ModelOffers {
  std::vector<ModelOffer> offers;  ///< the one that is offered first
  QString hub_name;  ///< by which a hub has a small one to begin with; empty: none is known
};
/** The model in a directory; nullopt: the directory has no model, or its model does not do `kind`.
 */
std::optional<ModelOffer> offer_of(StartKind kind, const std::filesystem::path& directory);
/** Models on this machine for what is to be done; of presets those that were made for no more than
 * this machine. */
ModelOffers find_offers(StartKind kind, const service::MachineHere& here);

/** The offer's settings with data: what a run is started with. */
config::Config settings_of(const ModelOffer& offer,
                           const std::filesystem::path& dataset,
                           const std::vector<std::pair<std::string, std::string>>& more);

/** A plan in the two lines of the page. */
struct PlanWords {
  bool fits = false;
  QString verdict;  ///< "It fits: 0.9 of 16.5 GiB of memory are needed."
  QString promise;  ///< "222 steps of 16 texts, about 2 minutes."
  QString help;     ///< what would help where it does not fit
};
/** Plans one after another; data are read once. For one thread. */
class StartPlanner {
 public:
  StartPlanner();
  ~StartPlanner();
  /** Throws Error for what is wrong with settings, model or data. */
  PlanWords plan(const config::Config& settings);

 private:
  std::unique_ptr<service::Planner> planner_;
};

}  // namespace ferry::gui
