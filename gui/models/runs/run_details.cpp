#include "gui/models/runs/run_details.h"

#include <QCoreApplication>
#include <QLocale>
#include <nlohmann/json.hpp>

#include "gui/models/runs/run_progress.h"
#include "gui/models/service_words.h"
#include "gui/models/text.h"
#include "src/runs/directory/checkpoints.h"

namespace ferry::gui {

using nlohmann::ordered_json;
using service::RunFacts;
using service::Trainer;

namespace {

struct RunDetails {
  Q_DECLARE_TR_FUNCTIONS(RunDetails)
};

}  // namespace

std::vector<RunDetail> details_of(const std::filesystem::path& run,
                                  const RunFacts& facts,
                                  const ordered_json& record,
                                  const QString& trouble,
                                  const QString& why) {
  std::vector<RunDetail> details;
  const auto add = [&](const QString& label, const QString& text) {
    if (!text.isEmpty()) details.push_back({label, text});
  };
  const HostRoom room = read_host_room();
  add(RunDetails::tr("Problem"), trouble);
  add(RunDetails::tr("Ended"),
      facts.phase == "finished" && why.isEmpty() ? RunDetails::tr("All steps are done.") : why);
  const auto checkpoints = runs::complete_checkpoints(run);
  if (!checkpoints.empty())
    add(RunDetails::tr("Last checkpoint"),
        checkpoints.size() == 1
            ? path_text(checkpoints.back().path.filename())
            : RunDetails::tr("%1 (%n are kept)", nullptr, static_cast<int>(checkpoints.size()))
                  .arg(shown_path(checkpoints.back().path.filename())));
  else if (record.is_object())
    add(RunDetails::tr("Last checkpoint"), RunDetails::tr("none"));
  if (record.is_object() && record.contains("parent") && record["parent"].is_object())
    add(RunDetails::tr("Begun from"), text_in(record["parent"], "run"));
  if (facts.trainer != Trainer::none && record.is_object() && record.contains("pid") &&
      record["pid"].is_number_integer())
    add(RunDetails::tr("Process"),
        text_in(record, "host").toStdString() == room.host
            ? RunDetails::tr("%1 on this machine").arg(record["pid"].get<int64_t>())
            : RunDetails::tr("%1 on %2")
                  .arg(record["pid"].get<int64_t>())
                  .arg(text_in(record, "host")));
  add(RunDetails::tr("Plan"), record.is_object() && record.contains("plan")
                                  ? sentence(service_words(text_in(record["plan"], "why")))
                                  : QString());
  add(RunDetails::tr("Directory"), path_text(run));
  return details;
}

}  // namespace ferry::gui
