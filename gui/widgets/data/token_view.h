#pragma once
// A sequence as the model reads it: its text and its tokens, what is trained on highlighted and
// underlined.

#include <QTextEdit>

#include "src/service/preview.h"

namespace ferry::gui {

class TokenView : public QTextEdit {
  Q_OBJECT

 public:
  enum class Shows { text, tokens };
  explicit TokenView(Shows shows, QWidget* parent = nullptr);

  void set_sample(const service::PreviewSample& sample);

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void show_text();
  void show_tokens();
  void show_part(QTextCursor& cursor, int text);
  QTextCharFormat trained() const;
  QTextCharFormat faint() const;

  Shows shows_;
  service::PreviewSample sample_;
};

}  // namespace ferry::gui
