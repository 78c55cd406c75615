#pragma once
// Brings a model of the Hugging Face hub to this machine, in a thread. First its size is looked up,
// so that the user can say yes to it; then it is fetched. What was fetched before an end or a fault
// is kept, and the next fetch goes on from there.

#include <QString>
#include <cstdint>
#include <filesystem>
#include <functional>

#include "gui/models/latest_worker.h"

namespace ferry::gui {

/** What there is to fetch, in bytes. */
struct FetchOffer {
  int64_t n_bytes = 0;          ///< of all files
  int64_t n_missing_bytes = 0;  ///< of them still to come
  int64_t free_bytes = 0;       ///< where they go
};

class ModelFetch {
 public:
  /** All are called in the receiver's thread. */
  struct Hears {
    std::function<void(const FetchOffer&)> found;
    std::function<void(int64_t done_bytes, int64_t all_bytes)> progress;
    std::function<void(const std::filesystem::path& directory)> fetched;
    std::function<void(const QString& trouble)> failed;
  };

  /** `receiver` outlives it, or is its owner. */
  ModelFetch(QObject* receiver, Hears hears) : worker_(receiver), hears_(std::move(hears)) {}

  /** `name`: "org/name", "org/name@revision" or a name that is known. Ends in found or failed. */
  void look(const QString& name) { begin(name, /*fetches=*/false); }
  /** Ends in fetched or failed. */
  void fetch(const QString& name) { begin(name, /*fetches=*/true); }
  /** Nothing is called any more until the next look() or fetch(). */
  void cancel() { worker_.forget(); }

 private:
  void begin(const QString& name, bool fetches);

  LatestWorker worker_;
  Hears hears_;
};

}  // namespace ferry::gui
