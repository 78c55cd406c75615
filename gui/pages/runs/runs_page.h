#pragma once
// The runs that are known, what can be done with them, and the queue.

#include <QDateTime>
#include <array>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

#include "gui/models/runs/run_requests.h"
#include "gui/pages/page.h"

class QComboBox;
class QLabel;
class QLineEdit;
class QStackedWidget;
class QTableView;
class QTextBrowser;
class QToolBar;

namespace ferry::gui {

class ColumnFit;
class InlineBar;
class QueueSection;
class RunFilter;

class RunsPage : public Page {
  Q_OBJECT

 public:
  explicit RunsPage(Shared& shared, QWidget* parent = nullptr);
  ~RunsPage() override;

  void set_active(bool active) override;
  QList<QAction*> page_actions() override;

 private:
  /** The runs that are selected, top to bottom, as rows of the list of all. */
  std::vector<int> selected() const;
  /** The only one; -1: none or several. */
  int only() const;
  std::vector<std::filesystem::path> paths_of(const std::vector<int>& rows) const;

  void make_actions();
  QAction* add_action(const char* name,
                      const QString& text,
                      std::function<void()> act,
                      const QKeySequence& keys = {});
  QWidget* make_head();
  QWidget* make_table();
  QWidget* make_message(const char* name,
                        const QString& title,
                        const QString& text,
                        const QList<QAction*>& actions);

  /** The settings that keep columns that somebody moved or dragged. */
  static constexpr const char *kOwnColumns = "runs/own_columns", *kOwnWidths = "runs/own_widths";

  void show_state();
  void allow_actions();
  void show_details();
  void keep_columns();
  void show_menu(const QPoint& place);
  void copy_rows();

  // The work of the actions.
  void open_live();
  void pause();
  void resume();
  void stop();
  void ask_extend();
  void clone();
  void ask_delete();
  void move_to_trash(const std::vector<std::filesystem::path>& runs);
  /** Without those whose new process has not written its run.json: they look like ended ones. */
  std::vector<std::filesystem::path> not_starting(std::vector<std::filesystem::path> runs);
  void delete_for_good(const std::vector<std::filesystem::path>& runs);
  void write_report();
  /** Does it in a thread; `then` gets what it gives. One at a time. */
  void do_beside(std::function<QString()> work, std::function<void(const QString&)> then);

  RunRequests requests_;
  RunFilter* filter_;
  QTableView* table_ = nullptr;
  ColumnFit* columns_ = nullptr;
  QLineEdit* search_ = nullptr;
  QComboBox* groups_ = nullptr;
  QLabel *count_ = nullptr, *gate_ = nullptr;
  QStackedWidget* stack_ = nullptr;
  QToolBar* bar_ = nullptr;
  InlineBar* inline_ = nullptr;
  QTextBrowser* details_ = nullptr;
  QString details_text_;
  QAction *new_ = nullptr, *open_ = nullptr, *pause_ = nullptr, *resume_ = nullptr,
          *extend_ = nullptr, *stop_ = nullptr, *clone_ = nullptr, *compare_ = nullptr,
          *samples_ = nullptr, *try_ = nullptr, *export_ = nullptr, *folder_ = nullptr,
          *delete_ = nullptr, *report_ = nullptr, *find_ = nullptr, *start_page_ = nullptr,
          *show_all_ = nullptr;
  QList<QAction*> lines_;  // of the menu
  bool is_busy_ = false;
  std::jthread work_;  // last: it ends before what it tells
};

}  // namespace ferry::gui
