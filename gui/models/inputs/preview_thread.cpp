#include "gui/models/inputs/preview_thread.h"

#include <algorithm>
#include <filesystem>
#include <utility>

namespace ferry::gui {

namespace {

constexpr int64_t kSamples = 200;

/** Everything that the texts, their tokens and their order depend on. An option that is not known
 * to be without influence is taken to have some. */
std::string key_of(const config::Config& config) {
  constexpr std::string_view kWithout[] = {"dtype",
                                           "deterministic",
                                           "Adapters",
                                           "Optimizer",
                                           "Batch and schedule",
                                           "Regularisation",
                                           "Memory and placement",
                                           "Threads",
                                           "Hosts and restarts",
                                           "Output",
                                           "Samples",
                                           "Generation",
                                           "Evaluation and logging"};
  constexpr std::string_view kWith[] = {"train_batch_size", "per_device_train_batch_size"};
  const auto is_in = [](std::string_view name, auto& names) {
    return std::ranges::find(names, name) != std::end(names);
  };
  std::string key;
  for (const config::Option& option : config::option_table())
    if (is_in(option.key, kWith) || !(is_in(option.group, kWithout) || is_in(option.key, kWithout)))
      key += to_toml(option, config.value(option.key)) + "\n";
  for (const char* name : {"dataset", "eval_dataset"}) {
    std::error_code error;
    const auto changed = std::filesystem::last_write_time(config.text(name), error);
    if (!error) key += std::to_string(changed.time_since_epoch().count()) + "\n";
  }
  return key;
}

PreviewOutcome outcome_of(const config::Config& config, bool counts_all) {
  PreviewOutcome outcome;
  try {
    outcome.preview = service::preview(config, {.n_samples = kSamples, .counts_all = counts_all});
  } catch (const Error& error) {
    outcome.error = error;
  } catch (const std::exception& error) {
    outcome.error = Error(Fault::machine, "preview", error.what());
  }
  return outcome;
}

}  // namespace

PreviewThread::PreviewThread(QObject* parent) : QObject(parent), worker_(this) {}

bool PreviewThread::ask(const config::Config& config) {
  std::string key = key_of(config);
  if (key == key_) return false;
  key_ = std::move(key);
  is_waiting_ = true;
  const auto deliver = [this](const LatestWorker::Turn& turn, PreviewOutcome&& outcome) {
    auto shared = std::make_shared<const PreviewOutcome>(std::move(outcome));
    turn.deliver([this, shared] {
      if (shared->is_complete) is_waiting_ = false;
      emit answered(shared);
    });
  };
  worker_.post([config, deliver](const LatestWorker::Turn& turn) {
    PreviewOutcome first = outcome_of(config, /*counts_all=*/false);
    first.is_complete = !first.preview;
    const bool is_over = first.is_complete;
    const auto samples = first.preview;
    deliver(turn, std::move(first));
    if (is_over || turn.is_overtaken()) return;
    PreviewOutcome all = outcome_of(config, /*counts_all=*/true);
    if (!all.preview) all.preview = samples;
    all.is_complete = !all.preview || all.error || all.preview->numbers.n_truncated == 0;
    PreviewOutcome more = all;
    deliver(turn, std::move(all));
    if (more.is_complete || turn.is_overtaken()) return;
    // At what length would none be cut? Counted anew, as long as the model's texts may be.
    config::Config longest = config;
    longest.set("max_length", "auto", {config::Source::command_line, "the app"});
    if (const PreviewOutcome uncut = outcome_of(longest, /*counts_all=*/true);
        uncut.preview && uncut.preview->max_length > more.preview->max_length) {
      more.uncut = uncut.preview->numbers;
      more.uncut_max_length = uncut.preview->max_length;
    }
    more.is_complete = true;
    deliver(turn, std::move(more));
  });
  return true;
}

}  // namespace ferry::gui
