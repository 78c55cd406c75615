#pragma once
// The third place of a memory plan: fields for the drives that a run may use, and for the most that
// it may take there.

#include <QWidget>
#include <optional>

#include "src/config/config.h"

class QLineEdit;
class QToolButton;

namespace ferry::gui {

class DriveFields : public QWidget {
  Q_OBJECT

 public:
  explicit DriveFields(QWidget* parent = nullptr);

  /** Shows these settings; what somebody types stays. */
  void show_settings(const config::Config& settings);
  /** Shows the most that a run may take where the settings leave it open; nullopt: not known. */
  void show_budget(std::optional<int64_t> budget_bytes);
  /** Takes the focus for a label. */
  QLineEdit* path_field() const { return path_; }

 signals:
  /** The user wants this setting: "nvme_path", "/mnt/nvme". */
  void change_wanted(const QString& key, const QString& value);
  /** The amount that was typed is none; empty: it is one. */
  void trouble_changed(const QString& words);

 private:
  void wish_path(const QString& path);
  void wish_memory();

  config::Config settings_;
  QLineEdit *path_ = nullptr, *memory_ = nullptr;
  QToolButton *browse_ = nullptr, *automatic_ = nullptr;
};

}  // namespace ferry::gui
