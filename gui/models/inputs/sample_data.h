#pragma once
// Data to try a training with, without looking for any: texts that scripts/setup installs beside
// the sample model, else those that come with Ferry's presets.

#include <QString>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ferry::gui {

enum class SampleKind {
  labelled,  ///< texts with labels, for a classifier
  prose,     ///< a long text, for a language model
};

struct SampleData {
  std::filesystem::path path;  ///< as --dataset takes it
  QString what;                ///< "2,225 articles of BBC News in 5 topics"
  /** Further settings that the data want. */
  std::vector<std::pair<std::string, std::string>> settings;
};

/** Reads names of files only; a play in Markdown is first written as plain text to the user's
 * cache. nullopt: none is here. For a thread. */
std::optional<SampleData> find_sample_data(SampleKind kind);

/** Settings by which a training on this .txt file shows how it goes on with the text's first words.
 * Empty of anything else. Reads some KiB. */
std::vector<std::pair<std::string, std::string>> sample_settings(const std::filesystem::path& text);

/** A play in Markdown as plain text: "ROMEO:" and what he says, no headings, no stage directions.
 */
QString play_as_text(const QString& markdown);

}  // namespace ferry::gui
