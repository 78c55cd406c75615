#include "gui/models/process/ferry_command.h"

#include <unistd.h>

#include <QDateTime>

#include "gui/models/text.h"
#include "src/config/options/value.h"
#include "src/files/paths.h"
#include "src/runs/logs/train_log.h"

namespace ferry::gui {

namespace fs = std::filesystem;

namespace {

/** The last part of a path or of a model's name, of characters that any file system takes; as
 * `ferry train` names a run of its own. */
std::string short_name(std::string path) {
  while (!path.empty() && path.back() == '/')
    path.pop_back();
  std::string name = fs::path(path).stem().string();
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.') c = '-';
  name.resize(std::min<size_t>(name.size(), 32));
  return name;
}

}  // namespace

std::string flag_value(const config::Option& option, const config::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  std::string shown = config::to_toml(option, value);
  if (shown.size() >= 2 && shown.front() == '"') shown = shown.substr(1, shown.size() - 2);
  return shown;
}

std::optional<fs::path> find_ferry() {
  if (std::string given = environment_variable("FERRY"); !given.empty()) return given;
  const fs::path here = program_directory();
  for (const char* where : {"ferry", "../../src/cli/ferry", "../src/cli/ferry", "../bin/ferry"})
    if (access((here / where).c_str(), X_OK) == 0) return (here / where).lexically_normal();
  return std::nullopt;
}

QStringList arguments_of(const config::Config& config, config::VerbMask verb) {
  QStringList arguments;
  for (const config::Option& option : config::option_table()) {
    if (!(option.verbs & verb) || !config.is_set(option.key)) continue;
    std::string name(option.key);
    for (char& c : name)
      if (c == '_') c = '-';
    arguments << to_text("--" + name + "=" + flag_value(option, config.value(option.key)));
  }
  return arguments;
}

QString shell_text(const QString& program, const QStringList& arguments) {
  std::vector<std::string> words{program.toStdString()};
  for (const QString& argument : arguments)
    words.push_back(argument.toStdString());
  return to_text(runs::shell_line(words));
}

fs::path new_run_directory(const fs::path& runs, const config::Config& config) {
  std::string name = QDateTime::currentDateTime().toString("yyyy-MM-dd_HHmmss").toStdString();
  for (const char* key : {"model_name_or_path", "dataset"})
    if (const std::string part = short_name(config.text(key)); !part.empty()) name += "_" + part;
  std::error_code error;
  fs::path directory = runs / name;
  for (int n = 2; fs::exists(directory, error); ++n)
    directory = runs / (name + "-" + std::to_string(n));
  return directory;
}

}  // namespace ferry::gui
