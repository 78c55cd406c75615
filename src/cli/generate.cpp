// ferry generate: prompts from words, a file or standard input; checks, then becomes the trainer.

#include <fmt/format.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/cli/inputs.h"
#include "src/cli/settings.h"
#include "src/config/models/models.h"
#include "src/inputs/given_data.h"

namespace ferry::cli {

int run_generate(Arguments arguments) {
  auto command = read_settings("generate", arguments);
  if (!command) return 0;
  provide_inputs(command->config, service::ModelNeed::weights);
  config::find_model(command->config.text("model_name_or_path"));
  const bool has_dataset = !command->config.text("dataset").empty();
  if (has_dataset && !command->words.empty())
    throw Error(Fault::usage, "cli.argument",
                fmt::format("both --dataset and prompts are given ('{}')", command->words.front()),
                "leave one out");
  check_data_exists(command->config, "dataset");
  if (!has_dataset && command->words.empty() && isatty(0))
    fmt::print(stderr, "ferry: reading the prompt from the terminal; Ctrl-D ends it\n");
  become_trainer("generate", arguments);
}

}  // namespace ferry::cli
