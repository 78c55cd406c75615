// ferry export: checks that there is a model and that nothing would be overwritten, then becomes
// the trainer.

#include <fmt/format.h>

#include "src/base/error.h"
#include "src/cli/inputs.h"
#include "src/cli/settings.h"
#include "src/config/models/models.h"
#include "src/request/export_target.h"

namespace ferry::cli {

int run_export(Arguments arguments) {
  namespace fs = std::filesystem;
  auto command = read_settings("export", arguments);
  if (!command) return 0;
  provide_inputs(command->config, service::ModelNeed::weights);
  config::find_model(command->config.text("model_name_or_path"));
  const fs::path output = export_target(command->config).path;
  std::error_code error;
  if (fs::exists(output, error) &&
      !(fs::is_directory(output, error) && fs::is_empty(output, error)))
    throw Error(Fault::usage, "cli.export", fmt::format("'{}' is there already", output.string()),
                "give a new name; nothing is overwritten");
  become_trainer("export", arguments);
}

}  // namespace ferry::cli
