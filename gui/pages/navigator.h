#pragma once
// The ways from one page to another: pages ask, the window goes.

#include <QObject>
#include <filesystem>
#include <vector>

#include "src/config/config.h"

namespace ferry::gui {

/** In the order of the window's list. */
enum class PageId {
  start,
  runs,
  new_run,
  live,
  samples,
  compare,
  try_it,
  export_model,
  doctor,
  settings
};

class Navigator : public QObject {
  Q_OBJECT

 public:
  using QObject::QObject;

 signals:
  void page_wanted(ferry::gui::PageId page);
  /** The run's Live page; likewise the others. */
  void live_wanted(const std::filesystem::path& run);
  void samples_wanted(const std::filesystem::path& run);
  void compare_wanted(const std::vector<std::filesystem::path>& runs);
  void try_wanted(const std::filesystem::path& run);
  void export_wanted(const std::filesystem::path& run);
  /** A new run that begins with these settings: a preset's, a clone's. */
  void new_run_wanted(const ferry::config::Config& settings);
  /** One line for the user, in the window's status bar. */
  void said(const QString& text);
};

}  // namespace ferry::gui
