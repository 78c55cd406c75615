#include "gui/models/machine/finding_words.h"

#include <QCoreApplication>
#include <vector>

#include "gui/models/said_form.h"
#include "gui/models/service_words.h"
#include "gui/models/settings/option_text.h"
#include "gui/models/text.h"

namespace ferry::gui {

namespace {

struct FindingTexts {
  Q_DECLARE_TR_FUNCTIONS(FindingTexts)
};

/** A remedy in the words of the command line (src/service/machine,
 * offload/device/gpu_support.cpp), in those of the app, and the command that does it. */
struct Cure {
  const char *said, *words, *command;
};
constexpr const char *kNone = "", *kUnlimited = "ulimit -l unlimited";
constexpr const char* kRaiseMemlock =
    QT_TRANSLATE_NOOP("FindingTexts",
                      "Raise the limit of locked memory (memlock) for your user, or for the "
                      "container.");
constexpr Cure kCures[] = {
    {"run scripts/setup and build again (-Dtrainer=true), or set FERRY_TRAINER to its path",
     QT_TRANSLATE_NOOP("FindingTexts", "Install Ferry again, with the half that trains."),
     "scripts/setup && scripts/build"},
    {"unset FERRY_SIMD",
     QT_TRANSLATE_NOOP("FindingTexts", "Start Ferry without the variable FERRY_SIMD."),
     "unset FERRY_SIMD"},
    {"a CPU with AVX2 updates parameters several times faster; unset FERRY_SIMD if you set it",
     QT_TRANSLATE_NOOP("FindingTexts",
                       "A CPU with AVX2 updates parameters several times faster. If you set the "
                       "variable FERRY_SIMD, start Ferry without it."),
     "unset FERRY_SIMD"},
    {"the folder presets/ belongs beside the source tree",
     QT_TRANSLATE_NOOP("FindingTexts", "Install Ferry again: its folder of presets is missing."),
     kNone},
    {"raise the memory limit of the container or service, or end other programs",
     QT_TRANSLATE_NOOP("FindingTexts",
                       "Give the container or service more memory, or close other programs."),
     kNone},
    {"end other programs, or add memory",
     QT_TRANSLATE_NOOP("FindingTexts", "Close other programs, or add memory."), kNone},
    {"raise the limit of the container or service to use more",
     QT_TRANSLATE_NOOP("FindingTexts", "To use more, raise the limit of the container or service."),
     kNone},
    {"end programs that hold much memory before a run",
     QT_TRANSLATE_NOOP("FindingTexts", "Close programs that hold much memory before a run."),
     kNone},
    {"free some space, or give an --output-dir on another disk",
     QT_TRANSLATE_NOOP("FindingTexts",
                       "Make room, or choose a runs folder on another disk in Settings."),
     kNone},
    {"raise memory= in %UserProfile%\\.wslconfig, then wsl --shutdown",
     QT_TRANSLATE_NOOP("FindingTexts",
                       "In Windows, raise memory= in the file .wslconfig of your user folder. "
                       "Then start WSL again."),
     "wsl --shutdown"},
    {"WSL pins only a part of its memory: raise memory= in %UserProfile%\\.wslconfig, then wsl "
     "--shutdown",
     QT_TRANSLATE_NOOP("FindingTexts",
                       "WSL locks only a part of its memory. In Windows, raise memory= in the "
                       "file .wslconfig of your user folder. Then start WSL again."),
     "wsl --shutdown"},
    {"update the NVIDIA driver in Windows to 580 or newer",
     QT_TRANSLATE_NOOP("FindingTexts", "Update the NVIDIA driver in Windows to 580 or newer."),
     kNone},
    {"install driver 580 or newer: the distribution's package (nvidia-driver), or "
     "nvidia.com/drivers",
     QT_TRANSLATE_NOOP("FindingTexts",
                       "Install the NVIDIA driver 580 or newer: from the packages of your system, "
                       "or from nvidia.com/drivers."),
     "sudo apt install nvidia-driver"},
    {"nvidia-smi should say the same; reinstall the driver",
     QT_TRANSLATE_NOOP("FindingTexts",
                       "Install the NVIDIA driver again. NVIDIA's own program shows the same "
                       "fault."),
     "nvidia-smi"},
    {"the driver was updated since the machine started: restart it",
     QT_TRANSLATE_NOOP("FindingTexts",
                       "The driver was updated since the machine started. Restart the machine."),
     kNone},
    {"load it (modprobe nvidia), or restart; in a container start it with --gpus all",
     QT_TRANSLATE_NOOP("FindingTexts",
                       "Load the driver, or restart the machine. A container must be given the "
                       "GPU when it is started."),
     "sudo modprobe nvidia"},
    {"this user may not open /dev/nvidia*",
     QT_TRANSLATE_NOOP("FindingTexts",
                       "Your user may not use the GPU. An administrator can allow it."),
     "ls -l /dev/nvidia*"},
    {"unset CUDA_VISIBLE_DEVICES",
     QT_TRANSLATE_NOOP("FindingTexts", "Start Ferry without the variable CUDA_VISIBLE_DEVICES."),
     "unset CUDA_VISIBLE_DEVICES"},
    {"this card cannot be used: take a newer one, or device = cpu",
     QT_TRANSLATE_NOOP("FindingTexts", "This card cannot be used. A newer one can."), kNone},
    {"run scripts/setup where the GPU is: it brings the CUDA compiler and builds anew",
     QT_TRANSLATE_NOOP("FindingTexts", "Install Ferry again on this machine, with CUDA."),
     "scripts/setup"},
    {"build again with -Dgpu_archs=%1 (or native on its machine, or all)",
     QT_TRANSLATE_NOOP("FindingTexts", "Build Ferry again for this card."),
     "scripts/build --option gpu_archs=%1"},
    {"measure this one: `ferry doctor`", QT_TRANSLATE_NOOP("FindingTexts", "Measure this machine."),
     kNone},
    {"raise the memlock limit: `ulimit -l unlimited`, or --ulimit memlock=-1 of the container",
     kRaiseMemlock, kUnlimited},
    {"raise it: `ulimit -l unlimited`, memlock in /etc/security/limits.conf, or --ulimit "
     "memlock=-1 of the container",
     kRaiseMemlock, kUnlimited},
    {"end other programs that hold much memory, then `ferry doctor` again",
     QT_TRANSLATE_NOOP("FindingTexts",
                       "Close other programs that hold much memory, and measure again."),
     kNone},
    {"end what else uses the card and measure again; else put the card into the slot that belongs "
     "to the processor, leave out riser cables, and look at the slot's generation in the BIOS",
     QT_TRANSLATE_NOOP("FindingTexts",
                       "Close what else uses the card, and measure again. If that is not it: put "
                       "the card into the slot of the processor, without a riser cable, and look "
                       "at the slot's PCIe generation in the BIOS."),
     kNone},
    {"end what else computes and measure again; unset FERRY_SIMD if you set it",
     QT_TRANSLATE_NOOP("FindingTexts",
                       "Close what else computes, and measure again. If you set the variable "
                       "FERRY_SIMD, start Ferry without it."),
     kNone},
    {"give an --output-dir on a faster disk, or a longer --save-steps",
     QT_TRANSLATE_NOOP("FindingTexts",
                       "Choose a runs folder on a faster disk in Settings, or save less often."),
     kNone},
    {"run on another drive, and look at it: smartctl -a",
     QT_TRANSLATE_NOOP("FindingTexts", "Use another drive, and have this one checked."),
     "sudo smartctl -a"},
    {"let the processor's own graphics drive it, or leave the desktop more with --gpu-memory",
     QT_TRANSLATE_NOOP("FindingTexts",
                       "Connect the display to the processor's own graphics, or leave the desktop "
                       "more of the GPU memory: the Memory step of New run."),
     kNone},
    {"as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
     QT_TRANSLATE_NOOP("FindingTexts",
                       "Switch them on for programs that ask. That needs an administrator."),
     "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"},
    {"what it says above is the reason; then `ferry doctor` again",
     QT_TRANSLATE_NOOP("FindingTexts", "Mend what it says above, and measure again."), kNone},
    {"a run cannot use them either before that is mended",
     QT_TRANSLATE_NOOP("FindingTexts", "A run cannot use them either before that is mended."),
     kNone},
    {"set XDG_DATA_HOME to a directory that can be written",
     QT_TRANSLATE_NOOP("FindingTexts",
                       "Allow your user to write to its folder of data, or name another in the "
                       "variable XDG_DATA_HOME."),
     kNone},
};

}  // namespace

FindingWords words_of_finding(const service::Finding& finding) {
  static const auto forms = [] {
    std::vector<SaidForm> all;
    for (const Cure& cure : kCures)
      all.emplace_back(cure.said);
    return all;
  }();
  FindingWords words = {
      .what = sentence(service_words(to_text(finding.what))), .cure = {}, .command = {}};
  QString said = to_text(finding.cure);
  const QString until = QStringLiteral("; training runs on the CPU until then");
  const bool runs_on_cpu = said.endsWith(until);
  if (runs_on_cpu) said.chop(until.size());
  words.cure = message_of(said).text;
  for (size_t i = 0; i < forms.size(); ++i)
    if (const auto parts = forms[i].parts_of(said)) {
      words.cure = filled(FindingTexts::tr(kCures[i].words), *parts);
      words.command = filled(QString::fromLatin1(kCures[i].command), *parts);
      break;
    }
  if (runs_on_cpu)
    words.cure = FindingTexts::tr("%1 Until then, training runs on the CPU.").arg(words.cure);
  return words;
}

}  // namespace ferry::gui
