// --help of one verb, made from the option table.

#include <fmt/format.h>

#include <algorithm>

#include "src/config/command_line/verb.h"

namespace ferry::config {

namespace {

/** `text` broken at spaces so that no line passes width; lines after the first start at column
 * indent. */
std::string wrapped(std::string_view text, size_t indent, size_t width) {
  std::string result;
  size_t column = indent;
  while (!text.empty()) {
    size_t end = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (column > indent && column + 1 + word.size() > width) {
      result += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
  }
  return result;
}

std::string flag_of(std::string_view name) {
  std::string flag(name);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return "--" + flag;
}

std::string placeholder(const Option& option) {
  switch (option.type) {
    case Type::text:
      return "TEXT";
    case Type::path:
      return "PATH";
    case Type::choice:
      return fmt::format("{}", fmt::join(option.choices, "|"));
    case Type::boolean:
      return "true|false";
    case Type::integer:
      return "N";
    case Type::number:
      return "NUMBER";
    case Type::bytes:
      return "SIZE";
    case Type::steps:
      return "N|SHARE";
    case Type::interval:
      return "N|SHARE|TIME";
    case Type::duration:
      return "TIME";
    case Type::list:
      return "A,B,...";
    case Type::groups:
      return "PATTERN:lr=N,...";
  }
  return "";
}

std::string entry(std::string_view head, std::string_view help, size_t width) {
  constexpr size_t kIndent = 6;
  return fmt::format("  {}\n      {}\n", head, wrapped(help, kIndent, width));
}

/** `says_effect`: for verbs that resume a run. */
std::string option_entry(const Option& option, size_t width, bool says_effect) {
  std::string head = flag_of(option.key), others;
  for (const Alias& alias : option.aliases) {
    if (alias.is_silent && alias.name.size() < option.key.size()) {  // the everyday form leads
      head = flag_of(alias.name) + ", " + head;
      continue;
    }
    others += others.empty() ? " Also " : ", ";
    others += flag_of(alias.name);
    if (!alias.means_value.empty()) others += fmt::format(" (= {})", alias.means_value);
  }
  if (!others.empty()) others += '.';
  std::string text(option.help);
  if (!option.value.empty()) {
    const bool is_special = option.special.value == option.value;
    const std::string_view about = is_special               ? option.special.word
                                   : option.value == "auto" ? std::string_view()
                                                            : option.unit;
    text += fmt::format(" Default {}{}.", option.value,
                        about.empty() ? "" : fmt::format(" ({})", about));
  }
  const std::string resumed = says_effect && option.effect != Effect::free
                                  ? fmt::format(" [{}]", name_of(option.effect))
                                  : "";
  return entry(fmt::format("{} {}", head, placeholder(option)), text + others + resumed, width);
}

}  // namespace

std::string help_text(const Verb& verb, int width) {
  const size_t columns = static_cast<size_t>(std::clamp(width, 60, 120));
  std::string text = fmt::format(
      "ferry {} - {}\n\nusage: ferry {} {}\n\n{}\n", verb.name, verb.summary, verb.name,
      wrapped(verb.usage, 13 + verb.name.size(), columns), wrapped(verb.details, 0, columns));
  if (!verb.examples.empty()) text += "\nExamples\n";
  for (std::string_view example : verb.examples)
    text += fmt::format("  {}\n", example);

  text += "\nGeneral\n";
  text += entry("--preset NAME", "Settings that belong together, see ferry presets ls.", columns);
  text += entry("--config FILE",
                "Settings from a TOML file of key = value lines, or a YAML recipe; stronger than "
                "the preset.",
                columns);
  text += entry("--json",
                verb.name == "train"
                    ? "A line of JSON for each event (start, plan, progress, evaluation, end) on "
                      "standard output; talk goes to standard error."
                    : "Results as JSON on standard output, errors too; talk goes to standard "
                      "error.",
                columns);
  if (verb.takes_dry_run)
    text += entry("--dry-run",
                  "Print every setting and where it comes from (with --json as JSON), check model, "
                  "data and output directory, and stop.",
                  columns);
  if (verb.takes_verbose)
    text += entry("--verbose", "Also what the figures of the machine assume.", columns);
  text += entry("-h, --help", "This text.", columns);

  std::string_view group;
  for (const Option& option : option_table()) {
    if ((option.verbs & verb.mask) == 0) continue;
    if (option.group != group) {
      group = option.group;
      text += fmt::format("\n{}\n", group);
    }
    text += option_entry(option, columns, (verb.mask & kTrain) != 0);
  }
  if ((verb.mask & kTrain) != 0)
    text += '\n' +
            wrapped(
                "Where a run is resumed: options marked [fixes the bits] stay as they were, "
                "or --new-identity is given; those marked [changes training] may change; "
                "all others are free.",
                0, columns) +
            '\n';
  text += '\n' +
          wrapped(
              "Each option may also be written --learning_rate 2e-5, --learning-rate=2e-5 or "
              "learning_rate=2e-5, "
              "set in a file, or as FERRY_LEARNING_RATE. The order, later wins: built-in, preset, "
              "file, FERRY_*, "
              "command line. Flags of transformers' Trainer that change nothing here (--do_train, "
              "--overwrite_output_dir, --dataloader_num_workers N, ...) are accepted, and said.",
              0, columns) +
          '\n';
  return text;
}

}  // namespace ferry::config
