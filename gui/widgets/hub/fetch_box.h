#pragma once
// A model's name on the Hugging Face hub, and its download: its size first, then a bar that can be
// stopped. For the first page and for a new run's model.

#include <QWidget>

#include "gui/models/inputs/model_fetch.h"

class QLineEdit;
class QProgressBar;
class QPushButton;

namespace ferry::gui {

class ErrorLabel;
class TextLabel;

class FetchBox : public QWidget {
  Q_OBJECT

 public:
  /** `asks_name`: the user may write another name. */
  explicit FetchBox(bool asks_name, QWidget* parent = nullptr);

  /** Keeps what is under way where the name is the same. */
  void set_name(const QString& name);

 signals:
  /** All of it is in this directory. */
  void fetched(const QString& directory);

 private:
  enum class State {
    idle,     ///< the button looks up the size
    looking,  ///< the size is being looked up
    offered,  ///< the button fetches
    fetching,
  };
  void enter(State state);
  void go_on();
  void show_offer(const FetchOffer& offer);
  void show_progress(int64_t done_bytes, int64_t all_bytes);

  QLineEdit* name_;
  QPushButton *button_, *cancel_;
  TextLabel* words_;
  QProgressBar* bar_;
  ErrorLabel* trouble_;
  State state_ = State::idle;
  ModelFetch fetch_;
};

}  // namespace ferry::gui
