// ferry eval: checks model and data, then becomes the trainer.

#include "src/cli/inputs.h"
#include "src/cli/settings.h"
#include "src/config/models/models.h"
#include "src/inputs/given_data.h"

namespace ferry::cli {

int run_eval(Arguments arguments) {
  auto command = read_settings("eval", arguments);
  if (!command) return 0;
  provide_inputs(command->config, service::ModelNeed::weights);
  config::find_model(command->config.text("model_name_or_path"));
  check_data_exists(command->config, "dataset");
  become_trainer("eval", arguments);
}

}  // namespace ferry::cli
