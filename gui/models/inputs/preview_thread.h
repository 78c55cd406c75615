#pragma once
// Reads a run's texts in a thread of its own: the first samples at once, then what takes all of the
// data. The latest question wins.

#include <QObject>
#include <memory>
#include <optional>
#include <string>

#include "gui/models/latest_worker.h"
#include "src/base/error.h"
#include "src/service/preview.h"

namespace ferry::gui {

struct PreviewOutcome {
  std::optional<service::Preview> preview;
  /** Numbers of the same texts before they are cut, up to the model's own limit; nullopt where no
   * text is cut. */
  std::optional<service::PreviewNumbers> uncut;
  int64_t uncut_max_length = 0;  ///< at which those are cut
  std::optional<Error> error;    ///< may stand beside the first samples: what is wrong further down
  bool is_complete = false;
};

class PreviewThread : public QObject {
  Q_OBJECT

 public:
  explicit PreviewThread(QObject* parent = nullptr);

  /** True where it looks: the same settings of texts again are no new question, unless
   * their files may have changed meanwhile. */
  bool ask(const config::Config& config);
  bool is_waiting() const { return is_waiting_; }

 signals:
  void answered(const std::shared_ptr<const ferry::gui::PreviewOutcome>& outcome);

 private:
  std::string key_;  ///< of the last question
  bool is_waiting_ = false;
  LatestWorker worker_;
};

}  // namespace ferry::gui
