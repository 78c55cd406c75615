#pragma once
// A model or a data set of a hub on its way to this machine: its size first, then its files, in a
// thread. A download that was cancelled keeps its files, and the next download goes on from there.

#include <QObject>
#include <QString>
#include <filesystem>

#include "gui/models/latest_worker.h"

namespace ferry::gui {

class HubDownload : public QObject {
  Q_OBJECT

 public:
  enum class Kind { model, dataset };
  enum class State {
    idle,     ///< nothing was asked
    looking,  ///< the hub is asked what it has
    offered,  ///< its size is known
    fetching,
    fetched,
    failed,
  };

  explicit HubDownload(Kind kind, QObject* parent = nullptr);

  /** Chooses a model or data set: "org/name", as HubModel or HubDataset takes it. Ends a look or
   * a download of another name. */
  void set_name(const QString& name);
  const QString& name() const { return name_; }

  /** Asks the hub: some kilobytes. */
  void look();
  /** Brings all of it. */
  void fetch();
  /** Ends looking or fetching. */
  void cancel();

  State state() const { return state_; }
  bool is_busy() const { return state_ == State::looking || state_ == State::fetching; }
  /** Once the size is known. */
  const QString& summary() const { return summary_; }
  qint64 n_bytes() const { return n_bytes_; }
  /** Bytes that are here, of files that were here before, too. */
  qint64 n_done() const { return n_done_; }
  /** Why it failed, in the app's words. */
  const QString& trouble() const { return trouble_; }

 signals:
  void changed();
  /** All of it is here: its directory. */
  void fetched(const std::filesystem::path& directory);

 private:
  struct Looked {
    QString summary;
    qint64 n_bytes = 0;
  };
  void enter(State state);
  void fail(const QString& trouble);

  Kind kind_;
  QString name_, summary_, trouble_;
  State state_ = State::idle;
  qint64 n_bytes_ = 0, n_done_ = 0;
  LatestWorker worker_;
};

}  // namespace ferry::gui
