#include "gui/models/results/sample_grid.h"

#include <QAbstractItemModelTester>

#include "tests/gui/gui_test.h"

namespace ferry::gui {
namespace {

/** Looks once, and waits for it. */
bool look(SampleGrid& grid) {
  bool is_over = false, has_changed = false;
  const auto connection = QObject::connect(&grid, &SampleGrid::looked, [&](bool changed) {
    is_over = true;
    has_changed = changed;
  });
  grid.look();
  EXPECT_TRUE(wait_until([&] { return is_over; }));
  QObject::disconnect(connection);
  return has_changed;
}

TEST(SampleGrid, GrowsWhileTheRunGoesOn) {
  TestHome home;
  const auto run = home / "run";
  SampleGrid grid;
  QAbstractItemModelTester tester(&grid, QAbstractItemModelTester::FailureReportingMode::Fatal);
  grid.set_run(run);
  EXPECT_FALSE(look(grid));
  EXPECT_EQ(grid.n_steps(), 0);
  EXPECT_TRUE(grid.trouble().isEmpty()) << grid.trouble().toStdString();

  write_file(run / "samples/step-000100.jsonl",
             sample_line(100, "It was", " a house") + sample_line(100, "She", " went"));
  EXPECT_TRUE(look(grid));
  EXPECT_EQ(grid.n_prompts(), 2);
  EXPECT_EQ(grid.n_steps(), 1);
  EXPECT_EQ(grid.data(grid.index(0, 0)).toString(), "a house");
  EXPECT_EQ(grid.headerData(0, Qt::Horizontal, Qt::DisplayRole).toString(), "Step 100");

  write_file(run / "samples/step-000000.jsonl", sample_line(0, "It was", " xx"));
  write_file(run / "samples/step-1000000.jsonl",
             sample_line(1000000, "Another", " prompt") + sample_line(1000000, "It was", " home"));
  write_file(run / "samples/.step-000200.jsonl.tmp-1", "half");
  write_file(run / "samples/notes.txt", "mine");
  EXPECT_TRUE(look(grid));
  ASSERT_EQ(grid.n_steps(), 3);
  EXPECT_EQ(grid.step(0), 0);
  EXPECT_EQ(grid.step(2), 1000000);
  EXPECT_EQ(grid.n_prompts(), 3);
  EXPECT_EQ(grid.sample(0, 2)->text, " home");
  EXPECT_EQ(grid.sample(1, 2), nullptr);
  EXPECT_EQ(grid.data(grid.index(1, 0)).toString(), "none");
  EXPECT_TRUE(grid.sample(0, 2)->settings.contains("Temperature 0.8"));
  EXPECT_FALSE(look(grid));  // nothing new
}

TEST(SampleGrid, ARunThatGoesBackLosesLaterSteps) {
  TestHome home;
  const auto run = home / "run";
  for (int step : {0, 10, 20})
    write_file(run / ("samples/step-0000" + std::to_string(step) + ".jsonl"),
               sample_line(step, "p", " t"));
  SampleGrid grid;
  QAbstractItemModelTester tester(&grid, QAbstractItemModelTester::FailureReportingMode::Fatal);
  grid.set_run(run);
  look(grid);
  EXPECT_EQ(grid.n_steps(), 3);
  std::filesystem::remove(run / "samples/step-000020.jsonl");
  write_file(run / "samples/step-000010.jsonl", sample_line(10, "p", " another text"));
  EXPECT_TRUE(look(grid));
  ASSERT_EQ(grid.n_steps(), 2);
  EXPECT_EQ(grid.sample(0, 1)->text, " another text");
}

TEST(SampleGrid, DamagedLinesAreCountedAndTheSamePromptTwiceIsTwoRows) {
  TestHome home;
  const auto run = home / "run";
  write_file(run / "samples/step-000001.jsonl",
             sample_line(1, "p", " a") + "{\"half\": \n\xff\xfe\n[1]\n" +
                 sample_line(1, "p", " b") + "{\"prompt\": \"q\", \"text\"");
  SampleGrid grid;
  QAbstractItemModelTester tester(&grid, QAbstractItemModelTester::FailureReportingMode::Fatal);
  grid.set_run(run);
  look(grid);
  EXPECT_EQ(grid.n_prompts(), 2);
  EXPECT_EQ(grid.sample(1, 0)->text, " b");
  EXPECT_EQ(grid.n_bad_lines(), 4);
}

TEST(SampleGrid, AnswersOfARunThatWasLeftAreNotTaken) {
  TestHome home;
  write_file(home / "one/samples/step-000001.jsonl", sample_line(1, "p", " one"));
  SampleGrid grid;
  grid.set_run(home / "one");
  grid.look();
  grid.set_run(home / "two");
  look(grid);
  EXPECT_EQ(grid.n_steps(), 0);
}

}  // namespace
}  // namespace ferry::gui
