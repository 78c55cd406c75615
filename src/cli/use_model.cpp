// ferry eval, predict and generate: check the model and what it is given, then become the trainer.

#include <fmt/format.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/cli/inputs.h"
#include "src/cli/settings.h"
#include "src/config/models/models.h"
#include "src/inputs/given_data.h"

namespace ferry::cli {

namespace {

/** `words` are what the verb calls its free words; `waits` is said where they come from a terminal.
 */
int use_model(std::string_view verb,
              Arguments arguments,
              std::string_view words = {},
              std::string_view waits = {}) {
  auto command = read_settings(verb, arguments);
  if (!command) return 0;
  provide_inputs(command->config, service::ModelNeed::weights);
  config::find_model(command->config.text("model_name_or_path"));
  const bool has_dataset = !command->config.text("dataset").empty();
  if (has_dataset && !command->words.empty())
    throw Error(
        Fault::usage, "cli.argument",
        fmt::format("both --dataset and {} are given ('{}')", words, command->words.front()),
        "leave one out");
  check_data_exists(command->config, "dataset");
  if (!has_dataset && command->words.empty() && isatty(0))
    fmt::print(stderr, "ferry: reading {}\n", waits);
  become_trainer(verb, arguments);
}

/** Chats and servers. */
int talk(std::string_view verb, Arguments arguments) {
  // The model is the first word: nothing else is.
  std::vector<std::string> words(arguments.begin(), arguments.end());
  if (!words.empty() && !words.front().starts_with('-') &&
      words.front().find('=') == std::string::npos)
    words.front() = "--model=" + words.front();
  const auto command = read_settings(verb, words);
  if (!command) return 0;
  provide_inputs(command->config, service::ModelNeed::weights);
  config::find_model(command->config.text("model_name_or_path"));
  become_trainer(verb, words);
}

}  // namespace

int run_eval(Arguments arguments) {
  return use_model("eval", arguments);
}

int run_predict(Arguments arguments) {
  return use_model("predict", arguments, "texts",
                   "texts from the terminal, one a line; Ctrl-D ends");
}

int run_generate(Arguments arguments) {
  return use_model("generate", arguments, "prompts",
                   "the prompt from the terminal; Ctrl-D ends it");
}

int run_chat(Arguments arguments) {
  return talk("chat", arguments);
}

int run_serve(Arguments arguments) {
  return talk("serve", arguments);
}

}  // namespace ferry::cli
