#include "gui/models/plan/plan_picture.h"

#include <QLocale>
#include <algorithm>
#include <cmath>

#include "gui/models/plan/refusal_words.h"
#include "gui/models/runs/run_words.h"
#include "gui/models/service_words.h"
#include "gui/models/settings/option_text.h"
#include "gui/models/text.h"
#include "src/base/bytes.h"

#undef slots  // a tag of the plan

namespace ferry::gui {

using service::PlanAnswer;
using service::Verdict;

namespace {

constexpr double kGiBf = 1024.0 * 1024 * 1024;
/** Beyond this nobody set a budget. */
constexpr int64_t kNoLimit_bytes = int64_t{1} << 50;

/** Kinds of segments by what they look like in a bar; those of tags are below kReserved. */
enum Kind {
  kWeights,
  kGrads,
  kStates,
  kActivations,
  kSlots,
  kScratch,
  kTransfers,
  kReserved,
  kCache,
  kCheckpoints,
  kFinal,
  kSmall,
  kCopies = kFinal  ///< of states on a drive: nothing of a disk is in that bar
};

}  // namespace

QString PlanPicture::gib(double n_bytes) {
  const QLocale c = QLocale::c();
  if (std::abs(n_bytes) < kGiBf / 10)
    return isolated(tr("%1 MiB").arg(c.toString(n_bytes / kMiB, 'f', 1)));
  return isolated(tr("%1 GiB").arg(c.toString(n_bytes / kGiBf, 'f', 2)));
}

QString PlanPicture::setting_of(int64_t n_bytes) {
  const int64_t mib = n_bytes / kMiB;
  return mib % 1024 == 0 ? QStringLiteral("%1GiB").arg(mib / 1024)
                         : QStringLiteral("%1MiB").arg(mib);
}

QString PlanPicture::milliseconds(double seconds) {
  const QLocale c = QLocale::c();
  return isolated(seconds < 10 ? tr("%1 ms").arg(c.toString(1e3 * seconds, 'f', 1))
                               : tr("%1 s").arg(c.toString(seconds, 'f', 1)));
}

QString PlanPicture::text_of(const PlanChange& change) {
  QStringList settings;
  for (const auto& [key, value] : change.settings) {
    const config::Option* option = config::find_option(key.toStdString()).option;
    settings << QStringLiteral("%1 %2").arg(option ? label_of(*option) : key, value);
  }
  const QString all = listed(settings);
  // Beside more memory fewer bytes are no gain.
  const bool is_more_memory = std::ranges::any_of(change.settings, [](const auto& setting) {
    return setting.first.endsWith(QStringLiteral("_memory"));
  });
  const bool is_less = change.bytes > kMiB && !is_more_memory;
  return is_less ? tr("%1 (\u2212%2)").arg(all, gib(static_cast<double>(change.bytes))) : all;
}

QString PlanPicture::name_of(const service::PlannedMachine& machine) {
  const QString name = to_text(machine.name), profile = QStringLiteral(", by its profile");
  if (name == QLatin1String("the CPU")) return tr("the CPU");
  return name.endsWith(profile)
             ? tr("%1, by its profile").arg(isolated(name.chopped(profile.size())))
             : name;
}

PlanPicture::PlanPicture(const PlanOutcome& outcome) {
  if (!outcome.answer) {
    add_error(outcome.error.value());
    return;
  }
  const PlanAnswer& answer = *outcome.answer;
  is_complete_ = outcome.is_complete;
  machine = name_of(answer.machine);
  for (const std::string& note : answer.notes)
    notes << message_of(service_words(to_text(note))).text;
  add_verdict(outcome);
  if (answer.plan) add_memory(answer);
  if (answer.time) add_time(answer);
  if (answer.nvme && answer.nvme->need.n_pieces > 0 && !answer.refusal)
    add_drive_figures(*answer.nvme);
  add_notes(answer);
  add_summary();
}

void PlanPicture::add_error(const Error& error) {
  verdict_word = tr("No plan");
  why = message_of(to_text(error.what())).text;
  summary = tr("No plan: %1").arg(why);
}

void PlanPicture::add_memory(const PlanAnswer& answer) {
  const PlanRequest& request = answer.request;
  const auto group_of = [](Tag tag) -> std::pair<int, QString> {
    switch (tag) {
      case Tag::weights:
        return {kWeights, tr("weights")};
      case Tag::grads:
        return {kGrads, tr("gradients")};
      case Tag::master:
      case Tag::state_0:
      case Tag::state_1:
        return {kStates, tr("optimizer states")};
      case Tag::saved:
        return {kActivations, tr("activations")};
      case Tag::slots:
        return {kSlots, tr("slots")};
      case Tag::scratch:
      case Tag::library:
        return {kScratch, tr("scratch")};
      case Tag::cache:
        return {kCache, tr("cache of samples")};
      case Tag::staging:
      case Tag::batch:
      case Tag::dataset:
        return {kTransfers, tr("transfers and tokens")};
    }
    return {kScratch, tr("scratch")};
  };
  const auto add_segment = [](Bar& bar, int kind, const QString& name, int64_t n_bytes) {
    if (n_bytes <= 0) return;
    const auto same = std::ranges::find_if(
        bar.segments, [&](const BarSegment& segment) { return segment.name == name; });
    BarSegment& segment = same == bar.segments.end()
                              ? bar.segments.emplace_back(BarSegment{kind, name, 0, {}})
                              : *same;
    segment.value += static_cast<double>(n_bytes);
    segment.text = gib(segment.value);
  };
  const auto bar_of = [](const QString& name) {
    Bar bar;
    bar.name = name;
    return bar;
  };
  Bar gpu = bar_of(tr("GPU memory"));
  Bar host = bar_of(tr("Host memory"));
  Bar beside = bar_of(tr("Host memory, beside the plan"));
  Bar drive = bar_of(tr("NVMe"));
  Bar disk = bar_of(tr("Disk"));
  for (const PlanRow& row : rows_of(*answer.plan, request.has_gpu)) {
    const auto [kind, name] = group_of(row.tag);
    const bool is_on_gpu = request.has_gpu && row.place == Place::device;
    add_segment(is_on_gpu ? gpu : row.place == Place::nvme ? drive : host, kind, name, row.n_bytes);
  }
  const auto finish = [&](Bar& bar, int64_t limit_bytes, double least_scale = 0) {
    std::ranges::stable_sort(bar.segments, {}, &BarSegment::kind);
    if (limit_bytes > 0 && limit_bytes < kNoLimit_bytes) {
      bar.limit = static_cast<double>(limit_bytes);
      bar.limit_name = tr("limit %1").arg(gib(bar.limit));
      bar.caption = tr("%1 of %2").arg(gib(bar.total()), gib(bar.limit));
      if (bar.is_over())
        bar.caption = tr("%1: %2 too much").arg(bar.caption, gib(bar.total() - bar.limit));
    } else {
      bar.caption = gib(bar.total());
    }
    // Every bar has its true share of its limit, also a disk's that is hardly used.
    bar.scale = 1.04 * std::max({bar.total(), least_scale, bar.limit, 1.0});
  };
  // The amount that the user gave is the limit, even if the driver or the process takes more.
  const auto limit_of = [&](const char* key, int64_t limit_bytes) {
    return std::min(answer.config.maybe_integer(key).value_or(limit_bytes), limit_bytes);
  };
  if (request.has_gpu) {
    add_segment(gpu, kReserved, tr("driver and kernels"), request.gpu_reserved_bytes);
    finish(gpu, limit_of("gpu_memory",
                         gpu_budget_of(request, answer.plan->shape) + request.gpu_reserved_bytes));
    memory.push_back(gpu);
    add_segment(beside, kReserved, tr("process, libraries, texts"), request.host_reserved_bytes);
    finish(host, request.host_budget_bytes);
    finish(beside, 0, host.scale / 1.04);
    const PlannedPinning pinning = pinning_of(*answer.plan, request);
    if (pinning.pinned_bytes > 0)
      host.caption =
          tr("%1, %2 pinned").arg(host.caption, gib(static_cast<double>(pinning.pinned_bytes)));
    memory.push_back(host);
    memory.push_back(beside);
  } else {
    add_segment(host, kReserved, tr("process, libraries, texts"), request.host_reserved_bytes);
    finish(host,
           request.host_budget_bytes < kNoLimit_bytes
               ? limit_of("host_memory", request.host_budget_bytes + request.host_reserved_bytes)
               : 0);
    memory.push_back(host);
  }
  if (answer.nvme) {
    const int64_t states_bytes = answer.plan->layout.n_bytes[static_cast<size_t>(Place::nvme)];
    const int64_t store_bytes = answer.nvme->need.store_bytes;
    if (store_bytes <= kStore_bytes_max)
      add_segment(drive, kCopies, tr("more copies of them"), store_bytes - states_bytes);
    finish(drive, answer.nvme->budget_bytes.value_or(0));
    memory.push_back(drive);
  }
  const DiskNeed& need = answer.disk.need;
  add_segment(disk, kCheckpoints, tr("checkpoints"), need.checkpoint_bytes * need.n_checkpoints);
  add_segment(disk, kFinal, tr("trained model"), need.final_bytes);
  add_segment(disk, kSmall, tr("tokenizers, logs"), need.small_bytes);
  finish(disk, answer.disk.free_bytes.value_or(0));
  memory.push_back(disk);
}

void PlanPicture::add_time(const PlanAnswer& answer) {
  const service::PlanTime& planned = *answer.time;
  const QLocale c = QLocale::c();
  for (const service::ResourceTime& resource : planned.resources) {
    if (!answer.request.has_gpu && resource.is_copy()) continue;
    if (resource.is_drive() && resource.busy_s == 0) continue;
    Bar bar;
    int kind = kStates;
    if (resource.queue == QueueId::compute) {
      bar.name = answer.request.has_gpu ? tr("GPU computes") : tr("CPU computes");
      kind = kActivations;
    } else if (resource.queue == QueueId::h2d) {
      bar.name = tr("Copies to the GPU");
      kind = kSlots;
    } else if (resource.queue == QueueId::d2h) {
      bar.name = tr("Copies from the GPU");
      kind = kTransfers;
    } else if (resource.queue == QueueId::nvme_read) {
      bar.name = tr("Reads from NVMe");
      kind = kSlots;
    } else if (resource.queue == QueueId::nvme_write) {
      bar.name = tr("Writes to NVMe");
      kind = kTransfers;
    } else if (resource.queue == QueueId::collective) {
      bar.name = tr("Exchanges between GPUs");
      kind = kTransfers;
    } else {
      bar.name = tr("CPU updates");
    }
    bar.segments.push_back({kind, bar.name, resource.busy_s, milliseconds(resource.busy_s)});
    const QString share =
        c.toString(planned.step_s > 0 ? 100 * resource.busy_s / planned.step_s : 0, 'f', 0);
    bar.caption = tr("%1, %2 % of the step").arg(milliseconds(resource.busy_s), share);
    if (resource.queue == planned.binding)
      bar.caption = tr("%1 \u2014 limits the step").arg(bar.caption);
    bar.limit = planned.step_s;
    bar.limit_name = tr("a step: %1").arg(milliseconds(planned.step_s));
    bar.scale = 1.04 * planned.step_s;
    time.push_back(std::move(bar));
  }
  const auto rate = [&](double n) {
    return n < 100 ? c.toString(n, 'f', 1) : QLocale().toString(qlonglong(std::llround(n)));
  };
  figures.emplace_back(tr("A step"), milliseconds(planned.step_s));
  figures.emplace_back(
      tr("Speed"), planned.least_samples_per_s
                       ? tr("%1 to %2 samples/s")
                             .arg(rate(*planned.least_samples_per_s), rate(planned.samples_per_s))
                       : tr("%1 samples/s").arg(rate(planned.samples_per_s)));
  figures.emplace_back(tr("Tokens"),
                       answer.texts.mean_tokens
                           ? tr("%1 tokens/s, %2 a text on average")
                                 .arg(rate(planned.tokens_per_s), rate(planned.tokens_per_text))
                           : tr("%1 tokens/s, texts of %2")
                                 .arg(rate(planned.tokens_per_s), rate(planned.tokens_per_text)));
  if (planned.run_s)
    figures.emplace_back(
        tr("The run"),
        tr("%1 for %n step(s)", nullptr, static_cast<int>(*answer.texts.n_steps))
            .arg(*planned.run_s < 1 ? tr("less than a second") : duration_text(*planned.run_s)));
  // A few watt-hours are the least that says anything.
  if (planned.run_s && planned.step_joules_at_most &&
      static_cast<double>(*answer.texts.n_steps) * *planned.step_joules_at_most >= 360)
    figures.emplace_back(tr("Energy"),
                         tr("at most %1 Wh of the GPU")
                             .arg(c.toString(static_cast<double>(*answer.texts.n_steps) *
                                                 *planned.step_joules_at_most / 3600,
                                             'f', 1)));
  // Always a line, so that what is below stays where it is.
  QStringList gains;
  for (const service::MemoryGain& gain : planned.gains)
    gains << tr("of %1: a step takes %2, %3 % less")
                 .arg(service_words(QString::fromUtf8(gain.what)), milliseconds(gain.step_s),
                      c.toString(100 * (1 - gain.step_s / planned.step_s), 'f', 1));
  if (gains.isEmpty())
    gains << (is_complete_ ? tr("saves less than 1 % of the time") : QStringLiteral("\u2026"));
  if (answer.request.has_gpu || !planned.gains.empty())
    figures.emplace_back(tr("One more GiB"), gains.join(QStringLiteral("; ")));
  figures.emplace_back(tr("Figures"), service_words(to_text(answer.request.machine->source)));
}

void PlanPicture::add_drive_figures(const service::PlannedNvme& nvme) {
  const QLocale c = QLocale::c();
  figures.emplace_back(tr("NVMe, a step"),
                       tr("%1 read, %2 written")
                           .arg(gib(static_cast<double>(nvme.need.read_bytes)),
                                gib(static_cast<double>(nvme.need.written_bytes))));
  if (!nvme.life) return;
  constexpr double kYear_s = 365 * 86400.0;
  const QString n_steps = c.toString(nvme.life->n_steps, 'f', 0);
  if (!nvme.life->seconds) {
    figures.emplace_back(tr("The drive lasts"), tr("%1 steps").arg(n_steps));
    return;
  }
  const double seconds = *nvme.life->seconds;
  const QString time = seconds >= kYear_s
                           ? tr("%1 years").arg(c.toString(seconds / kYear_s, 'f', 1))
                           : duration_text(seconds);
  figures.emplace_back(tr("The drive lasts"),
                       tr("%1 of training without a pause, %2 steps").arg(time, n_steps));
  if (nvme.life->is_short())
    notes << tr("This run writes so much to the drive that it is worn after %1 of training without "
                "a pause. More host memory, 8-bit optimizer states or larger steps write less.")
                 .arg(time);
}

void PlanPicture::add_verdict(const PlanOutcome& outcome) {
  const PlanAnswer& answer = *outcome.answer;
  verdict = answer.verdict();
  switch (verdict) {
    case Verdict::fits:
      verdict_word = tr("Fits");
      break;
    case Verdict::tight:
      verdict_word = tr("Tight");
      break;
    case Verdict::does_not_fit:
      verdict_word = tr("Does not fit");
      break;
  }
  if (answer.refusal) {
    RefusalWords words = words_of_refusal(to_text(answer.refusal->what()));
    why = std::move(words.why);
    help = std::move(words.help);
  } else if (!answer.disk.fits()) {
    why = tr("The disk has %1 free and the run writes %2.")
              .arg(gib(static_cast<double>(*answer.disk.free_bytes)),
                   gib(static_cast<double>(answer.disk.need.bytes())));
  } else {
    why = service_words(to_text(answer.plan->why));
  }
  if (!why.isEmpty()) why[0] = why[0].toUpper();
  if (!help.isEmpty()) help[0] = help[0].toUpper();
  if (answer.refusal || answer.time) return;
  const PlanMachine& planned = answer.machine.machine;
  figures.emplace_back(
      tr("A step"),
      planned.profile
          ? tr("not known: the machine's profile lacks %1")
                .arg(isolated(
                    to_text(missing_figures(*planned.profile, planned.has_gpu, answer.model))))
          : tr("not known: the Doctor page measures this machine, or choose a card above"));
}

void PlanPicture::add_notes(const PlanAnswer& answer) {
  const PlanRequest& request = answer.request;
  if (request.is_reserve_assumed && answer.plan)
    notes << (request.has_gpu
                  ? tr("What the driver, the process and its libraries take is assumed, "
                       "not measured on that machine.")
                  : tr("What the process and its libraries take is assumed, not measured "
                       "on this machine."));
  if (!answer.time) return;
  if (answer.time->least_samples_per_s)
    notes << tr("Published figures of this card disagree: the lower speed is that of the machine "
                "%1-low, all else is said of the higher one.")
                 .arg(isolated(to_text(request.machine->name)));
  if (request.generation.n_sequences > 0)
    notes << tr("Samples take time on top: a training measures them before its first step.");
  for (const std::string& assumption : request.machine->assumptions)
    assumptions << to_text(assumption);
}

void PlanPicture::add_summary() {
  QStringList lines;
  lines << tr("%1 on %2.").arg(verdict_word, machine) << why;
  for (const Bar& bar : memory) {
    QStringList parts;
    for (const BarSegment& segment : bar.segments)
      parts << QStringLiteral("%1 %2").arg(segment.name, segment.text);
    lines << tr("%1: %2; %3.").arg(bar.name, bar.caption, listed(parts));
  }
  for (const Bar& bar : time)
    lines << tr("%1: %2.").arg(bar.name, bar.caption);
  for (const auto& [name, value] : figures)
    lines << tr("%1: %2.").arg(name, value);
  summary = lines.join(QLatin1Char('\n'));
}

}  // namespace ferry::gui
