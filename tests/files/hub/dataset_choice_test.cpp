// Which files of a repository are a data set, as Hugging Face's datasets library decides.

#include <gmock/gmock.h>

#include "src/files/hub/dataset_choice.h"
#include "tests/files/hub/fake_hub.h"

namespace ferry::hub {
namespace {

namespace fs = std::filesystem;
using test::Environment;
using test::message_of;
using test::TempDir;
using testing::ElementsAre;
using testing::HasSubstr;

RepoTree tree_of(std::vector<std::string> paths) {
  RepoTree tree = {.commit = std::string(40, 'c'), .files = {}};
  std::ranges::sort(paths);
  for (std::string& path : paths)
    tree.files.push_back({.path = std::move(path),
                          .n_bytes = 1,
                          .blob_id = std::string(40, 'b'),
                          .sha256 = {},
                          .xet_hash = {}});
  return tree;
}

DatasetChoice choose(const std::string& name,
                     std::vector<std::string> paths,
                     const std::optional<std::string>& readme = std::nullopt) {
  return choose_dataset(tree_of(std::move(paths)), readme, *parse_dataset_name(name));
}

std::vector<std::string> paths_of(const DatasetChoice& choice) {
  std::vector<std::string> paths;
  for (const RemoteFile& file : choice.files)
    paths.push_back(file.path);
  return paths;
}

TEST(DatasetName, IsToldFromAPath) {
  EXPECT_EQ(parse_dataset_name("a/b")->repo.id, "a/b");
  EXPECT_EQ(parse_dataset_name("a/b@v1:c:d")->repo.revision, "v1");
  EXPECT_THAT(parse_dataset_name("a/b:c:d")->parts, ElementsAre("c", "d"));
  EXPECT_EQ(parse_dataset_name("a/b@v1:c:d")->text(), "a/b@v1:c:d");
  for (const char* path : {"a/b.jsonl", "/a/b", "./a/b", "a", "imdb", "a/b/c", "data/*.tsv",
                           "a/b::c", "a/b:c:d:e", "a/b:", "~/a", ""})
    EXPECT_FALSE(parse_dataset_name(path)) << path;
  const TempDir here;
  const fs::path before = fs::current_path();
  fs::current_path(here.path());
  fs::create_directories("news");
  EXPECT_FALSE(parse_dataset_name("news/spor"));  // a path that is misspelt
  EXPECT_FALSE(parse_dataset_name("news"));
  fs::current_path(before);
}

TEST(DatasetChoice, TakesTheShardsOfData) {
  const std::vector<std::string> files = {"README.md",
                                          "data/test-00000-of-00001.parquet",
                                          "data/train-00001-of-00002-ab.parquet",
                                          "data/train-00000-of-00002-ab.parquet",
                                          ".gitattributes",
                                          "data/other.parquet"};
  EXPECT_THAT(paths_of(choose("a/b", files)), ElementsAre("data/train-00000-of-00002-ab.parquet",
                                                          "data/train-00001-of-00002-ab.parquet"));
  EXPECT_THAT(paths_of(choose("a/b:test", files)), ElementsAre("data/test-00000-of-00001.parquet"));
  EXPECT_THAT(message_of([&] { choose("a/b:dev", files); }), HasSubstr("no split 'dev'"));
}

TEST(DatasetChoice, ReadsTheNamesOfDirectoriesAndFiles) {
  const std::vector<std::string> folders = {"train/a.csv", "train/b.csv", "dev/a.csv", "x.csv"};
  EXPECT_THAT(paths_of(choose("a/b", folders)), ElementsAre("train/a.csv", "train/b.csv"));
  EXPECT_THAT(choose("a/b:validation", folders).splits, ElementsAre("train", "validation"));
  const std::vector<std::string> files = {"my_train.jsonl", "eval-2.jsonl", "constraints.jsonl"};
  EXPECT_THAT(paths_of(choose("a/b", files)), ElementsAre("my_train.jsonl"));
  EXPECT_THAT(paths_of(choose("a/b:test", files)), ElementsAre("eval-2.jsonl"));
  EXPECT_THAT(paths_of(choose("a/b", {"one.json", "two.json", "dataset_infos.json", "__x/y.json"})),
              ElementsAre("one.json", "two.json"));
}

TEST(DatasetChoice, TheCommonestFormDecides) {
  EXPECT_THAT(paths_of(choose("a/b", {"a.csv", "b.csv", "c.jsonl", "d.py"})),
              ElementsAre("a.csv", "b.csv"));
  EXPECT_THAT(paths_of(choose("a/b", {"a.csv", "a.parquet"})), ElementsAre("a.parquet"));
  EXPECT_THAT(message_of([] {
                choose("a/b", {"a.zip", "b.wav"});
              }),
              testing::AllOf(HasSubstr("no form that Ferry reads (.wav, .zip)"),
                             HasSubstr("a/b@refs/convert/parquet")));
}

constexpr const char* kTwoConfigs = R"(---
license: mit
configs:
- config_name: cola
  data_files:
  - split: train
    path: cola/train-*
  - split: validation
    path:
    - "cola/validation-*"
- config_name: sst2
  data_files:
  - split: train
    path: sst2/**/*.parquet
---
# Text
)";

TEST(DatasetChoice, FollowsTheHeadOfReadme) {
  const std::vector<std::string> files = {"cola/train-0.parquet", "cola/train-1.parquet",
                                          "cola/validation-0.parquet", "sst2/x/y.parquet",
                                          "sst2/z.parquet"};
  EXPECT_THAT(message_of([&] { choose("a/b", files, kTwoConfigs); }),
              testing::AllOf(HasSubstr("several configurations: cola, sst2"),
                             HasSubstr("--dataset a/b:cola")));
  EXPECT_THAT(paths_of(choose("a/b:cola", files, kTwoConfigs)),
              ElementsAre("cola/train-0.parquet", "cola/train-1.parquet"));
  EXPECT_THAT(paths_of(choose("a/b:cola:validation", files, kTwoConfigs)),
              ElementsAre("cola/validation-0.parquet"));
  EXPECT_THAT(paths_of(choose("a/b:sst2", files, kTwoConfigs)),
              ElementsAre("sst2/x/y.parquet", "sst2/z.parquet"));
  EXPECT_THAT(message_of([&] { choose("a/b:mnli:train", files, kTwoConfigs); }),
              HasSubstr("no configuration 'mnli'"));
  const std::string with_default = R"(---
configs:
- config_name: a
  data_dir: one
- config_name: b
  default: true
  data_files: two/*.csv
---)";
  EXPECT_EQ(choose("x/y", {"one/q.csv", "two/r.csv"}, with_default).config, "b");
  EXPECT_THAT(paths_of(choose("x/y:a", {"one/q.csv", "two/r.csv"}, with_default)),
              ElementsAre("one/q.csv"));
}

TEST(DatasetChoice, SaysWhatAReadmeNamesAndIsNotThere) {
  const std::string missing = "---\nconfigs:\n- config_name: a\n  data_files: no/*.csv\n---\n";
  EXPECT_THAT(message_of([&] { choose("x/y", {"a.csv"}, missing); }), HasSubstr("'no/*.csv'"));
  const std::string elsewhere =
      "---\nconfigs:\n- config_name: a\n  data_files: https://x.org/a.csv\n---\n";
  EXPECT_THAT(message_of([&] { choose("x/y", {"a.csv"}, elsewhere); }),
              HasSubstr("files from elsewhere"));
  EXPECT_THAT(message_of([&] { choose("x/y", {"a.csv"}, "---\n a: [\n---\n"); }),
              HasSubstr("no YAML that Ferry reads"));
  EXPECT_THAT(paths_of(choose("x/y", {"a.csv"}, "no head")), ElementsAre("a.csv"));
}

TEST(DatasetChoice, ReadsTheConvertedBranch) {
  const std::vector<std::string> files = {"default/partial-train/0000.parquet",
                                          "default/partial-train/0001.parquet",
                                          "default/test/0000.parquet"};
  const auto choice = choose("a/b@refs/convert/parquet", files);
  EXPECT_TRUE(choice.is_partial);
  EXPECT_EQ(choice.split, "train");
  EXPECT_EQ(choice.files.size(), 2U);
}

TEST(DatasetChoice, PatternsMatchAsThoseOfFsspec) {
  for (const auto& [path, pattern, does] : {std::tuple{"a/b/c.csv", "**/*.csv", true},
                                            {"c.csv", "**/*.csv", true},
                                            {"a/b/c.csv", "a/*.csv", false},
                                            {"a/c.csv", "a/*.csv", true},
                                            {"a/b/c", "a/**", true},
                                            {"x-1.csv", "x-[0-9].csv", true},
                                            {"x-a.csv", "x-[0-9].csv", false},
                                            {"a/.b", "a/*", false},
                                            {"a", "a/b", false},
                                            {"a/b", "a", false}})
    EXPECT_EQ(matches_pattern(path, pattern), does) << path << " " << pattern;
}

TEST(DatasetLabels, StandInTheHeadOfReadme) {
  const std::string readme = R"(---
dataset_info:
  features:
  - name: text
    dtype: string
  - name: label
    dtype:
      class_label:
        names:
          '0': neg
          '1': pos
          '3': last
          '2': third
  - name: tags
    sequence:
      class_label:
        names:
          '0': O
          '1': B-PER
  - name: hole
    dtype:
      class_label:
        names:
          '0': O
          '2': B-PER
---)";
  EXPECT_THAT(label_names_of_readme(readme, "label"), ElementsAre("neg", "pos", "third", "last"));
  EXPECT_THAT(label_names_of_readme(readme, "tags"), ElementsAre("O", "B-PER"));
  EXPECT_THAT(label_names_of_readme(readme, "text"), testing::IsEmpty());
  EXPECT_THAT(label_names_of_readme(readme, "hole"), testing::IsEmpty());
}

TEST(DatasetLabels, OfConfigurationsCountWhereTheyAgree) {
  const auto two = [](const std::string& second) {
    const auto of = [](const std::string& name) {
      return "- config_name: x\n  features:\n  - name: label\n    dtype:\n      class_label:\n"
             "        names:\n          '0': " +
             name + "\n";
    };
    return "---\ndataset_info:\n" + of("a") + of(second) + "---\n";
  };
  EXPECT_THAT(label_names_of_readme(two("a"), "label"), ElementsAre("a"));
  EXPECT_THAT(label_names_of_readme(two("b"), "label"), testing::IsEmpty());
}

TEST(DatasetLabels, OfConfigurationsThatDifferAreThoseOfTheFile) {
  const auto info = [](const std::string& config, const std::string& name) {
    return "- config_name: " + config +
           "\n  features:\n  - name: label\n    dtype:\n      class_label:\n        names:\n"
           "          '0': " +
           name + "\n";
  };
  const std::string infos =
      "dataset_info:\n" + info("cola", "bad") + info("sst2", "neg") + info("wnli", "no");
  const std::string readme =
      "---\nconfigs:\n- config_name: cola\n  data_files:\n  - split: train\n    path: c/tr*\n"
      "- config_name: sst2\n  data_dir: ./s\n" +
      infos + "---\n";
  const auto names = [&](const std::string& path) {
    return label_names_of_readme(readme, "label", path);
  };
  EXPECT_THAT(names("c/train.csv"), ElementsAre("bad"));
  EXPECT_THAT(names("s/train.csv"), ElementsAre("neg"));
  EXPECT_THAT(names("wnli/train.csv"), ElementsAre("no"));
  EXPECT_THAT(names("c/other.csv"), testing::IsEmpty());
  EXPECT_THAT(names(""), testing::IsEmpty());
}

TEST(SavedDataset, HasItsFilesInOrder) {
  const TempDir here;
  const std::string state =
      R"({"_data_files": [{"filename": "data-00001-of-00002.arrow"}, {"filename": "data-00000-of-00002.arrow"}]})";
  here.write("one/state.json", state);
  here.write("one/dataset_info.json", "{}");
  EXPECT_THAT(
      *saved_dataset_files(here / "one"),
      ElementsAre(here / "one/data-00001-of-00002.arrow", here / "one/data-00000-of-00002.arrow"));
  here.write("dict/dataset_dict.json", R"({"splits": ["train", "test"]})");
  here.write("dict/train/state.json", state);
  here.write("dict/train/dataset_info.json", "{}");
  EXPECT_EQ(saved_dataset_files(here / "dict")->front(),
            here / "dict/train/data-00001-of-00002.arrow");
  here.write("dict/dataset_dict.json", R"({"splits": ["a", "b"]})");
  EXPECT_THAT(message_of([&] { saved_dataset_files(here / "dict"); }), HasSubstr("a, b"));
  here.write("one/state.json", R"({"_data_files": [{"filename": "../x"}]})");
  EXPECT_THAT(message_of([&] { saved_dataset_files(here / "one"); }), HasSubstr("beside it"));
  EXPECT_FALSE(saved_dataset_files(here.path()));
}

}  // namespace
}  // namespace ferry::hub
