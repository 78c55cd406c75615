// Findings of the doctor in the app's words: none asks for a terminal, and none stays in English
// where the app speaks another language.

#include "gui/models/machine/finding_words.h"

#include <gtest/gtest.h>

#include <QRegularExpression>
#include <algorithm>
#include <set>

#include "tests/gui/dashed_words.h"
#include "tests/service/machine/bad_machines.h"

namespace ferry::gui {
namespace {

using service::kBadMachines;

service::Finding finding_of(const service::BadMachine& machine) {
  service::Facts facts = service::healthy();
  machine.change(facts);
  return service::diagnose(facts).at(0);
}

TEST(FindingWords, ACureIsSaidInWordsWithItsCommandBesideThem) {
  static const QRegularExpression terminal("`|--[a-z]|unset |ulimit|smartctl|scripts/|modprobe");
  for (const auto& machine : kBadMachines) {
    const service::Finding finding = finding_of(machine);
    const FindingWords words = words_of_finding(finding);
    EXPECT_FALSE(words.cure.contains(terminal)) << machine.name << ": " << words.cure.toStdString();
    EXPECT_EQ(words.cure.isEmpty(), finding.cure.empty()) << machine.name;
    EXPECT_FALSE(words.command.contains('%')) << machine.name;
  }
}

TEST(FindingWords, TheCommandIsOfThisMachine) {
  const auto* const machine = std::ranges::find(
      kBadMachines, std::string_view("no code for the card"), &service::BadMachine::name);
  ASSERT_NE(machine, std::end(kBadMachines));
  EXPECT_EQ(words_of_finding(finding_of(*machine)).command, "scripts/build --option gpu_archs=75");
}

TEST(FindingWords, AllIsTranslated) {
  // Words of another program, and the line of a drive.
  const std::set<std::string> foreign = {"wrong trainer", "simd", "not measured", "worn drive",
                                         "unknown wear"};
  DashedWords dashed({"FindingTexts", "service"});
  for (const auto& machine : kBadMachines) {
    const FindingWords words = words_of_finding(finding_of(machine));
    EXPECT_EQ(DashedWords::left_in(words.cure), "") << machine.name;
    const bool is_foreign = foreign.contains(machine.name);
    EXPECT_EQ(is_foreign ? QString() : DashedWords::left_in(words.what), "") << machine.name;
  }
}

}  // namespace
}  // namespace ferry::gui
