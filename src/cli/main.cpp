// ferry VERB ...: finds the verb, runs it, prints an Error as one line and gives its exit code.

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <span>
#include <vector>

#include "src/base/data_output.h"
#include "src/base/error.h"
#include "src/base/print.h"
#include "src/base/process/out_of_memory.h"
#include "src/base/utf8.h"
#include "src/cli/commands.h"
#include "src/files/lost_pages.h"
#include "src/files/write/owned_file.h"
#include "src/term/terminal.h"

namespace {

int run(const std::vector<std::string>& words) {
  using namespace ferry::cli;
  const Arguments all(words);
  if (words.empty()) {
    std::fputs("usage: ferry VERB [options]; ferry --help lists the verbs\n", stderr);
    return static_cast<int>(ferry::Fault::usage);
  }
  if (words[0] == "--version" || words[0] == "-V") {
    fmt::print("ferry {}\n", FERRY_VERSION);
    return 0;
  }
  if (words[0] == "--help" || words[0] == "-h") return run_help({});
  return find_command(words[0]).run(all.subspan(1));
}

int report(std::string_view message, int exit_code) {
  using namespace ferry::term;
  const Terminal terminal = detect_terminal(2);
  fmt::print(stderr, "{} {}\n", styled("ferry:", Style::red, terminal), ferry::escaped(message));
  return exit_code;
}

/** What went wrong as a line of JSON too, where standard output is for programs. */
int report_all(std::string_view message, int exit_code, std::span<char*> arguments) {
  for (const std::string_view argument : arguments) {
    if (argument == "--") break;
    if (argument == "--json") {
      ferry::print(ferry::json_of_error(message, exit_code) + "\n");
      break;
    }
  }
  return report(message, exit_code);
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kMachine = static_cast<int>(ferry::Fault::machine);
  ferry::end_on_lost_pages();
  const std::span<char*> arguments(argv + 1, argv + argc);
  ferry::end_on_lost_memory();
  ferry::keep_memory_reserve();
  ferry::keep_others_out();
  int exit_code = 0;
  try {
    exit_code = run({arguments.begin(), arguments.end()});
  } catch (const ferry::Error& error) {
    return report_all(error.what(), error.exit_code(), arguments);
  } catch (const std::exception& error) {  // a file system that fails, no memory
    const auto no_memory = ferry::out_of_memory(error);
    return no_memory ? report_all(no_memory->what(), no_memory->exit_code(), arguments)
                     : report_all(error.what(), kMachine, arguments);
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    return report("[cli.output] cannot write to standard output - is the disk full?", kMachine);
  return exit_code;
}
