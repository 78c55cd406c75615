// ferry doctor: the shape of its JSON, models, drivers that are not this machine's.

#include "src/base/bytes.h"
#include "tests/cli/ferry_fixture.h"

namespace ferry::cli {
namespace {

class Doctor : public FerryTest {
 protected:
  /** Its answer where a trainer is. */
  nlohmann::json report_of(const std::string& more = "", Environment environment = {}) const {
    environment.emplace_back("FERRY_TRAINER", "/bin/true");
    return json_of("doctor " + more, environment);
  }
  /** On a machine whose driver is the fake one. */
  nlohmann::json with_driver(const std::string& behaviour) const {
    const char* folder = std::getenv("FAKE_NVML_DIRECTORY");
    return report_of("", {{"LD_LIBRARY_PATH", folder ? folder : ""}, {"FAKE_NVML", behaviour}});
  }
  static bool finds(const nlohmann::json& report, const std::string& part) {
    for (const auto& finding : report["findings"])
      if (config::contains(finding["what"].get<std::string>(), part)) return true;
    return false;
  }
};

TEST_F(Doctor, JsonHasItsShape) {
  const auto report = report_of();
  EXPECT_TRUE(report["usable"].get<bool>());
  EXPECT_EQ(report["ferry"]["trainer"], "/bin/true");
  EXPECT_TRUE(report["ferry"]["presets"].is_array());
  EXPECT_TRUE(report["ferry"]["presets_here"].is_array());
  EXPECT_GE(report["cpu"]["n_threads"].get<int>(), 1);
  EXPECT_TRUE(report["cpu"]["simd"].is_string());
  EXPECT_GT(report["memory"]["total_bytes"].get<int64_t>(), 0);
  for (const char* key : {"available_bytes", "budget_bytes", "swap_total_bytes", "swap_free_bytes"})
    EXPECT_TRUE(report["memory"][key].is_number_integer()) << key;
  for (const char* key : {"cgroup_limit_bytes", "memlock_limit_bytes"})
    EXPECT_TRUE(report["memory"][key].is_number_integer() || report["memory"][key].is_null())
        << key;
  EXPECT_GT(report["disk"]["total_bytes"].get<int64_t>(), 0);
  EXPECT_TRUE(report["nvidia"]["gpus"].is_array());
  for (const auto& finding : report["findings"]) {
    EXPECT_TRUE(finding["severity"] == "note" || finding["severity"] == "warning");
    EXPECT_TRUE(finding["what"].is_string() && finding["cure"].is_string());
  }
}

TEST_F(Doctor, ListsTheModelsAndWhereTheyAreLookedFor) {
  const auto add = [&](const std::string& directory, const std::string& family) {
    directory_.write(directory + "/config.json", R"({"model_type": ")" + family + "\"}");
  };
  add("mine/own-bert", "bert");
  add("mine/lab/deep", "t5");
  add("mine/decoder", "gpt2");
  directory_.write("mine/damaged/config.json", "{");
  add("models/local", "bert");
  add("hub/models--google-bert--bert-base-cased/snapshots/abc", "bert");
  const auto doctor = [&](const std::string& models) {
    return run(
        "doctor --no-measure",
        {{"FERRY_TRAINER", "/bin/true"}, {"FERRY_MODELS", models}, {"HF_HUB_CACHE", path("hub")}});
  };
  const std::string said = doctor(path("mine")).out;
  for (const std::string& line :
       {"  $FERRY_MODELS (" + path("mine") +
            "): damaged (unreadable), decoder, lab/deep (t5: not trained by "
            "this version), own-bert\n",
        std::string("  models/ here: models/local\n"),
        "  Hugging Face's cache (" + path("hub") + "): google-bert/bert-base-cased\n"})
    EXPECT_TRUE(config::contains(said, line)) << line << "in:\n" << said;
  EXPECT_TRUE(config::contains(doctor("").out, "  $FERRY_MODELS: not set\n"));
  const auto places = report_of(
      "--no-measure", {{"FERRY_MODELS", path("mine")}, {"HF_HUB_CACHE", path("hub")}})["models"];
  EXPECT_EQ(places[0]["models"][3]["name"], "own-bert");
  EXPECT_EQ(places[0]["models"][1]["is_trained"], true);
  EXPECT_EQ(places[0]["models"][2]["is_trained"], false);
  EXPECT_EQ(places[2]["models"][0]["model_type"], "bert");
}

TEST_F(Doctor, WithoutFiguresTheRestIsReported) {
  const auto report = report_of();
  EXPECT_TRUE(report["profile"].is_null());
  EXPECT_TRUE(finds(report, "could not be measured"));
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
  // Not asked for, it is no fault; a damaged profile is one.
  EXPECT_FALSE(finds(report_of("--no-measure"), "could not be measured"));
  directory_.write("data/ferry/machine.json", "{\"version\": 8}");
  EXPECT_TRUE(finds(report_of("--no-measure"), "version is 8"));
}

TEST_F(Doctor, SaysFiveWhenTrainingCannotRun) {
  Outcome outcome = run("doctor --json", {{"FERRY_TRAINER", "/no/trainer"}});
  EXPECT_EQ(outcome.exit_code, 5);
  auto report = nlohmann::json::parse(outcome.out);
  EXPECT_FALSE(report["usable"].get<bool>());
  EXPECT_EQ(report["findings"][0]["severity"], "error");

  outcome = run("doctor", {{"FERRY_TRAINER", "/bin/true"}, {"FERRY_SIMD", "mmx"}});
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_CONTAINS(outcome.out, "mmx");
  EXPECT_CONTAINS(outcome.out, "cannot train here");
}

TEST_F(Doctor, ReadsADriver) {
  auto report = with_driver("ok");
  ASSERT_EQ(report["nvidia"]["gpus"].size(), 1u);
  const auto& gpu = report["nvidia"]["gpus"][0];
  EXPECT_EQ(gpu["name"], "NVIDIA GeForce RTX 2080 Ti");
  EXPECT_EQ(gpu["memory_total_bytes"], 11 * kGiB);
  EXPECT_EQ(gpu["memory_free_bytes"], 10 * kGiB);
  EXPECT_EQ(gpu["compute_capability"], 75);
  EXPECT_EQ(gpu["pcie_generation"], 3);
  EXPECT_EQ(gpu["pcie_width"], 16);
  EXPECT_EQ(gpu["power_limit_w"], 250);
  EXPECT_EQ(gpu["drives_display"], false);  // the fake library does not know
  EXPECT_EQ(report["nvidia"]["driver_version"], "580.65.06");
  EXPECT_EQ(report["nvidia"]["cuda_version"], 13000);
  EXPECT_FALSE(finds(report, "too old"));
}

/** A trainer that measures what it is asked for: by itself the first card. */
TEST_F(Doctor, MeasuresEachModelOfGpus) {
  const auto figures = [](const std::string& name, double flops) {
    const nlohmann::json gemm = {
        {"type", "fp16"}, {"rows", 512}, {"width", 512}, {"flops_per_s", flops}};
    return nlohmann::json{{"skipped", nlohmann::json::array()},
                          {"gpu_trouble", ""},
                          {"gpu_free_bytes", kGiB},
                          {"seconds", 3},
                          {"steps", nlohmann::json::array()},
                          {"profile",
                           {{"version", 7},
                            {"name", name},
                            {"gpu",
                             {{"name", name},
                              {"compute_capability", 80},
                              {"memory_bytes", 12 * kGiB},
                              {"gemms", {gemm}}}},
                            {"host", {{"memory_bytes", 64 * kGiB}}}}}};
  };
  directory_.write("first.json", figures("NVIDIA GeForce RTX 2080 Ti", 1e13).dump());
  directory_.write("second.json", figures("NVIDIA GeForce RTX 3060", 2e13).dump());
  directory_.write("trainer", "#!/bin/sh\ncase \"$*\" in *--gpu\\ 1*) cat " + path("second.json") +
                                  ";; *) cat " + path("first.json") + ";; esac\n");
  std::filesystem::permissions(path("trainer"), std::filesystem::perms::owner_all);
  const char* folder = std::getenv("FAKE_NVML_DIRECTORY");
  const auto doctor = [&](const std::string& more, const Environment& environment) {
    Environment all = {{"LD_LIBRARY_PATH", folder ? folder : ""},
                       {"FAKE_NVML", "two"},
                       {"FERRY_TRAINER", path("trainer")}};
    all.insert(all.end(), environment.begin(), environment.end());
    return json_of("doctor " + more, all);
  };
  const auto others = [](const nlohmann::json& report) {
    return report["profile"].value("other_gpus", nlohmann::json::array());
  };
  const auto both = doctor("", {});
  ASSERT_EQ(others(both).size(), 1U) << both.dump(1);
  EXPECT_EQ(both["profile"]["gpu"]["name"], "NVIDIA GeForce RTX 2080 Ti");
  EXPECT_EQ(others(both)[0]["name"], "NVIDIA GeForce RTX 3060");
  EXPECT_EQ(others(both)[0]["gemms"][0]["flops_per_s"], 2e13);
  EXPECT_EQ(others(both)[0]["driver"], "580.65.06");
  // One that is hidden now keeps its figures, and one that has left the machine does not.
  EXPECT_EQ(others(doctor("", {{"CUDA_VISIBLE_DEVICES", "0"}})).size(), 1U);
  EXPECT_EQ(others(doctor("", {{"FAKE_NVML", "ok"}})).size(), 0U);
}

TEST_F(Doctor, TellsADriversTroubles) {
  EXPECT_TRUE(finds(with_driver("old"), "535.183.01 is too old"));
  EXPECT_TRUE(finds(with_driver("18"), "Driver/library version mismatch"));
  EXPECT_TRUE(finds(with_driver("maxwell"), "compute capability 5.2"));
  EXPECT_TRUE(with_driver("18")["nvidia"]["gpus"].empty());
}

}  // namespace
}  // namespace ferry::cli
