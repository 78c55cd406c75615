#pragma once
// Ask a model: any finished run, checkpoint or model directory. The form follows the model's task;
// each question is one `ferry predict` or `ferry generate`, and a chat goes through `ferry serve`.

#include <QElapsedTimer>
#include <vector>

#include "gui/models/latest_worker.h"
#include "gui/models/process/ferry_process.h"
#include "gui/models/results/model_form.h"
#include "gui/models/results/text_answer.h"
#include "gui/pages/page.h"

class QComboBox;
class QDoubleSpinBox;
class QLineEdit;
class QListWidget;
class QPlainTextEdit;
class QProgressBar;
class QPushButton;
class QSpinBox;
class QSplitter;
class QStackedWidget;
class QTabBar;
class QTableWidget;
class QTextEdit;
class QLabel;

namespace ferry::gui {

class ChatPanel;
class Notice;
class RunPicker;

class TryItPage : public Page {
  Q_OBJECT

 public:
  explicit TryItPage(Shared& shared, QWidget* parent = nullptr);
  ~TryItPage() override;
  /** A run, a checkpoint of one, or a model directory. */
  void show_run(const std::filesystem::path& run);
  void set_active(bool active) override;
  QList<QAction*> page_actions() override;

  const ModelForm& form() const { return form_; }
  /** The model is asked in a chat. */
  bool is_chat() const;
  /** Asks what the form holds; the button does the same. */
  void ask();
  /** Ends the question that is asked. */
  void cancel();

 protected:
  void changeEvent(QEvent* event) override;

 private:
  /** A question with its answer, as the history keeps it. */
  struct Try {
    QString model, text, context;
    TextAnswer answer;  ///< of a labelled text
    QString generated;  ///< of a text that goes on
    QString said;       ///< how it ended, for people
    bool is_generation = false;
  };
  QWidget* make_form();
  QWidget* make_generation_settings();
  QWidget* make_result();
  QWidget* make_history();
  void make_actions();
  void read_form();
  void take_form(const ModelForm& form);
  void show_form();
  void show_way();
  QString about_answer() const;
  QStringList predict_words() const;
  QStringList generate_words() const;
  /** Why what stands in the form cannot be asked; empty: it can. */
  QString trouble_of_form() const;
  void update_ask();
  void begin(const QStringList& words, FerryProcess::Output output);
  void take_answer(const nlohmann::ordered_json& line);
  void take_text(const QString& text);
  void end(const QString& trouble);
  void show_try(const Try& shown);
  void show_scores(const TextAnswer& answer);
  void show_marks(const TextAnswer& answer);
  void keep(Try shown);
  void choose_try(int row);
  void use_again();
  void copy_answer();

  RunPicker* picker_;
  QTabBar* ways_;          ///< a chat, or a text that is continued
  QStackedWidget* parts_;  ///< the form with its answer, or the chat
  ChatPanel* chat_;
  Notice *model_message_, *message_;
  QWidget *form_box_, *second_box_, *generation_box_;
  QLabel *first_label_, *second_label_, *told_, *summary_, *nothing_, *no_history_;
  QPlainTextEdit *first_, *second_;
  QSpinBox *length_, *top_k_, *seed_;
  QDoubleSpinBox *temperature_, *top_p_;
  QLineEdit* stop_;
  QPushButton *ask_button_, *cancel_button_, *copy_button_, *again_button_;
  QProgressBar* busy_;
  QStackedWidget* result_;
  QTableWidget* scores_;
  QTextEdit* marked_;
  QListWidget* history_list_;
  QAction *ask_action_, *copy_action_, *again_action_;

  ModelForm form_;
  LatestWorker background_;
  FerryProcess process_;
  QElapsedTimer clock_;
  Try asked_;                 ///< the question on its way
  std::vector<Try> history_;  ///< the newest first
  Try shown_;
};

}  // namespace ferry::gui
