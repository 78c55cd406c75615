#include "gui/models/service_words.h"

#include <QCoreApplication>
#include <QRegularExpression>
#include <QStringList>
#include <optional>
#include <utility>
#include <vector>

#include "gui/models/said_form.h"
#include "gui/models/text.h"

namespace ferry::gui {

namespace {

/** What is known, for Qt's translators; numbers are %1, %2, ... */
[[maybe_unused]] constexpr const char* kKnown[] = {
    // why not now (src/service/runs/run_actions.cpp)
    QT_TRANSLATE_NOOP("service", "the run has no process"),
    QT_TRANSLATE_NOOP("service",
                      "it is not known yet whether its process lives on the other machine"),
    QT_TRANSLATE_NOOP("service", "all steps are done"),
    QT_TRANSLATE_NOOP("service", "it waits for room on the disk"),
    QT_TRANSLATE_NOOP("service", "it writes its end"),
    QT_TRANSLATE_NOOP("service", "it takes requests once it trains"),
    QT_TRANSLATE_NOOP("service", "its process is on another machine"),
    QT_TRANSLATE_NOOP("service", "it has no prompts to go on with"),
    QT_TRANSLATE_NOOP("service", "it is paused: resume it first"),
    QT_TRANSLATE_NOOP("service", "it is given a minute after a stop was asked for"),
    QT_TRANSLATE_NOOP("service", "its process runs: stop it first"),
    QT_TRANSLATE_NOOP("service", "its run.json cannot be read"),
    QT_TRANSLATE_NOOP("service", "it is finished"),
    QT_TRANSLATE_NOOP("service", "it can be given more steps"),
    QT_TRANSLATE_NOOP("service", "its directory cannot be written to"),
    QT_TRANSLATE_NOOP("service", "it is not finished"),
    QT_TRANSLATE_NOOP("service", "it has no checkpoint to go on from"),
    QT_TRANSLATE_NOOP("service", "its directory cannot be removed"),
    QT_TRANSLATE_NOOP("service", "it is paused already"),
    QT_TRANSLATE_NOOP("service", "it is not paused"),
    // ends and answers (src/train)
    QT_TRANSLATE_NOOP("service", "finished"),
    QT_TRANSLATE_NOOP("service", "stopped as asked"),
    QT_TRANSLATE_NOOP("service", "stopped after saving"),
    QT_TRANSLATE_NOOP("service", "stopped without saving"),
    QT_TRANSLATE_NOOP("service", "paused"),
    QT_TRANSLATE_NOOP("service", "paused after step %1"),
    QT_TRANSLATE_NOOP("service", "the GPU's memory is free after step %1"),
    QT_TRANSLATE_NOOP("service",
                      "this driver cannot give the GPU's memory back before the end after step %1"),
    QT_TRANSLATE_NOOP("service", "resumed after step %1"),
    QT_TRANSLATE_NOOP("service", "stops after step %1, unsaved"),
    QT_TRANSLATE_NOOP("service", "the run has ended"),
    QT_TRANSLATE_NOOP("service", "the run is paused: resume it first"),
    QT_TRANSLATE_NOOP("service", "the run is paused already"),
    QT_TRANSLATE_NOOP("service", "the run is not paused"),
    // plans (src/plan/search/search.cpp)
    QT_TRANSLATE_NOOP("service", "%1 micro-batch of %2"),
    QT_TRANSLATE_NOOP("service", "%1 micro-batches of %2"),
    QT_TRANSLATE_NOOP("service",
                      "%1 micro-batches of %2, all through a block before the next block"),
    QT_TRANSLATE_NOOP("service", "weights and states in memory"),
    QT_TRANSLATE_NOOP("service", "weights and states on the GPU"),
    QT_TRANSLATE_NOOP("service", "weights and states on the host, the weights on the GPU, too"),
    QT_TRANSLATE_NOOP("service", "weights and states on the host, streamed block by block"),
    QT_TRANSLATE_NOOP("service",
                      "weights and states on the host, streamed block by block but for %1 whose "
                      "weights stay on the GPU"),
    QT_TRANSLATE_NOOP("service",
                      "weights and states on the host, streamed block by block but for the states "
                      "of %1 that stay on the GPU, which updates them"),
    QT_TRANSLATE_NOOP("service",
                      "weights and states of %1 of %2 blocks on the GPU, of the others on the "
                      "host, streamed block by block"),
    QT_TRANSLATE_NOOP("service",
                      "weights and states of %1 of %2 blocks on the GPU, of the others on the "
                      "host, the weights on the GPU, too"),
    QT_TRANSLATE_NOOP("service",
                      "weights and states of %1 of %2 blocks on the GPU, of the others on the "
                      "host, streamed block by block but for %3 whose weights stay on the GPU"),
    QT_TRANSLATE_NOOP("service",
                      "weights and states of %1 of %2 blocks on the GPU, of the others on the "
                      "host, streamed block by block but for the states of %3 that stay on the "
                      "GPU, which updates them"),
    QT_TRANSLATE_NOOP("service", "states of %1 of %2 blocks on NVMe"),
    QT_TRANSLATE_NOOP("service", "weights of %1 of %2 blocks on NVMe"),
    QT_TRANSLATE_NOOP("service", "gradients of %1 of %2 blocks on NVMe"),
    QT_TRANSLATE_NOOP("service", "saved tensors kept"),
    QT_TRANSLATE_NOOP("service", "saved tensors kept but for the largest"),
    QT_TRANSLATE_NOOP("service", "saved tensors recomputed"),
    QT_TRANSLATE_NOOP("service", "saved tensors on the host"),
    QT_TRANSLATE_NOOP("service",
                      "saved tensors of the last %1 of %2 blocks kept, of the others kept but for "
                      "the largest"),
    QT_TRANSLATE_NOOP("service",
                      "saved tensors of the last %1 of %2 blocks kept but for the largest, of the "
                      "others recomputed"),
    QT_TRANSLATE_NOOP("service", "outputs of blocks on the host"),
    // what one more GiB is of (src/service/plan/more_memory.cpp)
    QT_TRANSLATE_NOOP("service", "GPU memory"),
    QT_TRANSLATE_NOOP("service", "host memory"),
    // where models lie (src/config/models/models.cpp)
    QT_TRANSLATE_NOOP("service", "models/ here"),
    QT_TRANSLATE_NOOP("service", "Hugging Face's cache"),
    QT_TRANSLATE_NOOP("service", "Python packages"),
    // what an evaluation measures (src/tasks)
    QT_TRANSLATE_NOOP("service", "accuracy"),
    QT_TRANSLATE_NOOP("service", "exact match"),
    QT_TRANSLATE_NOOP("service", "f1"),
    QT_TRANSLATE_NOOP("service", "f1 macro"),
    QT_TRANSLATE_NOOP("service", "f1 micro"),
    QT_TRANSLATE_NOOP("service", "loss"),
    QT_TRANSLATE_NOOP("service", "matthews correlation"),
    QT_TRANSLATE_NOOP("service", "mean absolute error"),
    QT_TRANSLATE_NOOP("service", "mean squared error"),
    QT_TRANSLATE_NOOP("service", "pearson"),
    QT_TRANSLATE_NOOP("service", "perplexity"),
    QT_TRANSLATE_NOOP("service", "precision"),
    QT_TRANSLATE_NOOP("service", "recall"),
    QT_TRANSLATE_NOOP("service", "spearman"),
};

/** Lines with names in them, %1, %2, ...: of the data (src/data/read), of ferry doctor and of
 * machines. */
constexpr const char* kWithNames[] = {
    QT_TRANSLATE_NOOP("service", "rows by label: %1"),
    QT_TRANSLATE_NOOP("service", "%1: text is column '%2', label is column '%3'"),
    QT_TRANSLATE_NOOP("service", "%1: text is column '%2'"),
    QT_TRANSLATE_NOOP("service", "%1: not read: %2"),
    QT_TRANSLATE_NOOP("service", "%1: chats of '%2' and '%3'"),
    QT_TRANSLATE_NOOP("service", "%1: chats of '%2'"),
    QT_TRANSLATE_NOOP("service", "%1 label: %2"),
    QT_TRANSLATE_NOOP("service", "%1 labels: %2"),
    QT_TRANSLATE_NOOP("service", "%1 labels, any number of them per text: %2"),
    QT_TRANSLATE_NOOP("service", "labels are numbers to predict (regression)"),
    QT_TRANSLATE_NOOP("service", "no labels"),
    QT_TRANSLATE_NOOP("service", "the longest text has %1 tokens: planned for %2, not for %3"),
    QT_TRANSLATE_NOOP("service", "no NVIDIA GPU: training runs on the CPU"),
    // findings of the doctor (src/service/machine, offload/device/gpu_support.cpp)
    QT_TRANSLATE_NOOP("service", "ferry-trainer, the half that trains, is not beside ferry"),
    QT_TRANSLATE_NOOP("service", "the CPU kernels run without vectors (scalar)"),
    QT_TRANSLATE_NOOP("service", "no presets were found"),
    QT_TRANSLATE_NOOP("service", "only %1 of host memory may be used; small models need about %2"),
    QT_TRANSLATE_NOOP("service", "a cgroup limits memory to %1 of %2"),
    QT_TRANSLATE_NOOP("service", "%1 are swapped out: memory was short"),
    QT_TRANSLATE_NOOP("service", "only %1 are free on the disk of the current directory"),
    QT_TRANSLATE_NOOP("service",
                      "this is WSL: Windows keeps back half of the memory and limits what can be "
                      "pinned"),
    QT_TRANSLATE_NOOP("service", "there is an NVIDIA GPU, but no driver"),
    QT_TRANSLATE_NOOP("service", "the NVIDIA driver does not answer: %1"),
    QT_TRANSLATE_NOOP("service", "the NVIDIA driver sees no GPU: training runs on the CPU"),
    QT_TRANSLATE_NOOP("service", "CUDA_VISIBLE_DEVICES hides every GPU"),
    QT_TRANSLATE_NOOP("service",
                      "%1 has compute capability %2; CUDA 13 and LibTorch need %3 (Turing) or "
                      "newer"),
    QT_TRANSLATE_NOOP("service",
                      "%1 has compute capability %2, and this build holds GPU code for %3"),
    QT_TRANSLATE_NOOP("service", "NVIDIA driver %1 is too old: CUDA %2 needs %3 or newer"),
    QT_TRANSLATE_NOOP("service", "this build has no CUDA"),
    QT_TRANSLATE_NOOP("service", "the figures are of another machine than this one: %1"),
    QT_TRANSLATE_NOOP("service",
                      "the system pins %1 of host memory at most; copies of more go through a ring "
                      "of pinned slots, which takes longer"),
    QT_TRANSLATE_NOOP("service",
                      "locked memory is limited to %1; a run pins up to %2, and pinning failed "
                      "here"),
    QT_TRANSLATE_NOOP("service", "locked memory is limited to %1; a run pins up to %2"),
    QT_TRANSLATE_NOOP("service", "no host memory could be pinned for copies to the GPU"),
    QT_TRANSLATE_NOOP("service", "copies to and from %1 reach %2 GB/s; PCIe %3 x%4 gives %5"),
    QT_TRANSLATE_NOOP("service", "AdamW moves %1 GB/s where memory gives %2"),
    QT_TRANSLATE_NOOP("service", "the disk here writes %1 MB/s: checkpoints take long"),
    QT_TRANSLATE_NOOP("service",
                      "%1 drives the display: what the desktop holds of its memory is not free, "
                      "and may grow during a run"),
    QT_TRANSLATE_NOOP("service",
                      "transparent huge pages are off: AdamW and pinning are slower on small "
                      "pages"),
    QT_TRANSLATE_NOOP("service", "this machine could not be measured: %1"),
    QT_TRANSLATE_NOOP("service", "the drives of nvme_path could not be measured: %1"),
    QT_TRANSLATE_NOOP("service", "the profile could not be stored: %1"),
    // where the figures of a machine come from (presets/machines, src/measure/measure.cpp)
    QT_TRANSLATE_NOOP("service",
                      "published figures and the assumptions below; nothing of it was measured on "
                      "such a machine"),
    QT_TRANSLATE_NOOP("service", "measured %1 by ferry %2"),
    // before the first step (src/inputs/preflight.cpp)
    QT_TRANSLATE_NOOP("service", "%1 of %2 texts have no token to learn, first in text %3"),
    QT_TRANSLATE_NOOP("service", "raise max_length, or look at them with `ferry preview`"),
    QT_TRANSLATE_NOOP("service",
                      "%1 of %2 answers have no end token among what is learnt, first in text %3"),
    QT_TRANSLATE_NOOP("service",
                      "the model would not learn to stop: mend the chat template's generation "
                      "marks, or name the end token in tokenizer_config.json"),
    QT_TRANSLATE_NOOP("service", "%1 of %2 texts are cut to max_length, first in text %3"),
    QT_TRANSLATE_NOOP("service", "their ends are not learnt: raise max_length"),
    QT_TRANSLATE_NOOP("service", "%1 of %2 answers are empty, first in text %3"),
    QT_TRANSLATE_NOOP("service", "leave these rows out"),
    QT_TRANSLATE_NOOP("service", "%1 of %2 texts are empty, first in text %3"),
    QT_TRANSLATE_NOOP("service", "leave these rows out, or name the right column"),
    QT_TRANSLATE_NOOP(
        "service",
        "the data or the template writes it, and the tokenizer, too: take it out of one"),
    QT_TRANSLATE_NOOP("service",
                      "the tokenizer puts it before every text, so the model knows no others: add "
                      "it to the chat template"),
    QT_TRANSLATE_NOOP("service",
                      "there is nothing to learn: are the data sorted, or is it the wrong column?"),
    QT_TRANSLATE_NOOP("service",
                      "the model cannot learn them: shuffle the data, or add such texts"),
    QT_TRANSLATE_NOOP("service", "%1 of %2 texts are there before, first in text %3"),
    QT_TRANSLATE_NOOP(
        "service", "they count twice, and hide what the model has learnt by heart: leave them out"),
    QT_TRANSLATE_NOOP("service",
                      "%1 of %2 texts are there before with another label, first in text %3"),
    QT_TRANSLATE_NOOP("service", "no model can learn both"),
    QT_TRANSLATE_NOOP("service",
                      "%1 of %2 texts to evaluate are trained on, too, first in text %3"),
    QT_TRANSLATE_NOOP("service", "their scores say nothing of new texts: leave them out of one"),
    QT_TRANSLATE_NOOP("service", "learning_rate is %1, and such trainings mostly have about %2"),
    QT_TRANSLATE_NOOP("service", "the loss would most likely run away"),
    QT_TRANSLATE_NOOP("service", "it would hardly learn"),
    QT_TRANSLATE_NOOP("service", "packing gains nothing: no two of %1 texts fit into %2 tokens"),
    QT_TRANSLATE_NOOP("service", "raise max_length, or leave packing out"),
    QT_TRANSLATE_NOOP("service", "choose another with --chat-template, or leave these turns out"),
    QT_TRANSLATE_NOOP(
        "service", "%1 of %2 answers have thinking that the template leaves out, first in text %3"),
    QT_TRANSLATE_NOOP("service",
                      "choose another with --chat-template, or write it into the answer"),
    QT_TRANSLATE_NOOP("service", "train_on_turns = all trains what tools return, too"),
    QT_TRANSLATE_NOOP("service", "the model would learn to make up results: --train-on-turns each"),
    QT_TRANSLATE_NOOP(
        "service",
        "chat_template.jinja and tokenizer_config.json have two different chat templates"),
    QT_TRANSLATE_NOOP("service", "older programs read the second: make both the same"),
    QT_TRANSLATE_NOOP("service", "leave chat_template out to go on with its own"),
    QT_TRANSLATE_NOOP("service", "%1 of %2 texts begin with %3 twice, first in text %4"),
    QT_TRANSLATE_NOOP("service", "%1 of %2 texts do not begin with %3, first in text %4"),
    QT_TRANSLATE_NOOP("service",
                      "answers end with %1, at which generation_config.json does not stop"),
    QT_TRANSLATE_NOOP("service",
                      "other programs would go on behind the answer: add %1 to its eos_token_id"),
    QT_TRANSLATE_NOOP("service", "all texts that are trained on have the label %1"),
    QT_TRANSLATE_NOOP("service", "the evaluation has labels that no trained text has: %1"),
    QT_TRANSLATE_NOOP("service",
                      "%1 of %2 turns of role %3 are left out by the template, first in text %4"),
    QT_TRANSLATE_NOOP("service",
                      "chats are written by the template %1, and the model was made for another "
                      "template, its own"),
    // answers of a run (src/train/control/control.cpp)
    QT_TRANSLATE_NOOP("service",
                      "%1 of the GPU would have to go to host memory, and %2 are free; `ferry runs "
                      "stop` saves and leaves"),
    QT_TRANSLATE_NOOP("service", "the run continues: %1"),
    QT_TRANSLATE_NOOP("service", "it stays paused: %1"),
    QT_TRANSLATE_NOOP("service",
                      "%1 stays as it is while the run goes on; learning_rate, weight_decay, "
                      "max_grad_norm and eval_steps can change"),
    QT_TRANSLATE_NOOP("service", "%1 = %2 from step %3 on"),
    QT_TRANSLATE_NOOP("service", "'%1' is nothing that a run does"),
    // what an option takes (src/config/options/value.cpp); longer forms come first
    QT_TRANSLATE_NOOP("service", "an integer of at least %1 and below %2"),
    QT_TRANSLATE_NOOP("service", "an integer of at least %1 and at most %2"),
    QT_TRANSLATE_NOOP("service", "an integer of at least %1"),
    QT_TRANSLATE_NOOP("service", "an integer of at most %1"),
    QT_TRANSLATE_NOOP("service", "an integer"),
    QT_TRANSLATE_NOOP("service", "a number of at least %1 and below %2"),
    QT_TRANSLATE_NOOP("service", "a number of at least %1 and at most %2"),
    QT_TRANSLATE_NOOP("service", "a number of at least %1"),
    QT_TRANSLATE_NOOP("service", "a number of at most %1"),
    QT_TRANSLATE_NOOP("service", "a number"),
    QT_TRANSLATE_NOOP("service", "a size such as 11GiB of at least %1 and below %2"),
    QT_TRANSLATE_NOOP("service", "a size such as 11GiB of at least %1 and at most %2"),
    QT_TRANSLATE_NOOP("service", "a size such as 11GiB of at least %1"),
    QT_TRANSLATE_NOOP("service", "a size such as 11GiB of at most %1"),
    QT_TRANSLATE_NOOP("service", "a size such as 11GiB"),
    QT_TRANSLATE_NOOP("service", "one of %1"),
    QT_TRANSLATE_NOOP("service", "a time such as 90s, 30min or 8h, at most %1"),
    QT_TRANSLATE_NOOP("service",
                      "a whole number of steps, or a share of all steps from 0 to below 1"),
    QT_TRANSLATE_NOOP(
        "service",
        "a whole number of steps, a share of all steps from 0 to below 1, or a time such as 30min"),
    QT_TRANSLATE_NOOP("service", "text"),
    QT_TRANSLATE_NOOP("service", "a path"),
    QT_TRANSLATE_NOOP("service", "true or false"),
    QT_TRANSLATE_NOOP("service", "items separated by commas"),
    QT_TRANSLATE_NOOP("service", "groups such as 'classifier.*:lr=1e-4,decay=0', separated by ;"),
};

/** The translation of a line that has one of these forms; nullopt for any other line. */
std::optional<QString> translated_form(const QString& said) {
  static const auto forms = [] {
    std::vector<std::pair<const char*, SaidForm>> all;
    for (const char* form : kWithNames)
      all.emplace_back(form, SaidForm(form));
    return all;
  }();
  for (const auto& [form, pattern] : forms)
    if (const auto parts = pattern.parts_of(said))
      return filled(QCoreApplication::translate("service", form), *parts);
  return std::nullopt;
}

QString translated_part(const QString& part) {
  static const QRegularExpression number(QStringLiteral("\\b\\d+\\b"));
  QString pattern;
  QStringList numbers;
  qsizetype at = 0;
  for (auto it = number.globalMatch(part); it.hasNext();) {
    const QRegularExpressionMatch match = it.next();
    numbers << match.captured();
    pattern += part.mid(at, match.capturedStart() - at) + '%' + QString::number(numbers.size());
    at = match.capturedEnd();
  }
  pattern += part.mid(at);
  QString said = QCoreApplication::translate("service", pattern.toUtf8());
  for (qsizetype i = 0; i < numbers.size(); ++i)
    said.replace('%' + QString::number(i + 1), numbers[i]);
  return said;
}

}  // namespace

QString service_words(const QString& said) {
  if (const auto form = translated_form(said)) return *form;
  const QString between = QStringLiteral("; ");
  QStringList parts = said.split(between);
  for (QString& part : parts)
    part = translated_part(part);
  return parts.join(QCoreApplication::translate("service", "; "));
}

QString metric_words(std::string_view key) {
  constexpr std::string_view kPrefix = "eval_";
  if (key.starts_with(kPrefix)) key.remove_prefix(kPrefix.size());
  return service_words(to_text(key).replace('_', ' '));
}

}  // namespace ferry::gui
