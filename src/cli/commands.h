#pragma once
// The verbs of the ferry binary. Each takes the words after the verb and gives the exit
// code; main prints an Error that a verb throws. Nothing here loads LibTorch: the verbs that train
// become ferry-trainer.

#include <span>
#include <string>
#include <string_view>

namespace ferry::cli {

using Arguments = std::span<const std::string>;

int run_train(Arguments arguments);
int run_eval(Arguments arguments);
int run_predict(Arguments arguments);
int run_generate(Arguments arguments);
int run_chat(Arguments arguments);
int run_serve(Arguments arguments);
int run_export(Arguments arguments);
int run_fetch(Arguments arguments);
int run_plan(Arguments arguments);
int run_preview(Arguments arguments);
int run_doctor(Arguments arguments);
int run_bench(Arguments arguments);
int run_runs(Arguments arguments);
int run_presets(Arguments arguments);
int run_gui(Arguments arguments);
int run_completion(Arguments arguments);
int run_help(Arguments arguments);

/** The parts that `ferry bench` takes. */
std::span<const std::string_view> bench_parts();

struct Command {
  std::string_view name;
  std::string_view summary;
  int (*run)(Arguments);
};

/** All verbs, in the order of `ferry --help`. */
std::span<const Command> commands();
/** The verb of that name. Throws Error(usage) with the nearest one. */
const Command& find_command(std::string_view name);

}  // namespace ferry::cli
