#pragma once
// Presets: files of settings that belong together, those that come with Ferry and the user's own.
// Found by name here; src/service/presets.h says what one is for and what it takes.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::config {

/** The keys preset.* of a file of settings: they tell people and the planner what the settings are
 * for, and change none. A user's own file may leave any of them out. */
struct PresetHead {
  std::string title;    ///< "BERT-Large classifies texts"
  std::string purpose;  ///< "Sentiment, topics or intents: ..."
  std::string card;     ///< a machine profile's name (presets/machines/); empty: no card is needed
  std::optional<int64_t> host_memory_bytes;  ///< of the machine; nullopt: as the profile has it
  std::string card_where;                    ///< "FILE:LINE" of the card

  bool is_empty() const {
    return title.empty() && purpose.empty() && card.empty() && !host_memory_bytes;
  }
};

struct Preset {
  std::string name;  // "minilm-classify"
  std::filesystem::path file;
  bool is_users = false;  // from $XDG_CONFIG_HOME/ferry/presets
};

/** $XDG_CONFIG_HOME/ferry/presets, else ~/.config/ferry/presets; empty where there is no home. It
 * may not be there yet. */
std::filesystem::path users_preset_directory();

/** All presets by name; a user's own hides a built-in one of the same name. Reads no file. */
std::vector<Preset> list_presets();

/** A preset by name, or by the path of a .toml file. Throws Error(usage) with the names that have
 * the same words ("bert-large-2080ti": bert-large-classify-2080ti-11g), or the nearest one. */
Preset find_preset(std::string_view name_or_file);

}  // namespace ferry::config
