#include "gui/models/inputs/model_fetch.h"

#include <chrono>

#include "gui/models/text.h"
#undef slots  // of Qt; a name in the plan
#include "src/service/hub/hub_inputs.h"

namespace ferry::gui {

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kBetweenLooks = std::chrono::milliseconds(100);

}  // namespace

void ModelFetch::begin(const QString& name, bool fetches) {
  worker_.post(
      [name = name.toStdString(), fetches, hears = hears_](const LatestWorker::Turn& turn) {
        Clock::time_point told;
        const auto progress = [&](int64_t done, int64_t all) {
          const auto now = Clock::now();
          if (now - told < kBetweenLooks && done < all) return;
          told = now;
          turn.deliver([=, tell = hears.progress] { tell(done, all); });
        };
        const auto trouble = trouble_of([&] {
          try {
            service::HubModel model(name, {.tell = {}, .progress = progress, .is_cancelled = [&] {
                                             return turn.is_overtaken();
                                           }});
            model.look();
            if (!fetches) {
              const hub::FetchSize size = model.size();
              return turn.deliver([=, tell = hears.found] {
                tell({.n_bytes = size.n_bytes,
                      .n_missing_bytes = size.n_missing_bytes,
                      .free_bytes = size.free_bytes});
              });
            }
            turn.deliver([directory = model.fetch(), tell = hears.fetched] { tell(directory); });
          } catch (const hub::Cancelled&) {  // nobody listens any more
          }
        });
        if (trouble) turn.deliver([what = *trouble, tell = hears.failed] { tell(what); });
      });
}

}  // namespace ferry::gui
