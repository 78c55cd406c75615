#pragma once
// Shell completion, made from the option table and the verb table: `ferry completion bash | zsh |
// fish`. What can be completed is data first, so that the three scripts say the same and tests can
// put any text into it. src/cli adds the verbs that take no settings.

#include <string>
#include <string_view>
#include <vector>

#include "src/config/command_line/verb.h"

namespace ferry::config {

/** The kind of word that stands after a flag, or after a free word. */
enum class Completes { nothing, words, file, preset };

/** A flag, with every name that takes the same values. Names are dashed, without the leading "--".
 */
struct CompletedFlag {
  std::vector<std::string> names;            // offered
  std::vector<std::string> aliases = {};     // other trainers' names: only their values are
  std::vector<std::string> verbs;            // that take it
  std::string help;                          // any text
  Completes completes = Completes::nothing;  // what its value is; nothing: free text
  std::vector<std::string> values = {};      // of Completes::words
  bool takes_value = true;                   // false: it stands alone, or may
};

/** A free word of a verb ("cp" of presets), and what stands in the places after it. */
struct CompletedWord {
  std::string name;
  std::vector<Completes> then = {};
};

struct CompletedVerb {
  std::string name;
  std::string summary;  // any text
  std::vector<CompletedWord> words = {};
};

struct CompletedProgram {
  std::vector<CompletedVerb> verbs;
  std::vector<CompletedFlag> flags;
};

enum class Shell { bash, zsh, fish };

/** The verbs that take settings, with their switches and the flags of the options they act on. */
CompletedProgram completed_settings();

/** A script for the shell. It asks the `ferry` that was typed for the names of presets, by
 * `ferry presets ls --names`; all else is in it. */
std::string completion_script(Shell shell, const CompletedProgram& program);

}  // namespace ferry::config
