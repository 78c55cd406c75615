// This machine on its page: real facts, findings with their cures, measuring that can be cancelled.

#include "gui/pages/doctor/doctor_page.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <QtWidgets>
#include <nlohmann/json.hpp>

#include "gui/app/palette.h"
#include "src/config/preset.h"
#include "tests/files/test_files.h"
#include "tests/gui/gui_test.h"

namespace ferry::gui {
namespace {

class DoctorPages : public testing::Test {
 protected:
  DoctorPages() : settings_(home_.file("app.ini")) {
    write_file(trainer_, "#!/bin/sh\nexec sleep 60\n");
    chmod(trainer_.c_str(), 0755);
    page_ = std::make_unique<DoctorPage>(shared_);
    page_->resize(1180, 780);
  }
  void look() {
    page_->set_active(true);
    ASSERT_TRUE(wait_until([&] { return !page_->is_looking(); }));
  }
  template <typename T>
  T* find(const QString& name) {
    T* const found = page_->findChild<T*>(name);
    EXPECT_TRUE(found) << name.toStdString();
    return found;
  }
  void store_profile(const std::string& cpu) const {
    MachineProfile profile;
    profile.name = cpu;
    profile.source = "measured 2026-11-22T10:00:00Z by ferry 0.1.0";
    profile.host.cpu = cpu;
    profile.host.n_threads = 8;
    profile.host.updates = {{.n_threads = 8, .alone = 1.5e9}};
    profile.host.dram_bytes_per_s = 50e9;
    profile.host.memory_bytes_per_s = 42e9;
    profile.disk = {"/home/somebody", 0.1e9, 2e9};
    store_machine_profile(profile);
  }

  TestHome home_;
  std::string trainer_ = (home_ / "ferry-trainer").string();
  WithVariable set_{"FERRY_TRAINER", trainer_.c_str()};
  AppSettings settings_;
  Launcher launcher_;
  Navigator navigator_;
  RunListModel run_list_{settings_, launcher_};
  RunQueue queue_{settings_, launcher_, run_list_};
  Shared shared_{settings_, launcher_, navigator_, run_list_, queue_};
  std::unique_ptr<DoctorPage> page_;
};

TEST_F(DoctorPages, ShowsWhatThisMachineHas) {
  look();
  ASSERT_TRUE(page_->report());
  EXPECT_TRUE(find<QLabel>("doctor_verdict")->text().startsWith("Ferry can"));
  bool has_cpu = false;
  const QString cpu = QString::fromStdString(cpu_name());
  for (const QLabel* label : page_->findChildren<QLabel*>())
    has_cpu = has_cpu || (!cpu.isEmpty() && label->text().contains(cpu));
  EXPECT_TRUE(has_cpu);
  EXPECT_TRUE(find<QLabel>("doctor_profile_words")->text().startsWith("Not measured"));
  const auto n_findings = static_cast<int>(page_->report()->findings.size());
  for (int i = 0; i < n_findings; ++i)
    EXPECT_FALSE(find<QFrame>(QString("doctor_finding_%1").arg(i))->accessibleName().isEmpty());
}

TEST_F(DoctorPages, AFaultIsTheFirstFindingAndItsCureIsCopied) {
  setenv("FERRY_TRAINER", "/no/trainer", 1);
  look();
  EXPECT_FALSE(page_->report()->is_usable);
  EXPECT_TRUE(find<QLabel>("doctor_verdict")->text().contains("cannot train"));
  EXPECT_TRUE(find<QFrame>("doctor_finding_0")->accessibleName().startsWith("Error: "));
  EXPECT_FALSE(find<QPushButton>("doctor_measure")->isEnabled());
  find<QPushButton>("doctor_copy_cure_0")->click();
  EXPECT_EQ(QGuiApplication::clipboard()->text(), "scripts/setup && scripts/build");
  EXPECT_EQ(find<QLabel>("doctor_command_0")->text(), "scripts/setup && scripts/build");
  setenv("FERRY_TRAINER", trainer_.c_str(), 1);
  find<QPushButton>("doctor_look")->click();
  ASSERT_TRUE(wait_until([&] { return !page_->is_looking(); }));
  EXPECT_TRUE(page_->report()->is_usable) << "mended";
}

TEST_F(DoctorPages, AProfileOfAnotherMachineOffersToMeasureThisOne) {
  store_profile("another processor");
  look();
  int at = -1;
  QString runs;
  for (size_t i = 0; i < page_->report()->findings.size(); ++i) {
    if (page_->report()->findings[i].mend == service::Mend::measure) at = static_cast<int>(i);
    if (page_->report()->findings[i].mend == service::Mend::runs_directory)
      runs = QString("doctor_mend_%1").arg(i);
  }
  ASSERT_GE(at, 0);
  PageId wanted = PageId::start;
  QObject::connect(&navigator_, &Navigator::page_wanted, page_.get(),
                   [&](PageId id) { wanted = id; });
  find<QPushButton>(runs)->click();
  EXPECT_EQ(wanted, PageId::settings) << "a slow disk";
  // Measuring can be cancelled, and the profile that was kept stays.
  find<QPushButton>(QString("doctor_mend_%1").arg(at))->click();
  auto* cancel = find<QPushButton>("doctor_cancel");
  EXPECT_TRUE(cancel->isVisibleTo(page_.get()));
  EXPECT_FALSE(find<QPushButton>("doctor_measure")->isVisibleTo(page_.get()));
  EXPECT_TRUE(find<QProgressBar>("doctor_progress")->isVisibleTo(page_.get()));
  cancel->click();
  ASSERT_TRUE(wait_until([&] { return !page_->is_looking(); }));
  ASSERT_TRUE(page_->report()->facts.profile);
  EXPECT_EQ(page_->report()->facts.profile->name, "another processor");
  EXPECT_TRUE(page_->report()->facts.measure_trouble.empty()) << "to cancel is no fault";
  EXPECT_FALSE(cancel->isVisibleTo(page_.get()));
}

TEST_F(DoctorPages, ATrainerThatFailsIsAFinding) {
  ferry::test::TempDir other;
  trainer_ = other.write("trainer", "#!/bin/sh\nexit 5\n").string();
  chmod(trainer_.c_str(), 0755);
  setenv("FERRY_TRAINER", trainer_.c_str(), 1);
  look();
  find<QPushButton>("doctor_measure")->click();
  ASSERT_TRUE(wait_until([&] { return !page_->is_looking(); }));
  bool is_said = false;
  for (const auto& finding : page_->report()->findings)
    is_said = is_said || finding.what.find("exit code 5") != std::string::npos;
  EXPECT_TRUE(is_said);
}

TEST_F(DoctorPages, TheReportIsJsonWithoutTheUsersPaths) {
  store_profile(cpu_name());
  look();
  find<QPushButton>("doctor_copy")->click();
  const QString text = QGuiApplication::clipboard()->text();
  EXPECT_FALSE(text.contains("/home/somebody"));
  const auto json = nlohmann::json::parse(text.toStdString());
  EXPECT_EQ(json["cpu"]["name"], cpu_name());
  EXPECT_TRUE(json["findings"].is_array());
}

TEST_F(DoctorPages, Pictures) {
  const QByteArray directory = qgetenv("FERRY_PICTURES");
  if (directory.isEmpty()) GTEST_SKIP() << "FERRY_PICTURES names no directory";
  for (const auto theme : {Theme::light, Theme::dark}) {
    apply_theme(theme);
    store_profile("another processor");
    look();
    const QString name = QString("%1/doctor_%2%3.png")
                             .arg(QString(directory), theme == Theme::light ? "light" : "dark",
                                  qgetenv("QT_SCALE_FACTOR").isEmpty() ? "" : "_2x");
    page_->setAutoFillBackground(true);
    page_->grab().save(name);
  }
  apply_theme(Theme::light);
}

}  // namespace
}  // namespace ferry::gui
