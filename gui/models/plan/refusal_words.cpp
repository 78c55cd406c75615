#include "gui/models/plan/refusal_words.h"

#include <QCoreApplication>
#include <QRegularExpression>
#include <QStringList>
#include <optional>

#include "gui/models/said_form.h"
#include "gui/models/service_words.h"
#include "gui/models/settings/option_text.h"
#include "gui/models/text.h"
#include "simd/update/optim.h"

namespace ferry::gui {

namespace {

struct RefusalTexts {
  Q_DECLARE_TR_FUNCTIONS(RefusalTexts)
};

/** The parts of the memory by the planner's names of tags (offload/step/place.h). */
QString tag_words(const QString& tag) {
  if (tag == "weights") return RefusalTexts::tr("weights");
  if (tag == "grads") return RefusalTexts::tr("gradients");
  if (tag == "master") return RefusalTexts::tr("optimizer states");
  for (const simd::OptimSpec& optim : simd::kOptims)
    for (const std::string_view state : optim.states)
      if (!state.empty() && tag == to_text(state)) return RefusalTexts::tr("optimizer states");
  if (tag == "saved") return RefusalTexts::tr("activations");
  if (tag == "slots") return RefusalTexts::tr("slots");
  if (tag == "scratch" || tag == "library") return RefusalTexts::tr("scratch");
  if (tag == "cache") return RefusalTexts::tr("cache of samples");
  if (tag == "staging" || tag == "batch" || tag == "dataset")
    return RefusalTexts::tr("transfers and tokens");
  return tag;
}

/** "activations on the GPU, 3.20 GiB" */
std::optional<QString> largest_words(const QString& said) {
  static const QRegularExpression form(
      QStringLiteral("^([a-z_]+) (in memory|on the GPU|on the host|on the drive), (.+)$"));
  const QRegularExpressionMatch match = form.match(said);
  if (!match.hasMatch()) return std::nullopt;
  const QString tag = tag_words(match.captured(1)), place = match.captured(2),
                bytes = isolated(match.captured(3));
  return (place == "in memory"     ? RefusalTexts::tr("%1 in memory, %2")
          : place == "on the GPU"  ? RefusalTexts::tr("%1 on the GPU, %2")
          : place == "on the host" ? RefusalTexts::tr("%1 on the host, %2")
                                   : RefusalTexts::tr("%1 on the drive, %2"))
      .arg(tag, bytes);
}

/** "6.10 GiB of memory (3.00 GiB are left beside LibTorch), and 90 GiB on the drive" */
std::optional<QString> need_words(const QString& said) {
  static const SaidForm limited("%1, and %2 on the drive (%3 may be taken)"),
      drive("%1, and %2 on the drive"), cpu("%1 of memory (%2 are left beside LibTorch)"),
      gpu("%1 of GPU memory (%2 are left beside the driver's context) and %3 of host memory (%4 "
          "are left beside LibTorch)");
  if (auto parts = limited.parts_of(said)) {
    const auto memory = need_words((*parts)[0]);
    if (!memory) return std::nullopt;
    (*parts)[0] = *memory;
    return filled(RefusalTexts::tr("%1, and %2 on the drive (%3 may be taken)"), *parts);
  }
  if (auto parts = drive.parts_of(said)) {
    const auto memory = need_words((*parts)[0]);
    if (!memory) return std::nullopt;
    (*parts)[0] = *memory;
    return filled(RefusalTexts::tr("%1, and %2 on the drive"), *parts);
  }
  if (const auto parts = gpu.parts_of(said))
    return filled(RefusalTexts::tr("%1 of GPU memory (%2 are left beside the driver's context) and "
                                   "%3 of host memory (%4 are left beside LibTorch)"),
                  *parts);
  if (const auto parts = cpu.parts_of(said))
    return filled(RefusalTexts::tr("%1 of memory (%2 are left beside LibTorch)"), *parts);
  return std::nullopt;
}

std::optional<QString> why_words(const QString& said) {
  static const SaidForm needs("it needs %1; largest: %2"),
      micro_batches(
          "%1 texts of %2 tokens in at most %3 micro-batches are more than any machine "
          "holds"),
      micro_batch("%1 texts of %2 tokens in micro-batches of %3 are more than any machine holds"),
      context(
          "%1 of GPU memory hold no more than the driver's context (%2) and LibTorch's kernels "
          "(%3)");
  if (const auto parts = needs.parts_of(said)) {
    const auto need = need_words((*parts)[0]), largest = largest_words((*parts)[1]);
    if (!need || !largest) return std::nullopt;
    return RefusalTexts::tr("It needs %1; largest: %2").arg(*need, *largest);
  }
  if (const auto parts = micro_batches.parts_of(said))
    return filled(RefusalTexts::tr("%1 texts of %2 tokens in at most %3 micro-batches are more "
                                   "than any machine holds"),
                  *parts);
  if (const auto parts = micro_batch.parts_of(said))
    return filled(RefusalTexts::tr("%1 texts of %2 tokens in micro-batches of %3 are more than any "
                                   "machine holds"),
                  *parts);
  if (const auto parts = context.parts_of(said))
    return filled(RefusalTexts::tr("%1 of GPU memory hold no more than the driver's context (%2) "
                                   "and LibTorch's kernels (%3)"),
                  *parts);
  return std::nullopt;
}

QString joined(QStringList parts, const QString& two) {
  QString text = parts.takeFirst();
  for (const QString& part : parts)
    text = filled(two, {text, part});
  return text;
}

/** "optim = adamw_8bit, slots = 2" with the labels of options. */
QString settings_words(const QString& said) {
  QStringList fields;
  for (const QString& setting : said.split(QStringLiteral(", ")))
    fields << message_of(setting).text;
  return listed(fields);
}

/** "gpu_memory = 877MiB and host_memory = 2048MiB" */
QString amounts_words(const QString& said) {
  QStringList fields;
  for (const QString& amount : said.split(QStringLiteral(" and ")))
    fields << message_of(amount).text;
  return joined(fields, RefusalTexts::tr("%1 and %2", "amounts"));
}

/** One way to make it fit. */
std::optional<QString> way_words(const QString& said) {
  static const SaidForm drive("with nvme_path = DIR (a directory on an SSD, %1 free)"),
      more("with at least %1"), changed_more("with %1 and at least %2"),
      both("without %1 and with %2"), without("without %1"), with("with %1");
  if (const auto parts = drive.parts_of(said))
    return RefusalTexts::tr("with %1 (a directory on an SSD, %2 free)")
        .arg(message_of(QStringLiteral("nvme_path = DIR")).text, isolated((*parts)[0]));
  if (const auto parts = more.parts_of(said))
    return RefusalTexts::tr("with at least %1").arg(amounts_words((*parts)[0]));
  if (const auto parts = changed_more.parts_of(said))
    return RefusalTexts::tr("with %1 and at least %2")
        .arg(settings_words((*parts)[0]), amounts_words((*parts)[1]));
  if (const auto parts = both.parts_of(said))
    return RefusalTexts::tr("without %1 and with %2")
        .arg(settings_words((*parts)[0]), settings_words((*parts)[1]));
  if (const auto parts = without.parts_of(said))
    return RefusalTexts::tr("without %1").arg(settings_words((*parts)[0]));
  if (const auto parts = with.parts_of(said))
    return RefusalTexts::tr("with %1").arg(settings_words((*parts)[0]));
  return std::nullopt;
}

std::optional<QString> ways_words(const QString& said) {
  QStringList ways;
  for (const QString& way : said.split(QStringLiteral(", or "))) {
    const auto words = way_words(way);
    if (!words) return std::nullopt;
    ways << *words;
  }
  return joined(ways, RefusalTexts::tr("%1, or %2", "ways"));
}

std::optional<QString> help_words(const QString& said) {
  static const SaidForm beyond(
      "it would fit %1, more than this machine can give; take a smaller "
      "model"),
      else_beyond("it fits %1; else only %2, more than this machine can give"), fits("it fits %1");
  if (said == "take a smaller model") return RefusalTexts::tr("Take a smaller model");
  if (said == "end what else is on the GPU, or use device = cpu")
    return RefusalTexts::tr("Close what else is on the GPU, or use the processor: %1")
        .arg(message_of(QStringLiteral("device = cpu")).text);
  if (const auto parts = beyond.parts_of(said)) {
    const auto ways = ways_words((*parts)[0]);
    return ways ? std::optional(RefusalTexts::tr("It would fit %1, more than this machine can "
                                                 "give; take a smaller model")
                                    .arg(*ways))
                : std::nullopt;
  }
  if (const auto parts = else_beyond.parts_of(said)) {
    const auto ways = ways_words((*parts)[0]), others = ways_words((*parts)[1]);
    return ways && others ? std::optional(RefusalTexts::tr("It fits %1; else only %2, more than "
                                                           "this machine can give")
                                              .arg(*ways, *others))
                          : std::nullopt;
  }
  if (const auto parts = fits.parts_of(said)) {
    const auto ways = ways_words((*parts)[0]);
    return ways ? std::optional(RefusalTexts::tr("It fits %1").arg(*ways)) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

RefusalWords words_of_refusal(const QString& message) {
  static const QRegularExpression place(QStringLiteral("^\\[[a-z_.]+\\] "));
  const QString between = QStringLiteral(" - "), known = QStringLiteral("the model does not fit: ");
  QString said = message;
  said.remove(place);
  QString why = said.section(between, 0, 0);
  const QString help = said.section(between, 1);
  if (why.startsWith(known)) why = why.mid(known.size());
  return {.why = why_words(why).value_or(message_of(why).text),
          .help = help_words(help).value_or(message_of(help).text)};
}

}  // namespace ferry::gui
