#include "gui/models/settings/settings_file.h"

#include <fmt/format.h>

#include <QCoreApplication>
#include <QSaveFile>

#include "gui/models/text.h"
#include "src/config/named_places.h"
#include "src/config/options/value.h"

namespace ferry::gui {

namespace fs = std::filesystem;

namespace {

struct SettingsFileWords {
  Q_DECLARE_TR_FUNCTIONS(SettingsFileWords)
};

}  // namespace

QByteArray settings_toml(const config::Config& settings, const config::PresetHead& head) {
  std::string text, group;
  const auto say = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) text += fmt::format("preset.{} = {}\n", key, config::toml_quoted(value));
  };
  say("title", head.title);
  say("purpose", head.purpose);
  say("card", head.card);
  for (const config::Option& option : config::option_table()) {
    if (!settings.is_set(option.key)) continue;
    if (option.group != group) {
      group = option.group;
      text += fmt::format("{}# {}\n", text.empty() ? "" : "\n", group);
    }
    text +=
        fmt::format("{} = {}\n", option.key, config::to_toml(option, settings.value(option.key)));
  }
  return QByteArray::fromStdString(text);
}

QString write_text_file(const fs::path& file, const QByteArray& text) {
  std::error_code error;
  if (file.has_parent_path()) fs::create_directories(file.parent_path(), error);
  QSaveFile saved(path_text(file));
  if (!saved.open(QIODevice::WriteOnly) || saved.write(text) != text.size() || !saved.commit())
    return SettingsFileWords::tr("“%1” cannot be written: %2")
        .arg(shown_path(file), saved.errorString());
  return {};
}

QString write_settings_file(const fs::path& file,
                            const config::Config& settings,
                            const config::PresetHead& head) {
  return write_text_file(file, settings_toml(settings, head));
}

config::Config read_settings_file(const fs::path& file) {
  config::Config settings;
  read_config_file(settings, file);
  if (config::is_settings_of_run(file)) config::take_back_places(settings);
  return settings;
}

}  // namespace ferry::gui
