#include "gui/models/settings/app_settings.h"

#include <QDir>
#include <algorithm>

#include "gui/models/text.h"

namespace ferry::gui {

namespace {

constexpr int kZoom_min = 50, kZoom_max = 200;

}  // namespace

AppSettings::AppSettings(QObject* parent)
    : QObject(parent),
      stored_(QSettings::IniFormat,
              QSettings::UserScope,
              QStringLiteral("ferry"),
              QStringLiteral("app")) {}

AppSettings::AppSettings(const QString& file, QObject* parent)
    : QObject(parent), stored_(file, QSettings::IniFormat) {}

std::filesystem::path AppSettings::runs_directory() const {
  if (const QString chosen = stored_.value("runs_directory").toString(); !chosen.isEmpty())
    return to_path(chosen);
  std::error_code error;
  if (std::filesystem::is_directory("runs", error)) return std::filesystem::absolute("runs");
  return to_path(QDir::homePath()) / "ferry" / "runs";
}

void AppSettings::set_runs_directory(const std::filesystem::path& directory) {
  set_value("runs_directory", path_text(directory));
}

Theme AppSettings::theme() const {
  const QString name = stored_.value("theme").toString();
  return name == "light" ? Theme::light : name == "dark" ? Theme::dark : Theme::system;
}

void AppSettings::set_theme(Theme theme) {
  set_value("theme", theme == Theme::light ? "light" : theme == Theme::dark ? "dark" : "system");
}

int AppSettings::zoom() const {
  return std::clamp(value("zoom", 100).toInt(), kZoom_min, kZoom_max);
}
void AppSettings::set_zoom(int percent) {
  set_value("zoom", std::clamp(percent, kZoom_min, kZoom_max));
}

QString AppSettings::language() const {
  return stored_.value("language").toString();
}
void AppSettings::set_language(const QString& language) {
  set_value("language", language);
}

bool AppSettings::shows_all_options() const {
  return value("new_run/all_options", false).toBool();
}
void AppSettings::set_shows_all_options(bool all) {
  set_value("new_run/all_options", all);
}

bool AppSettings::has_seen_start() const {
  return value("has_seen_start", false).toBool();
}
void AppSettings::set_has_seen_start(bool seen) {
  set_value("has_seen_start", seen);
}

bool AppSettings::is_queue_on() const {
  return value("queue/on", false).toBool();
}
void AppSettings::set_queue_on(bool on) {
  set_value("queue/on", on);
}

bool AppSettings::has_run_hours() const {
  return value("hours/on", false).toBool();
}
QTime AppSettings::run_from() const {
  return value("hours/from", QTime(22, 0)).toTime();
}
QTime AppSettings::run_until() const {
  return value("hours/until", QTime(7, 0)).toTime();
}
void AppSettings::set_run_hours(bool on, QTime from, QTime until) {
  stored_.setValue("hours/from", from);
  stored_.setValue("hours/until", until);
  set_value("hours/on", on);
}

bool AppSettings::yields() const {
  return value("yields", false).toBool();
}
void AppSettings::set_yields(bool yields) {
  set_value("yields", yields);
}

bool AppSettings::notifies() const {
  return value("notifications/on", true).toBool();
}
void AppSettings::set_notifies(bool notifies) {
  set_value("notifications/on", notifies);
}

QVariant AppSettings::value(const QString& key, const QVariant& otherwise) const {
  return stored_.value(key, otherwise);
}

void AppSettings::read_again() {
  stored_.sync();
}

void AppSettings::set_value(const QString& key, const QVariant& value) {
  if (stored_.contains(key) && stored_.value(key) == value) return;
  stored_.setValue(key, value);
  emit changed();
}

}  // namespace ferry::gui
