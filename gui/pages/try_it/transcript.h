#pragma once
// The questions of a chat and the answers of one model, as text that grows.

#include <QTextEdit>
#include <vector>

#include "gui/models/chat/chat.h"

namespace ferry::gui {

class Transcript : public QTextEdit {
  Q_OBJECT

 public:
  explicit Transcript(QWidget* parent = nullptr);

  /** Shows these; nothing moves where they are shown already. */
  void show_exchanges(const std::vector<Exchange>& exchanges);
  /** More of the last answer. */
  void add_text(const QString& text);

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void write_all();
  bool is_at_end() const;
  void go_to_end();

  std::vector<Exchange> shown_;
};

}  // namespace ferry::gui
