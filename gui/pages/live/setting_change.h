#pragma once
// A setting of the optimizer, changed while the run goes on.

#include <QString>
#include <QWidget>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "src/config/config.h"
#include "src/service/runs/run_actions.h"

class QComboBox;
class QLabel;
class QLineEdit;
class QPushButton;

namespace ferry::gui {

class ErrorLabel;

class SettingChange : public QWidget {
  Q_OBJECT

 public:
  explicit SettingChange(QWidget* parent = nullptr);

  /** Reads the run's settings; false where it has none yet. */
  bool show_run(const std::filesystem::path& run);
  void show_state(const service::RunFacts& facts, const nlohmann::ordered_json& record);

 signals:
  void wanted(const QString& key, const QString& value);

 private:
  void show_value();
  void check();
  void change();
  std::string key() const;

  config::Config settings_;
  std::map<std::string, std::string, std::less<>> changed_;  ///< values that changes of the run set
  bool is_allowed_ = false;
  QString why_not_;
  QComboBox* keys_ = nullptr;
  QLineEdit* value_ = nullptr;
  QPushButton* button_ = nullptr;
  ErrorLabel* trouble_ = nullptr;
};

}  // namespace ferry::gui
