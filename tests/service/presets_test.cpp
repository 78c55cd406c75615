// Presets: those that come with Ferry keep what they promise by the planner, and the page tells it.

#include "src/service/presets.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "src/base/bytes.h"
#include "tests/config/config_fixture.h"

namespace ferry::service {
namespace {

using config::usage_error;

/** "64xa100-80g" of eight hosts 8xa100-80g. */
std::string cards_of(const PresetFacts& facts) {
  const std::string& card = facts.head.card;
  const int64_t n_hosts = facts.settings.integer("nnodes");
  if (n_hosts == 1) return card;
  const size_t x = card.find('x');
  return std::to_string(n_hosts * std::stoi(card.substr(0, x))) + card.substr(x);
}

/** Words for tasks in the names of presets. */
const std::map<std::string, std::string> kTaskWords = {
    {"classification", "classify"}, {"token-classification", "ner"},
    {"question-answering", "qa"},   {"mlm", "mlm"},
    {"preference", "dpo"},          {"causal-lm", "lm"}};

class PresetPlans : public testing::Test {
 protected:
  void SetUp() override { setenv("XDG_CONFIG_HOME", directory_.path().c_str(), 1); }
  void TearDown() override { unsetenv("XDG_CONFIG_HOME"); }
  static const std::vector<PresetFacts>& all() {
    static const std::vector<PresetFacts> presets = own_presets();
    return presets;
  }
  static const std::vector<PresetPlan>& plans() {
    static const std::vector<PresetPlan> made = plan_presets(all());
    return made;
  }
  PresetFacts own(const std::string& text) const {
    const auto file = directory_.write("own.toml", text);
    return read_preset({"own", file, true});
  }

  config::TemporaryDirectory directory_;
};

TEST_F(PresetPlans, EachIsNamedByModelTaskAndCard) {
  ASSERT_GE(all().size(), 20u);
  for (const PresetFacts& facts : all()) {
    const std::string& name = facts.preset.name;
    EXPECT_FALSE(facts.head.title.empty()) << name;
    EXPECT_FALSE(facts.head.purpose.empty()) << name;
    EXPECT_TRUE(facts.head.host_memory_bytes) << name;
    EXPECT_EQ(facts.hub_id.empty(), facts.is_new)
        << name << ": " << facts.model << " is no known model";
    const std::string card = facts.head.card.empty() ? "" : "-" + cards_of(facts);
    const bool is_of_chats = facts.task == "causal-lm" && name.ends_with("-chat" + card);
    EXPECT_TRUE(is_of_chats || name.ends_with("-" + kTaskWords.at(facts.task) + card)) << name;
  }
}

TEST_F(PresetPlans, EachFitsItsCardAndHostMemory) {
  constexpr double kLongestStep_s = 30;
  for (size_t i = 0; i < all().size(); ++i) {
    const PresetFacts& facts = all()[i];
    const PresetPlan& plan = plans()[i];
    const std::string& name = facts.preset.name;
    EXPECT_EQ(plan.refusal, "") << name;
    EXPECT_LE(plan.gpu_bytes, plan.gpu_budget_bytes) << name;
    EXPECT_LE(plan.host_bytes, plan.host_budget_bytes) << name;
    EXPECT_LT(plan.host_budget_bytes, *facts.head.host_memory_bytes) << name;
    EXPECT_EQ(plan.has_gpu, !facts.head.card.empty()) << name;
    EXPECT_EQ(plan.time.has_value(), plan.has_gpu) << name;
    if (plan.time) {
      // The steps of a pre-training are as large as its authors made them.
      EXPECT_TRUE(plan.time->step_s < kLongestStep_s || facts.is_new) << name;
    }
  }
}

/** A larger machine is used whole: the plan there decides. */
TEST_F(PresetPlans, NoneLimitsMemoryOrPlaces) {
  for (const PresetFacts& facts : all())
    for (const char* key : {"gpu_memory", "host_memory", "placement", "activations", "dtype",
                            "device", "per_device_train_batch_size", "machine"})
      EXPECT_FALSE(facts.settings.is_set(key)) << facts.preset.name << " sets " << key;
}

TEST_F(PresetPlans, StatesAreSmallerOnlyWhereTheHostWouldNotHoldThem) {
  int n_smaller = 0;
  for (PresetFacts facts : all()) {
    if (!facts.settings.is_set("optim") && !facts.settings.is_set("master")) continue;
    ++n_smaller;
    facts.settings.set("optim", "adamw", {config::Source::command_line, "--optim"});
    facts.settings.set("master", "fp32", {config::Source::command_line, "--master"});
    EXPECT_NE(plan_preset(facts).refusal, "") << facts.preset.name << " fits with fp32 states";
  }
  EXPECT_GT(n_smaller, 0);
}

TEST_F(PresetPlans, LessHostMemoryIsRefused) {
  PresetFacts facts = read_preset(config::find_preset("llama-3-8b-lm-3090-24g"));
  facts.head.host_memory_bytes = 64 * kGiB;
  const PresetPlan plan = plan_preset(facts);
  EXPECT_CONTAINS(plan.refusal, "host");
  EXPECT_GT(plan.host_bytes, plan.host_budget_bytes);
  EXPECT_FALSE(plan.time);
}

TEST_F(PresetPlans, TheLeastOfFiguresThatDisagreeIsSaid) {
  const PresetPlan turing = plan_preset(read_preset(config::find_preset("gpt2-lm-2080ti-11g")));
  ASSERT_TRUE(turing.time && turing.time->least_samples_per_s);
  EXPECT_LT(*turing.time->least_samples_per_s, turing.time->samples_per_s);
  const PresetPlan ampere = plan_preset(read_preset(config::find_preset("qwen3-0.6b-lm-3060-12g")));
  ASSERT_TRUE(ampere.time);
  EXPECT_FALSE(ampere.time->least_samples_per_s);
}

TEST_F(PresetPlans, AUsersOwnMayLeaveOutWhatItIsFor) {
  const PresetFacts facts = own("model = \"gpt2\"\ntask = \"causal-lm\"\n");
  EXPECT_TRUE(facts.head.is_empty());
  EXPECT_EQ(facts.hub_id, "openai-community/gpt2");
  EXPECT_EQ(plan_preset(facts).refusal, "");  // on a CPU with the memory of this machine
  EXPECT_EQ(host_memory_bytes(own("preset.card = \"3090-24g\"\n").head), 64 * kGiB);
}

TEST_F(PresetPlans, ANewModelHasAShapeAndNoRepository) {
  const PresetFacts facts = read_preset(config::find_preset("gpt3-175b-lm-64xa100-80g"));
  EXPECT_TRUE(facts.is_new);
  EXPECT_EQ(facts.model, "gpt3-175b");
  EXPECT_EQ(facts.hub_id, "");
  const PresetPlan plan = plan_preset(facts);
  EXPECT_EQ(plan.n_gpus, 64);
  EXPECT_EQ(plan.refusal, "");
  EXPECT_EQ(own("config_name = \"gpt2\"\ntask = \"causal-lm\"\n").hub_id, "");
}

TEST_F(PresetPlans, WrongOnesAreNamed) {
  const PresetFacts no_card = own("model = \"gpt2\"\npreset.card = \"3090-42g\"\n");
  const std::string message = usage_error([&] { plan_preset(no_card); });
  EXPECT_CONTAINS(message, "own.toml:2");
  EXPECT_CONTAINS(message, "did you mean '3090-24g'?");
  EXPECT_CONTAINS(usage_error([&] { lacks({}, no_card.head); }), "own.toml:2");
  EXPECT_CONTAINS(usage_error([&] { plan_preset(own("preset.card = \"3090-24g\"\n")); }),
                  "names no model");
  usage_error([&] { plan_preset(own("model = \"nothing-known\"\n")); }, Fault::data);
}

TEST(Lacks, SaysWhatIsLess) {
  const config::PresetHead head = {.card = "3090-24g", .host_memory_bytes = 128 * kGiB};
  const auto said = [&](const MachineHere& here) {
    std::string text;
    for (const std::string& phrase : lacks(here, head))
      text += phrase + ";";
    return text;
  };
  const MachineHere same = {24 * kGiB, 86, 128 * kGiB};
  EXPECT_EQ(said(same), "");
  // The kernel keeps some of what is built in.
  EXPECT_EQ(said({24 * kGiB, 86, 126 * kGiB}), "");
  EXPECT_EQ(said({80 * kGiB, 90, 512 * kGiB}), "");
  EXPECT_EQ(said({12 * kGiB, 86, 128 * kGiB}), "12.00 GiB of GPU memory instead of 23.64 GiB;");
  EXPECT_EQ(said({24 * kGiB, 86, 64 * kGiB}), "64.00 GiB of host memory instead of 128.00 GiB;");
  EXPECT_EQ(said({24 * kGiB, 75, 128 * kGiB}), "a GPU without bf16, which computes in fp16;");
  EXPECT_EQ(said({0, 0, 128 * kGiB}), "no GPU to train on;");
  EXPECT_EQ(lacks({}, {}).size(), 0u);
  const config::PresetHead of_four = {.card = "4x4090-24g", .host_memory_bytes = 128 * kGiB};
  EXPECT_EQ(lacks({24 * kGiB, 89, 128 * kGiB, 4}, of_four).size(), 0u);
  EXPECT_EQ(lacks({24 * kGiB, 89, 128 * kGiB, 1}, of_four),
            std::vector<std::string>{"1 GPU instead of 4"});
}

TEST_F(PresetPlans, ThePageHasThem) {
  std::ifstream stream(FERRY_SOURCE_ROOT "/presets/presets.md");
  if (!stream) GTEST_SKIP() << "no source tree at " << FERRY_SOURCE_ROOT;
  const std::string page{std::istreambuf_iterator<char>(stream), {}};
  const size_t begin = page.find('\n', page.find("<!-- presets ")),
               end = page.find("<!-- end of presets -->");
  ASSERT_LT(begin, end);
  ASSERT_NE(end, std::string::npos);
  const std::string tables = presets_markdown(all(), plans());
  EXPECT_TRUE(page.substr(begin + 1, end - begin - 1) == tables)
      << "presets/presets.md is not what the planner says; renew it: scripts/renew_presets "
         "BUILD_DIRECTORY/src/cli/ferry. It should have\n"
      << tables;
  for (const PresetFacts& facts : all())
    EXPECT_CONTAINS(tables, "| `" + facts.preset.name + "` |");
}

}  // namespace
}  // namespace ferry::service
