#include "gui/models/inputs/hub_download.h"

#include <chrono>
#include <optional>
#include <utility>

#include "gui/models/settings/option_text.h"
#include "gui/models/text.h"
#undef slots  // of Qt; a name in the plan
#include "src/service/hub/hub_inputs.h"

namespace ferry::gui {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kBetweenNews{100};

/** Calls `use` with what the name is of; both have the same steps. */
template <typename Use>
auto with_source(HubDownload::Kind kind, const QString& name, const hub::Talk& talk, Use use) {
  if (kind == HubDownload::Kind::dataset) return use(service::HubDataset(name.toStdString(), talk));
  return use(service::HubModel(name.toStdString(), talk));
}

}  // namespace

HubDownload::HubDownload(Kind kind, QObject* parent)
    : QObject(parent), kind_(kind), worker_(this) {}

void HubDownload::set_name(const QString& name) {
  if (name == name_) return;
  worker_.forget();
  name_ = name;
  summary_.clear();
  trouble_.clear();
  n_bytes_ = n_done_ = 0;
  enter(State::idle);
}

void HubDownload::look() {
  if (is_busy() || name_.isEmpty()) return;
  worker_.ask(
      [kind = kind_, name = name_](const LatestWorker::Turn& turn) {
        const hub::Talk talk{
            .tell = {}, .progress = {}, .is_cancelled = [turn] { return turn.is_overtaken(); }};
        return with_source(kind, name, talk, [](auto&& source) {
          source.look();
          return Looked{.summary = to_text(source.summary()), .n_bytes = source.size().n_bytes};
        });
      },
      [this](const Looked& looked, const QString& trouble) {
        if (!trouble.isEmpty()) return fail(trouble);
        summary_ = looked.summary;
        n_bytes_ = looked.n_bytes;
        enter(State::offered);
      });
  enter(State::looking);
}

void HubDownload::fetch() {
  if (is_busy() || name_.isEmpty()) return;
  n_done_ = 0;
  worker_.ask(
      [this, kind = kind_, name = name_](const LatestWorker::Turn& turn) {
        auto last = std::make_shared<Clock::time_point>();
        const hub::Talk talk{.tell = {},
                             .progress =
                                 [this, turn, last](int64_t done, int64_t total) {
                                   const auto now = Clock::now();
                                   if (done < total && now - *last < kBetweenNews) return;
                                   *last = now;
                                   // Only where this object is still there and waits for it.
                                   turn.deliver([this, done, total] {
                                     n_done_ = done;
                                     n_bytes_ = total;
                                     emit changed();
                                   });
                                 },
                             .is_cancelled = [turn] { return turn.is_overtaken(); }};
        return with_source(kind, name, talk, [](auto&& source) {
          source.look();
          return source.fetch();
        });
      },
      [this](const std::filesystem::path& directory, const QString& trouble) {
        if (!trouble.isEmpty()) return fail(trouble);
        n_done_ = n_bytes_;
        enter(State::fetched);
        emit fetched(directory);
      });
  enter(State::fetching);
}

void HubDownload::cancel() {
  if (!is_busy()) return;
  worker_.forget();
  enter(summary_.isEmpty() ? State::idle : State::offered);
}

void HubDownload::enter(State state) {
  state_ = state;
  if (state != State::failed) trouble_.clear();
  emit changed();
}

void HubDownload::fail(const QString& trouble) {
  trouble_ = message_of(trouble).text;
  enter(State::failed);
}

}  // namespace ferry::gui
