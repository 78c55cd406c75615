#pragma once
// Steers any number of runs through their sockets without waiting: a page's buttons for several
// selected runs, and what pauses runs by itself.

#include <QObject>
#include <QSocketNotifier>
#include <filesystem>
#include <map>
#include <memory>

#include "src/service/runs/run_client.h"

namespace ferry::gui {

class RunRequests : public QObject {
  Q_OBJECT

 public:
  using QObject::QObject;

  void pause(const std::filesystem::path& run);
  void resume(const std::filesystem::path& run);
  /** Saves a checkpoint, then ends. */
  void stop(const std::filesystem::path& run);
  bool is_waiting(const std::filesystem::path& run) const { return clients_.contains(run); }

 signals:
  void replied(const std::filesystem::path& run, bool is_done, const QString& text);

 private:
  /** Open while the run has a request without a reply. */
  struct Client {
    std::unique_ptr<service::RunClient> asks;
    std::unique_ptr<QSocketNotifier> replies;
  };
  void ask(const std::filesystem::path& run,
           const std::function<void(service::RunClient&)>& question);
  void take(const std::filesystem::path& run);

  std::map<std::filesystem::path, Client> clients_;
};

}  // namespace ferry::gui
