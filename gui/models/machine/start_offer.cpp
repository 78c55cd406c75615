#include "gui/models/machine/start_offer.h"

#include <QCoreApplication>
#include <QLocale>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "gui/models/plan/refusal_words.h"
#include "gui/models/runs/run_words.h"
#include "gui/models/settings/option_text.h"
#include "gui/models/text.h"
#undef slots  // of Qt; a name in the plan
#include "src/config/models/models.h"
#include "src/service/machine/facts.h"
#include "src/service/machine/smaller_machine.h"
#include "src/service/plan/plan_answer.h"
#include "src/tasks/task.h"

namespace ferry::gui {

namespace fs = std::filesystem;

namespace {

struct StartWords {
  Q_DECLARE_TR_FUNCTIONS(StartWords)
};

int64_t weight_bytes(const fs::path& model) {
  int64_t n_bytes = 0;
  std::error_code error;
  for (fs::directory_iterator it(model, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == ".safetensors")
      n_bytes += static_cast<int64_t>(fs::file_size(it->path(), error));
  return error ? 0 : n_bytes;
}

std::string_view task_of(StartKind kind) {
  return kind == StartKind::go_on ? "causal-lm" : "classification";
}

/** Presets of the task that this machine is large enough for, the user's own not among them. */
std::vector<service::PresetFacts> presets_for(StartKind kind, const service::MachineHere& here) {
  std::vector<service::PresetFacts> presets = service::own_presets();
  std::erase_if(presets, [&](const service::PresetFacts& facts) {
    if (facts.task != task_of(kind) || facts.model.empty() || facts.is_new) return true;
    try {
      return !service::lacks(here, facts.head).empty();
    } catch (const std::exception&) {
      return true;  // a card that is not known
    }
  });
  return presets;
}

const config::Origin kOrigin{config::Source::command_line, "the start page"};

/** Settings for a model that no preset is of: few steps, so that there is soon something to see. */
config::Config plain_settings(StartKind kind, const fs::path& model) {
  config::Config settings;
  const auto set = [&](const char* key, const char* value) { settings.set(key, value, kOrigin); };
  settings.set("model", model.string(), kOrigin);
  settings.set("task", task_of(kind), kOrigin);
  if (kind == StartKind::go_on) {
    set("max_length", "128");
    set("max_steps", "60");
    set("train_batch_size", "4");
    set("learning_rate", "5e-5");
  } else {
    set("eval_fraction", "0.2");
    set("max_length", "128");
    set("num_train_epochs", "2");
    set("train_batch_size", "16");
    set("learning_rate", "3e-5");
    set("warmup_steps", "0.1");
  }
  // Small models may take fewer tokens.
  const HfConfig own = HfConfig::load(model / "config.json");
  const auto positions = own.json().find("max_position_embeddings");
  if (positions != own.json().end() && positions->is_number_integer() &&
      positions->get<int64_t>() < settings.integer("max_length"))
    settings.set("max_length", std::to_string(positions->get<int64_t>()), kOrigin);
  return settings;
}

bool is_of_task(const fs::path& model, StartKind kind) {
  if (config::is_adapter(model)) return false;  // a training begins with a model
  try {
    const HfConfig config = HfConfig::load(model / "config.json");
    const bool goes_on = kind_of_model(config).name == "causal-lm";
    return goes_on == (kind == StartKind::go_on);
  } catch (const std::exception&) {
    return false;  // damaged, or of a family that is not trained
  }
}

void add_presets(StartKind kind,
                 const service::MachineHere& here,
                 ModelOffers& found,
                 std::set<fs::path>& directories) {
  for (service::PresetFacts& facts : presets_for(kind, here)) {
    try {
      const fs::path model = config::find_model(facts.model);
      if (!directories.insert(fs::weakly_canonical(model)).second) continue;
      found.offers.push_back({.name = to_text(facts.model),
                              .preset = to_text(facts.preset.name),
                              .settings = facts.settings,
                              .n_bytes = weight_bytes(model)});
    } catch (const std::exception&) {
      continue;  // not on this machine
    }
  }
}

void add_models(StartKind kind, ModelOffers& found, std::set<fs::path>& directories) {
  for (const config::ModelPlace& place : config::list_model_places())
    for (const config::ModelPlace::Model& model : place.models) {
      std::error_code error;
      const fs::path directory = fs::weakly_canonical(model.directory, error);
      if (error || directories.contains(directory) || !is_of_task(directory, kind)) continue;
      directories.insert(directory);
      // Its directory: a name under ./models is one only where the app was started.
      found.offers.push_back({.name = to_text(model.name),
                              .preset = {},
                              .settings = plain_settings(kind, directory),
                              .n_bytes = weight_bytes(directory)});
    }
}

/** The smallest model of a preset. */
QString small_model_on_hub(StartKind kind) {
  for (const char* name :
       {"SmolLM2-135M", "gpt2", "Qwen2.5-0.5B", "distilbert-base-uncased", "bert-base-uncased"})
    for (const service::PresetFacts& facts : service::own_presets())
      if (facts.task == task_of(kind) && facts.model == name)
        if (const auto id = config::known_model_id(name)) return to_text(*id);
  return {};
}

}  // namespace

MachineLook look_at_machine() {
  const service::Facts facts = service::read_facts();
  const std::vector<service::Finding> findings = service::diagnose(facts);
  MachineLook look;
  look.here = service::machine_here(facts.nvidia, facts.memory);
  if (look.here.gpu_bytes > 0)
    if (const service::Gpu* gpu = service::first_visible_gpu(facts.nvidia))
      look.gpu = StartWords::tr("%1, %2 (%3 free)")
                     .arg(isolated(to_text(gpu->name)), bytes_text(gpu->memory_total_bytes),
                          bytes_text(gpu->memory_free_bytes));
  look.processor = facts.host.n_cores > 0
                       ? StartWords::tr("%1, %n core(s)", nullptr, facts.host.n_cores)
                             .arg(isolated(to_text(facts.host.cpu)))
                       : isolated(to_text(facts.host.cpu));
  look.memory =
      StartWords::tr("%1 free of %2")
          .arg(bytes_text(facts.memory.free_bytes()), bytes_text(facts.memory.total_bytes));
  look.disk = StartWords::tr("%1 free").arg(bytes_text(facts.host.disk_free_bytes));
  look.can_train = service::is_usable(findings);
  for (const service::Finding& finding : findings)
    if (finding.severity != service::Severity::note)
      look.troubles.push_back({.is_error = finding.severity == service::Severity::error,
                               .words = words_of_finding(finding)});
  return look;
}

ModelOffers find_offers(StartKind kind, const service::MachineHere& here) {
  ModelOffers found;
  std::set<fs::path> directories;
  add_presets(kind, here, found, directories);
  add_models(kind, found, directories);
  // A preset's settings are known to be good. On a CPU the smallest is done soonest; a GPU is for
  // the largest that is done in minutes.
  constexpr int64_t kMinutes_bytes = int64_t{1} << 30;
  const bool has_gpu = here.gpu_bytes > 0;
  const auto rank = [&](const ModelOffer& offer) {
    const int64_t size =
        has_gpu && offer.n_bytes <= kMinutes_bytes ? -offer.n_bytes : offer.n_bytes;
    return std::tuple(offer.preset.isEmpty(), size);
  };
  std::stable_sort(found.offers.begin(), found.offers.end(),
                   [&](const ModelOffer& a, const ModelOffer& b) { return rank(a) < rank(b); });
  found.hub_name = small_model_on_hub(kind);
  return found;
}

std::optional<ModelOffer> offer_of(StartKind kind, const fs::path& directory) {
  std::optional<ModelOffer> offer;
  trouble_of([&] {
    if (is_of_task(directory, kind))
      offer = ModelOffer{.name = path_text(directory.filename()),
                         .preset = {},
                         .settings = plain_settings(kind, directory),
                         .n_bytes = weight_bytes(directory)};
  });
  return offer;
}

config::Config settings_of(const ModelOffer& offer,
                           const fs::path& dataset,
                           const std::vector<std::pair<std::string, std::string>>& more) {
  config::Config settings = offer.settings;
  settings.set("dataset", dataset.string(), kOrigin);
  for (const auto& [key, value] : more)
    settings.set(key, value, kOrigin);
  return settings;
}

namespace {

PlanWords words_of(const service::PlanAnswer& answer) {
  PlanWords words{.fits = answer.fits(), .verdict = {}, .promise = {}, .help = {}};
  const bool has_gpu = answer.request.has_gpu;
  if (answer.refusal) {
    words.verdict = StartWords::tr("It does not fit this machine.");
    const RefusalWords said = words_of_refusal(to_text(answer.refusal->what()));
    words.help = StartWords::tr("%1. %2.", "why and help").arg(said.why, said.help);
    return words;
  }
  if (!answer.disk.fits()) {
    words.verdict = StartWords::tr("The disk is too small: %1 are needed and %2 are free.")
                        .arg(bytes_text(answer.disk.need.bytes()),
                             bytes_text(answer.disk.free_bytes.value_or(0)));
    words.help = StartWords::tr("Choose another runs folder in Settings, or make room.");
    return words;
  }
  const int64_t host = host_bytes_of(*answer.plan, has_gpu);
  const QString of_host = StartWords::tr("%1 of %2 memory")
                              .arg(bytes_text(host), bytes_text(answer.request.host_budget_bytes));
  const bool is_tight = answer.verdict() == service::Verdict::tight;
  if (has_gpu) {
    const int64_t gpu = answer.plan->layout.n_bytes[static_cast<size_t>(Place::device)];
    words.verdict =
        (is_tight ? StartWords::tr("It just fits: %1 of %2 GPU memory, %3.")
                  : StartWords::tr("It fits: %1 of %2 GPU memory, %3."))
            .arg(bytes_text(gpu), bytes_text(gpu_budget_of(answer.request, answer.plan->shape)),
                 of_host);
  } else {
    words.verdict =
        (is_tight ? StartWords::tr("It just fits: %1.") : StartWords::tr("It fits: %1."))
            .arg(of_host);
  }
  const QString steps =
      answer.texts.n_steps
          ? StartWords::tr("%n step(s)", nullptr, static_cast<int>(*answer.texts.n_steps))
          : StartWords::tr("The number of steps is known once the data are read.");
  if (answer.time && answer.time->run_s)
    words.promise = StartWords::tr("%1, about %2.").arg(steps, duration_text(*answer.time->run_s));
  else
    words.promise =
        StartWords::tr("%1. The time to finish is shown after the first steps.").arg(steps);
  return words;
}

}  // namespace

StartPlanner::StartPlanner() : planner_(std::make_unique<service::Planner>()) {}
StartPlanner::~StartPlanner() = default;

PlanWords StartPlanner::plan(const config::Config& settings) {
  return words_of(planner_->answer(settings, {.looks_for_gains = false}));
}

}  // namespace ferry::gui
