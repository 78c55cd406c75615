#pragma once
// The verbs that take settings: which options each acts on, which it cannot do without, and its
// help text. The ferry binary and the trainer read the same table. doctor and presets take no
// settings and are not here.

#include <string>
#include <string_view>
#include <vector>

#include "src/config/options/option.h"

namespace ferry::config {

struct Verb {
  std::string_view name;
  VerbMask mask;
  std::string_view summary;                // one line
  std::string_view usage;                  // after "ferry NAME "
  std::string_view details;                // a paragraph for --help
  std::vector<std::string_view> required;  // keys that must not be empty or auto
  bool takes_words = false;                // free words after the options (texts to predict)
  bool takes_dry_run = false;
  bool takes_verbose = false;
  std::vector<std::string_view> examples;
};

const std::vector<Verb>& verb_table();
/** The verb of that name, or null. */
const Verb* find_verb(std::string_view name);

/** `ferry help VERB`: usage, switches, every option the verb acts on by group, examples; wrapped to
 * width. */
std::string help_text(const Verb& verb, int width = 100);

}  // namespace ferry::config
