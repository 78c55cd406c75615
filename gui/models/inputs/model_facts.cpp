#include "gui/models/inputs/model_facts.h"

#include <QCoreApplication>
#include <QRegularExpression>

#include "gui/models/service_words.h"
#include "gui/models/settings/option_text.h"
#include "gui/models/text.h"
// Qt's keyword is a name in the planner.
#undef slots
#include "models/family.h"
#include "src/config/models/models.h"
#include "src/files/hf/hf_config.h"
#include "src/inputs/model_files.h"
#include "src/request/run_plan.h"
#include "src/runs/directory/checkpoints.h"
#include "src/tasks/task.h"

namespace ferry::gui {

namespace fs = std::filesystem;

namespace {

/** A head that the family has: the task's, if it is one of them. */
HeadKind head_for(const Family& family, const QString& task) {
  const HeadKind wanted = head_in_files(family, task_kind(task.toStdString()).head);
  const bool has = std::ranges::find(family.heads, wanted) != family.heads.end();
  return has || family.heads.empty() ? wanted : family.heads.front();
}

/** The shape, by the family's own table. */
void take_shape(ModelFacts& facts, const HfConfig& hf, const config::Config& config) {
  const Family& family = family_of(hf.fields());
  facts.family = to_text(family.model_type);
  facts.is_decoder = family.is_decoder;
  const QString task = to_text(config.text("task"));
  for (const TaskKind& kind : task_kinds())
    if (std::ranges::find(family.heads, head_in_files(family, kind.head)) != family.heads.end())
      facts.tasks << to_text(kind.name);
  if (!facts.tasks.contains(task))
    facts.task_problem = QCoreApplication::translate("ModelFacts", "A %1 model is trained for: %2.")
                             .arg(isolated(facts.family), isolated(listed(facts.tasks)));
  const ModelTable table = make_table(hf.fields(), {.head = head_for(family, task)});
  for (const BlockTable& block : table.blocks)
    facts.n_layers += block.kind == BlockKind::layer;
  facts.n_params = table.n_params();
  facts.width = table.width;
  facts.vocabulary = table.vocab_size;
  facts.max_positions = table.max_positions;

  config::Config with_defaults;
  if (facts.is_drawn)
    with_defaults.set("config_name", config.text("config_name"),
                      {config::Source::command_line, "the app"});
  with_defaults.set("task", config.text("task"), {config::Source::command_line, "the app"});
  take_family_defaults(with_defaults, hf);
  for (const char* key : {"learning_rate", "train_batch_size"})
    if (with_defaults.origin(key).source == config::Source::chosen)
      facts.defaults[key] =
          to_text(config::to_toml(*config::find_option(key).option, with_defaults.value(key)))
              .replace(QLatin1String("e-0"), QLatin1String("e-"));
}

/** True where the message says that a download would help. */
bool asks_for_download(const QString& message) {
  return message.contains(QLatin1String("fetch it: ferry fetch "));
}

/** Without the advice to fetch it where a button stands for that. */
QString problem_in(const QString& message, bool has_button) {
  static const QRegularExpression advice(QStringLiteral("( - |; or )fetch it: ferry fetch .*$"));
  QString text = message_of(message).text;
  return has_button ? text.remove(advice) : text;
}

}  // namespace

std::vector<ModelHere> models_here() {
  std::vector<ModelHere> models;
  std::error_code error;
  for (const config::ModelPlace& place : config::list_model_places())
    for (const config::ModelPlace::Model& found : place.models) {
      if (config::is_adapter(found.directory)) continue;  // a training begins with a model
      ModelHere model = {.name = to_text(found.name),
                         .place = service_words(to_text(place.name)),
                         .directory = path_text(found.directory),
                         .family = {},
                         .problem = {}};
      const auto trouble = words_of_trouble([&] {
        const HfConfig hf = HfConfig::load(found.directory / "config.json");
        model.family = to_text(hf.model_type);
        const Family& family = family_of(hf.fields());
        model.n_params =
            make_table(hf.fields(), {.head = head_for(family, QStringLiteral("classification"))})
                .n_params();
      });
      if (trouble) model.problem = *trouble;
      models.push_back(std::move(model));
    }
  return models;
}

ModelFacts read_model_facts(const config::Config& config) {
  ModelFacts facts;
  facts.is_drawn = draws_weights(config);
  facts.key = facts.is_drawn ? "config_name" : "model_name_or_path";
  const std::string name = config.text(facts.key.toStdString());
  const std::string& from = config.text("resume_from_checkpoint");
  if (name.empty() && from.empty()) return facts;
  std::optional<HfConfig> hf;
  const auto trouble = trouble_of([&] {
    if (!from.empty()) {  // the checkpoint is enough, whatever became of the model
      if (const auto resumed = runs::find_resume_point(from); resumed.checkpoint) {
        facts.key = "resume_from_checkpoint";
        facts.directory = path_text(resumed.checkpoint->path);
        hf = HfConfig::load(resumed.checkpoint->path / "config.json");
        return;
      }
    }
    if (facts.is_drawn) {
      hf = find_scratch_model(config).config;
      open_model(config);  // says that a tokenizer is missing
      return;
    }
    const fs::path directory = config::find_model(name);
    facts.directory = path_text(directory);
    hf = HfConfig::load(config::config_file_of(directory));
    open_directory(directory);
  });
  if (trouble) {
    if (const auto repo = config::hub_model_of(name); repo && asks_for_download(*trouble))
      facts.hub_name = to_text(repo->text());
    facts.problem = problem_in(*trouble, !facts.hub_name.isEmpty());
    // The shape of many models is known by their name.
    if (const auto known = config::known_model_config(name); known && !hf)
      trouble_of([&] { hf = HfConfig::parse(*known, name); });
  }
  if (!hf) return facts;
  if (const auto other = words_of_trouble([&] { take_shape(facts, *hf, config); });
      other && facts.problem.isEmpty())
    facts.problem = *other;
  return facts;
}

QString count_text(int64_t count) {
  const auto n = static_cast<double>(count);
  const auto digits = [](double x) {
    return QString::number(x, 'f', x < 10 ? 2 : x < 100 ? 1 : 0);
  };
  if (count >= 1'000'000'000)
    return QCoreApplication::translate("ModelFacts", "%1 B").arg(digits(n / 1e9));
  if (count >= 1'000'000)
    return QCoreApplication::translate("ModelFacts", "%1 M").arg(digits(n / 1e6));
  return QString::number(count);
}

}  // namespace ferry::gui
