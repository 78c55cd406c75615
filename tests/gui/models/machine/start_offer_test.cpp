#include "gui/models/machine/start_offer.h"

#include "gui/models/inputs/sample_data.h"
#include "gui/models/results/export_check.h"
#include "gui/models/runs/run_choices.h"
#include "src/base/error.h"
#include "src/files/paths.h"
#include "tests/gui/run_files.h"
#include "tests/train/tiny_model.h"

namespace ferry::gui {
namespace {

const service::MachineHere kLaptop{
    .gpu_bytes = 0, .compute_capability = 0, .host_bytes = int64_t{16} << 30};

TEST(SampleData, ShippedMessagesAreThere) {
  bool is_found = false;
  for (const auto& directory : own_preset_directories())
    is_found = is_found || std::filesystem::exists(directory / "samples" / "messages.csv");
  EXPECT_TRUE(is_found);
  const auto data = find_sample_data(SampleKind::labelled);
  ASSERT_TRUE(data);
  EXPECT_TRUE(std::filesystem::exists(data->path));
  EXPECT_FALSE(data->what.isEmpty());
}

TEST(SampleData, ATextIsShownFromItsFirstWordsOn) {
  TestHome home;
  write_file(home / "a.txt", "Title\n\nIt was a dark and stormy night.\n");
  const auto settings = sample_settings(home / "a.txt");
  ASSERT_FALSE(settings.empty());
  EXPECT_EQ(settings.front(),
            (std::pair<std::string, std::string>{"sample_prompts", "It was a dark"}));
  write_file(home / "b.txt", "short\n");
  EXPECT_TRUE(sample_settings(home / "b.txt").empty());
  EXPECT_TRUE(sample_settings(home / "none.txt").empty());
}

TEST(SampleData, APlayBecomesPlainText) {
  EXPECT_EQ(
      play_as_text("# ACT I\n\n_Enter Romeo._\n\n**ROMEO**  \nBut soft! _Aside._ What light\n\n\n"
                   "\n**JULIET**\nAy me!\n"),
      "ROMEO:\nBut soft!  What light\n\nJULIET:\nAy me!\n");
}

TEST(StartOffer, OffersModelsThatAreHereForWhatIsToBeDone) {
  TestHome home;
  const WithVariable models("FERRY_MODELS", (home / "models").c_str());
  const WithVariable no_packages("VIRTUAL_ENV", "/no/such/environment");
  test::write_tiny_model(home / "models/tiny-bert");
  test::write_tiny_language_model(home / "models/tiny-llama");
  write_file(home / "models/broken/config.json", "{");
  const auto names = [](const ModelOffers& found) {
    QStringList names;
    for (const ModelOffer& offer : found.offers)
      names << offer.name;
    return names;
  };
  const ModelOffers classify = find_offers(StartKind::classify, kLaptop);
  EXPECT_TRUE(names(classify).contains("tiny-bert")) << names(classify).join('|').toStdString();
  EXPECT_FALSE(names(classify).contains("tiny-llama"));
  EXPECT_FALSE(names(classify).contains("broken"));
  const ModelOffers go_on = find_offers(StartKind::go_on, kLaptop);
  EXPECT_EQ(names(go_on), QStringList{"tiny-llama"});
}

TEST(StartOffer, WhereNoModelIsHereItNamesOneOfAHub) {
  TestHome home;
  const WithVariable models("FERRY_MODELS", (home / "none").c_str());
  const ModelOffers found = find_offers(StartKind::go_on, kLaptop);
  EXPECT_TRUE(found.offers.empty());
  EXPECT_EQ(found.hub_name, "HuggingFaceTB/SmolLM2-135M");
}

TEST(StartOffer, AFolderAnywhereIsAModelOfWhatIsToBeDone) {
  TestHome home;
  test::write_tiny_model(home / "somewhere/tiny-bert");
  const auto offer = offer_of(StartKind::classify, home / "somewhere/tiny-bert");
  ASSERT_TRUE(offer);
  EXPECT_EQ(offer->name, "tiny-bert");
  EXPECT_FALSE(offer_of(StartKind::go_on, home / "somewhere/tiny-bert"));
  EXPECT_FALSE(offer_of(StartKind::classify, home / "nowhere"));
}

TEST(StartOffer, AnOfferWithDataIsPlanned) {
  TestHome home;
  const WithVariable models("FERRY_MODELS", (home / "models").c_str());
  test::write_tiny_model(home / "models/tiny-bert");
  test::write_tiny_data(home / "data.tsv", 40, 1);
  const ModelOffers found = find_offers(StartKind::classify, kLaptop);
  const auto tiny = std::find_if(found.offers.begin(), found.offers.end(),
                                 [](const ModelOffer& offer) { return offer.name == "tiny-bert"; });
  ASSERT_NE(tiny, found.offers.end());
  EXPECT_GT(tiny->n_bytes, 0);
  const config::Config settings =
      settings_of(*tiny, home / "data.tsv", {{"max_length", "16"}, {"device", "cpu"}});
  EXPECT_EQ(settings.text("dataset"), (home / "data.tsv").string());
  const PlanWords words = StartPlanner().plan(settings);
  EXPECT_TRUE(words.fits) << words.verdict.toStdString() << words.help.toStdString();
  EXPECT_TRUE(words.verdict.startsWith("It fits")) << words.verdict.toStdString();
  EXPECT_TRUE(words.promise.contains("4 step")) << words.promise.toStdString();  // 32 / 16, twice

  const auto too_small = settings_of(
      *tiny, home / "data.tsv", {{"max_length", "16"}, {"host_memory", "1MiB"}, {"device", "cpu"}});
  const PlanWords refused = StartPlanner().plan(too_small);
  EXPECT_FALSE(refused.fits);
  EXPECT_FALSE(refused.help.isEmpty());
  EXPECT_THROW(StartPlanner().plan(settings_of(*tiny, home / "no.tsv", {})), Error);
}

TEST(StartOffer, TheMachineIsLookedAt) {
  const MachineLook look = look_at_machine();
  EXPECT_FALSE(look.memory.isEmpty());
  EXPECT_GT(look.here.host_bytes, 0);
}

TEST(RunChoices, WhatIsNoRunIsLeftOut) {
  TestHome home;
  make_run(home / "runs/one");
  make_run(home / "runs/two", {.phase = "stopped"});
  write_file(home / "runs/two/checkpoint-20/COMPLETE", "");
  write_file(home / "runs/bad/run.json", "{");
  const auto choices = read_run_choices(
      {home / "runs/two", home / "runs/none", home / "runs/bad", home / "runs/one"});
  ASSERT_EQ(choices.size(), 2u);
  EXPECT_EQ(choices[1].name, "one");
  const RunChoice& two = choices[0];
  EXPECT_EQ(two.phase, "stopped");
  ASSERT_EQ(two.checkpoints.size(), 1u);
  EXPECT_EQ(two.checkpoints[0].step, 20);
  EXPECT_FALSE(two.has_final);
}

TEST(ExportCheck, FindsWhatIsWrongWithATarget) {
  TestHome home;
  test::write_tiny_model(home / "model");
  const auto model = home / "model";
  const auto trouble = [&](const std::filesystem::path& target) {
    return check_export(model, target).trouble;
  };
  const ExportCheck good = check_export(model, home / "new/deep");
  EXPECT_TRUE(good.trouble.isEmpty()) << good.trouble.toStdString();
  EXPECT_GT(good.needed_bytes, 0);
  EXPECT_GT(good.free_bytes, 0);
  EXPECT_FALSE(trouble({}).isEmpty());
  EXPECT_FALSE(trouble("relative").isEmpty());
  EXPECT_TRUE(trouble(model).contains("itself"));
  write_file(home / "full/file", "x");
  EXPECT_TRUE(trouble(home / "full").contains("not empty"));
  EXPECT_TRUE(trouble(home / "full/file").contains("file"));
  EXPECT_FALSE(trouble(home / "full/file/below").isEmpty());
  std::filesystem::create_directory(home / "left.partial");
  EXPECT_TRUE(trouble(home / "left").contains("interrupted"));
  EXPECT_TRUE(trouble("/proc/new").contains("may be written") ||
              !check_export(model, "/proc/new").trouble.isEmpty());
  EXPECT_TRUE(check_export("/no/such/model", home / "new").trouble.contains("/no/such/model"));
}

}  // namespace
}  // namespace ferry::gui
