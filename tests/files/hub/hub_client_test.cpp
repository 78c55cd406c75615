// The hub's client against a hub on loopback: what it asks for, what it keeps, every refusal.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/file.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "src/files/hub/digest.h"
#include "src/files/hub/hub_client.h"
#include "src/files/hub/model_files.h"
#include "src/files/plain_file.h"
#include "tests/files/hub/fake_hub.h"

namespace ferry::hub {
namespace {

namespace fs = std::filesystem;
using test::bytes_of;
using test::Environment;
using test::FakeHub;
using test::TempDir;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr size_t kShard_bytes = 300'000;

class HubTest : public testing::Test {
 protected:
  HubTest() {
    const std::string to = "models/org/toy/main/";
    hub_.put(to + "config.json", R"({"model_type": "bert"})");
    hub_.put(to + "README.md", "# Toy");
    hub_.put(to + "LICENSE", "free");
    hub_.put(to + "tokenizer.json", bytes_of(5'000, 1));
    hub_.put(to + "tokenizer_config.json", "{}");
    hub_.put(to + "model-00001-of-00002.safetensors", bytes_of(kShard_bytes, 2));
    hub_.put(to + "model-00002-of-00002.safetensors", bytes_of(kShard_bytes, 3));
    hub_.put(to + "model.safetensors.index.json",
             R"({"weight_map": {"a": "model-00001-of-00002.safetensors",
                                "b": "model-00002-of-00002.safetensors"}})");
    hub_.put(to + "pytorch_model.bin", bytes_of(2'000, 4));
    hub_.put(to + "original/consolidated.00.pth", bytes_of(2'000, 5));
    hub_.put(to + "toy.gguf", bytes_of(2'000, 6));
    hub_.put(to + "additional_chat_templates/tools.jinja", "{{ x }}");
    settings_.endpoint = hub_.url();
    settings_.cache = cache_.path();
    settings_.retry_wait = std::chrono::milliseconds(1);
  }

  HubClient client(const std::string& name = "org/toy") {
    return HubClient(settings_, *parse_repo_name(RepoKind::model, name),
                     {.tell = [&](const std::string& text) { told_ += text + "\n"; },
                      .progress =
                          [&](int64_t done, int64_t total) {
                            done_ = {done, total};
                          },
                      .is_cancelled = is_cancelled_});
  }
  /** All of a model; its snapshot. */
  fs::path fetch(const std::string& name = "org/toy") {
    HubClient hub = client(name);
    hub.open();
    hub.fetch(wanted(hub));
    return hub.snapshot();
  }
  static std::vector<RemoteFile> wanted(HubClient& hub) {
    const RemoteFile* const index = weights_index(hub.tree());
    return files_of_model(hub.tree(), index ? std::optional(hub.text_of(*index)) : std::nullopt,
                          ModelPart::all, hub.repo());
  }
  std::string refusal(const std::string& name = "org/toy") {
    return test::message_of([&] { fetch(name); });
  }
  std::string on_hub(const std::string& name) {
    return read_text_file(hub_.root() / "models/org/toy/main" / name);
  }
  /** All files are on this machine as they are on the hub. */
  void expect_whole(const fs::path& snapshot) {
    for (const char* name :
         {"config.json", "README.md", "tokenizer.json", "model-00001-of-00002.safetensors",
          "model-00002-of-00002.safetensors", "additional_chat_templates/tools.jinja"})
      EXPECT_EQ(read_text_file(snapshot / name), on_hub(name)) << name;
  }
  size_t n_partial() {
    size_t n = 0;
    for (const auto& entry : fs::recursive_directory_iterator(cache_.path()))
      n += entry.path().extension() == ".incomplete";
    return n;
  }
  /** Requests for files, not for lists. */
  std::vector<nlohmann::json> file_requests(std::string_view origin = "cdn") {
    std::vector<nlohmann::json> found;
    for (const auto& request : hub_.requests())
      if (request["origin"] == origin &&
          request["path"].get<std::string>().find("/api/") == std::string::npos)
        found.push_back(request);
    return found;
  }

  Environment nothing_of_the_user{{{"http_proxy", ""}, {"HTTP_PROXY", ""}, {"ALL_PROXY", ""}}};
  FakeHub& hub_ = FakeHub::fresh();
  TempDir cache_;
  HubSettings settings_;
  IsCancelled is_cancelled_;
  std::string told_;
  std::pair<int64_t, int64_t> done_;
};

TEST(HubDigest, IsThatOfKnownBytes) {
  Digest sha256 = Digest::sha256();
  sha256.add("abc");
  EXPECT_EQ(sha256.hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Digest blob = Digest::git_blob(6);
  blob.add("hello\n");
  EXPECT_EQ(blob.hex(), "ce013625030ba8dba906f756967f9e9ca394464a");  // git hash-object
}

TEST_F(HubTest, FetchesWhatAModelIsMadeOfAndNoMore) {
  const fs::path snapshot = fetch();
  expect_whole(snapshot);
  for (const char* other : {"pytorch_model.bin", "original", "toy.gguf"})
    EXPECT_FALSE(fs::exists(snapshot / other)) << other;
  EXPECT_EQ(done_.first, done_.second);
  EXPECT_EQ(n_partial(), 0U);
}

TEST_F(HubTest, KeepsFilesWherePythonLooks) {
  const fs::path snapshot = fetch(), repo = cache_ / "models--org--toy";
  const std::string commit = snapshot.filename();
  EXPECT_EQ(snapshot, repo / "snapshots" / commit);
  EXPECT_EQ(read_text_file(repo / "refs/main"), commit);  // no newline
  const auto link = fs::read_symlink(snapshot / "additional_chat_templates/tools.jinja").string();
  EXPECT_THAT(link, testing::StartsWith("../../../blobs/"));
  const auto tree = nlohmann::json::parse(read_text_file(repo / "trees" / (commit + ".json")));
  EXPECT_EQ(tree["format_version"], 1);
  EXPECT_EQ(tree["files"].size(), 12U);  // all of them, fetched or not
  EXPECT_EQ(tree["files"]["tokenizer.json"]["lfs_size"], 5'000);
  EXPECT_TRUE(fs::exists(cache_ / "CACHEDIR.TAG"));
}

TEST_F(HubTest, FetchesNothingTwice) {
  fetch();
  hub_.forget_requests();
  fetch();
  EXPECT_EQ(hub_.requests().size(), 1U);  // which commit main is
  settings_.is_offline = true;
  hub_.forget_requests();
  expect_whole(fetch());
  EXPECT_TRUE(hub_.requests().empty());
}

TEST_F(HubTest, ACommitThatIsHereNeedsNoNetwork) {
  const std::string commit = fetch().filename();
  hub_.forget_requests();
  expect_whole(fetch("org/toy@" + commit));
  EXPECT_TRUE(hub_.requests().empty());
}

TEST_F(HubTest, TakesARevisionWithASlash) {
  hub_.put("models/org/toy/refs%2Fpr%2F1/config.json", R"({"model_type": "gpt2"})");
  hub_.put("models/org/toy/refs%2Fpr%2F1/model.safetensors", bytes_of(1'500, 9));
  const fs::path snapshot = fetch("org/toy@refs/pr/1");
  EXPECT_THAT(read_text_file(snapshot / "config.json"), HasSubstr("gpt2"));
  EXPECT_EQ(read_text_file(cache_ / "models--org--toy/refs/refs/pr/1"),
            snapshot.filename().string());
}

TEST_F(HubTest, ConfigAloneIsAFewBytes) {
  HubClient hub = client();
  hub.open();
  hub.fetch(files_of_model(hub.tree(), std::nullopt, ModelPart::config, hub.repo()));
  EXPECT_EQ(file_requests("cdn").size(), 0U);
  EXPECT_EQ(file_requests("hub").size(), 1U);
  EXPECT_FALSE(is_whole_model(hub.snapshot()));
  fetch();
  EXPECT_TRUE(is_whole_model(hub.snapshot()));
}

TEST_F(HubTest, WithoutLinksFilesLieInTheSnapshot) {
  settings_.makes_links = false;
  const fs::path snapshot = fetch();
  expect_whole(snapshot);
  EXPECT_FALSE(fs::is_symlink(snapshot / "config.json"));
  EXPECT_TRUE(fs::is_empty(cache_ / "models--org--toy/blobs"));
}

TEST_F(HubTest, SaysHowMuchItIs) {
  HubClient hub = client();
  hub.open();
  const auto files = wanted(hub);
  const FetchSize size = hub.size_of(files);
  EXPECT_GT(size.n_missing_bytes, 2 * static_cast<int64_t>(kShard_bytes));
  EXPECT_GT(size.n_bytes, size.n_missing_bytes);  // the index is here
  hub.fetch(files);
  EXPECT_EQ(hub.size_of(files).n_missing_bytes, 0);
}

TEST_F(HubTest, GoesOnWhereTheConnectionBroke) {
  hub_.set_rules({{{"in", "model-00001"}, {"origin", "cdn"}, {"cut", 100'000}, {"times", 2}}});
  expect_whole(fetch());
  std::vector<std::string> ranges;
  for (const auto& request : file_requests())
    if (request["path"].get<std::string>().ends_with("model-00001-of-00002.safetensors"))
      ranges.push_back(request["range"].is_null() ? "" : request["range"]);
  EXPECT_THAT(ranges, testing::ElementsAre("", "bytes=100000-", "bytes=200000-"));
}

TEST_F(HubTest, BeginsAnewWhereAServerKnowsNoRanges) {
  hub_.set_rules({{{"in", "model-00001"}, {"origin", "cdn"}, {"cut", 100'000}, {"times", 1}},
                  {{"in", "model-00001"}, {"origin", "cdn"}, {"no_range", true}}});
  expect_whole(fetch());
}

TEST_F(HubTest, AsksTheHubAgainWhereItsLinkHasEnded) {
  hub_.set_rules({{{"in", "model-00002"}, {"origin", "cdn"}, {"cut", 100'000}, {"times", 1}},
                  {{"in", "model-00002"}, {"origin", "cdn"}, {"status", 403}, {"times", 2}}});
  expect_whole(fetch());
}

TEST_F(HubTest, TakesWhatAnEarlierProcessLeft) {
  const std::string whole = on_hub("model-00001-of-00002.safetensors");
  Digest digest = Digest::sha256();
  digest.add(whole);
  const std::string partial = "models--org--toy/blobs/" + digest.hex() + ".ferry.incomplete";
  cache_.write(partial, whole.substr(0, 250'000));
  expect_whole(fetch());
  bool has_gone_on = false;
  for (const auto& request : file_requests())
    has_gone_on |= request["range"] == "bytes=250000-";
  EXPECT_TRUE(has_gone_on);
}

TEST_F(HubTest, WhatWasLeftAndIsWrongIsFetchedAnew) {
  const std::string whole = on_hub("model-00001-of-00002.safetensors");
  Digest digest = Digest::sha256();
  digest.add(whole);
  const std::string partial = "models--org--toy/blobs/" + digest.hex() + ".ferry.incomplete";
  std::string wrong = whole.substr(0, 250'000);
  wrong[7] ^= 1;
  cache_.write(partial, wrong);
  expect_whole(fetch());
  fs::remove_all(cache_.path() / "models--org--toy");
  cache_.write(partial, whole + "more");
  expect_whole(fetch());
}

TEST_F(HubTest, RefusesAFlippedByte) {
  hub_.set_rules({{{"in", "model-00002"}, {"origin", "cdn"}, {"flip", true}}});
  EXPECT_THAT(refusal(), AllOf(HasSubstr("'model-00002-of-00002.safetensors'"),
                               HasSubstr("is not the file that the hub promises")));
  for (const auto& entry : fs::recursive_directory_iterator(cache_ / "models--org--toy"))
    EXPECT_NE(entry.path().filename(), "model-00002-of-00002.safetensors");
  hub_.set_rules({{{"in", "config.json"}, {"flip", true}}});
  fs::remove_all(cache_ / "models--org--toy");
  EXPECT_THAT(refusal(), HasSubstr("is not the file that the hub promises"));
}

TEST_F(HubTest, RefusesMoreThanWasPromised) {
  hub_.set_rules({{{"in", "model-00002"},
                   {"origin", "cdn"},
                   {"status", 200},
                   {"body", std::string(kShard_bytes + 1, 'x')}}});
  EXPECT_THAT(refusal(), HasSubstr("it is longer than 300000 bytes"));
  Digest digest = Digest::sha256();
  digest.add(on_hub("model-00002-of-00002.safetensors"));
  EXPECT_FALSE(
      fs::exists(cache_ / ("models--org--toy/blobs/" + digest.hex() + ".ferry.incomplete")));
}

TEST_F(HubTest, TheTokenGoesToTheHubAlone) {
  settings_.token = "hf_secret";
  settings_.token_origin = "HF_TOKEN";
  fetch();
  size_t n_hub = 0, n_cdn = 0;
  for (const auto& request : hub_.requests()) {
    if (request["origin"] == "hub") {
      EXPECT_EQ(request["auth"], "Bearer hf_secret") << request.dump();
      ++n_hub;
    } else {
      EXPECT_TRUE(request["auth"].is_null()) << request.dump();
      ++n_cdn;
    }
    EXPECT_THAT(request["agent"].get<std::string>(), testing::StartsWith("ferry/"));
  }
  EXPECT_GT(n_hub, 0U);
  EXPECT_GT(n_cdn, 0U);
}

TEST_F(HubTest, TheTokenDoesNotFollowAListToAnotherServer) {
  settings_.token = "hf_secret";
  hub_.set_rules(
      {{{"in", "/tree/"},
        {"origin", "hub"},
        {"status", 200},
        {"headers",
         {{"Link", fmt::format("<{}/api/models/org/toy/tree/x>; rel=\"next\"", hub_.cdn_url())}}},
        {"body", "[]"}},
       {{"in", "/api/"}, {"origin", "cdn"}, {"status", 200}, {"body", "[]"}}});
  refusal();
  bool has_been_asked = false;
  for (const auto& request : hub_.requests())
    if (request["origin"] == "cdn") {
      has_been_asked = true;
      EXPECT_TRUE(request["auth"].is_null());
    }
  EXPECT_TRUE(has_been_asked);
}

TEST_F(HubTest, FollowsARepositoryThatWasRenamed) {
  hub_.set_rules({{{"in", "/api/models/old/toy/revision/main"},
                   {"status", 307},
                   {"headers", {{"Location", "/api/models/org/toy/revision/main"}}}},
                  {{"in", "/api/models/old/toy/tree"},
                   {"status", 301},
                   {"headers", {{"Location", "/api/models/org/toy/tree/main"}}}}});
  settings_.token = "hf_secret";
  HubClient hub = client("old/toy");
  hub.open();
  EXPECT_NE(hub.tree().find("config.json"), nullptr);
  for (const auto& request : hub_.requests())
    EXPECT_EQ(request["auth"], "Bearer hf_secret");
}

TEST_F(HubTest, EndsWhereAServerSendsOnForEver) {
  hub_.set_rules(
      {{{"in", "/api/"}, {"status", 302}, {"headers", {{"Location", "/api/models/x/y"}}}}});
  EXPECT_THAT(refusal(), HasSubstr("sends on without end"));
}

TEST_F(HubTest, ASecondOfTwoRevisionsSharesBlobs) {
  fetch();
  fs::create_directories(hub_.root() / "models/org/toy/v2");
  for (const auto& entry : fs::recursive_directory_iterator(hub_.root() / "models/org/toy/main"))
    if (entry.is_regular_file()) {
      const auto to = hub_.root() / "models/org/toy/v2" /
                      entry.path().lexically_relative(hub_.root() / "models/org/toy/main");
      fs::create_directories(to.parent_path());
      fs::copy_file(entry.path(), to);
    }
  hub_.put("models/org/toy/v2/README.md", "# Toy 2");
  hub_.forget_requests();
  fetch("org/toy@v2");
  EXPECT_EQ(file_requests("cdn").size(), 0U);  // no weights
  EXPECT_EQ(file_requests("hub").size(), 1U);  // the page
}

/** An answer of the hub, and what Ferry says of it. */
struct Refusal {
  std::string name;
  nlohmann::json rule;
  std::vector<std::string> says;
  bool has_token = false;
};

class HubRefusals : public HubTest, public testing::WithParamInterface<Refusal> {};

TEST_P(HubRefusals, AreSaidInWords) {
  const Refusal& refusal_of = GetParam();
  if (refusal_of.has_token) {
    settings_.token = "hf_x";
    settings_.token_origin = "HF_TOKEN";
  }
  hub_.set_rules(nlohmann::json::array({refusal_of.rule}));
  const std::string message = refusal();
  for (const std::string& words : refusal_of.says)
    EXPECT_THAT(message, HasSubstr(words));
  EXPECT_THAT(message, Not(HasSubstr("hf_x")));
}

nlohmann::json answer_of(const std::string& in,
                         int status,
                         const std::string& code,
                         const std::string& text) {
  return {{"in", in},
          {"origin", "hub"},
          {"status", status},
          {"headers", {{"X-Error-Code", code}, {"X-Error-Message", text}, {"X-Request-Id", "id7"}}},
          {"body", "{}"}};
}

INSTANTIATE_TEST_SUITE_P(
    Hub,
    HubRefusals,
    testing::Values(
        Refusal{"not_there",
                answer_of("/api/", 401, "RepoNotFound", "Repository not found"),
                {"no model 'org/toy' at", "or a private one", "HF_TOKEN"}},
        Refusal{"no_code", answer_of("/api/", 401, "", ""), {"no model 'org/toy' at"}},
        Refusal{"not_seen",
                answer_of("/api/", 404, "RepoNotFound", "Repository not found"),
                {"the token of HF_TOKEN may not see"},
                true},
        Refusal{"gated",
                answer_of("/resolve/", 401, "GatedRepo", "Access is restricted. Visit X"),
                {"is gated", "Visit X", "accept its licence at", "hf auth login"}},
        Refusal{"not_on_the_list",
                answer_of("/resolve/", 403, "GatedRepo", "not in the list"),
                {"is gated", "ask for access at"},
                true},
        Refusal{"revision",
                answer_of("/api/", 404, "RevisionNotFound", "Invalid rev id"),
                {"has no revision 'main'"}},
        Refusal{"entry",
                answer_of("tokenizer.json", 404, "EntryNotFound", "Entry not found"),
                {"'org/toy' has no file 'tokenizer.json'"}},
        Refusal{"bad_token",
                answer_of("/api/", 401, "", "Invalid credentials in Authorization header"),
                {"does not know the token of HF_TOKEN", "public repositories need none"},
                true},
        Refusal{"disabled",
                answer_of("/api/", 403, "", "Access to this resource is disabled."),
                {"has disabled the model 'org/toy'"}},
        Refusal{"forbidden",
                answer_of("/api/", 403, "", "no rights"),
                {"refuses the model 'org/toy' (no rights)", "id7", "the right to read"},
                true},
        Refusal{"limited",
                answer_of("/api/", 429, "", "slow down"),
                {"asked too often (slow down)", "accounts may ask more often"}},
        Refusal{"limited_account",
                answer_of("/api/", 429, "", ""),
                {"asked too often", "try again in five minutes"},
                true},
        Refusal{"timeout", answer_of("/api/", 408, "", ""), {"answers 408", "try again later"}},
        Refusal{"fault_500", answer_of("/api/", 500, "", "oops"), {"answers 500", "(oops)", "id7"}},
        Refusal{"fault_502", answer_of("/api/", 502, "", ""), {"answers 502"}},
        Refusal{"fault_503", answer_of("/api/", 503, "", ""), {"answers 503"}},
        Refusal{"fault_504", answer_of("/api/", 504, "", ""), {"answers 504"}},
        Refusal{"list_of_errors",
                {{"in", "/api/"}, {"status", 403}, {"body", R"({"error": ["one", "two"]})"}},
                {"(one; two)"}},
        Refusal{
            "errors_by_message",
            {{"in", "/api/"}, {"status", 403}, {"body", R"({"errors": [{"message": "three"}]})"}},
            {"(three)"}},
        Refusal{"login_page",
                {{"in", "/api/"}, {"status", 200}, {"body", "<html>Log in</html>"}},
                {"does not answer as a hub does", "HF_ENDPOINT"}},
        Refusal{"no_commit",
                {{"in", "/revision/"}, {"status", 200}, {"body", R"({"sha": "x"})"}},
                {"it names no commit"}},
        Refusal{"no_list",
                {{"in", "/tree/"}, {"status", 200}, {"body", "{}"}},
                {"it gives no list of files"}}),
    [](const auto& info) { return info.param.name; });

TEST_F(HubTest, WaitsAndAsksAgainWhereThatHelps) {
  for (const int status : {408, 429, 500, 502, 503, 504}) {
    hub_.set_rules(
        {{{"in", "/api/"}, {"status", status}, {"times", 2}, {"body", std::to_string(status)}}});
    HubClient hub = client();
    EXPECT_NO_THROW(hub.open()) << status;
  }
}

TEST_F(HubTest, WaitsAsLongAsTheHubSays) {
  hub_.set_rules({{{"in", "/api/"},
                   {"status", 429},
                   {"times", 1},
                   {"headers", {{"RateLimit", R"("api";r=0;t=0)"}}}}});
  const auto begin = std::chrono::steady_clock::now();
  HubClient hub = client();
  hub.open();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));  // t + 1
}

TEST_F(HubTest, ShowsTheHubsWarningOnce) {
  hub_.put("models/org/toy/main/more/a", "a");
  hub_.set_rules({{{"in", "/revision/"},
                   {"status", 200},
                   {"headers", {{"X-HF-Warning", "Topic; it moves soon"}}},
                   {"body", nlohmann::json{{"sha", std::string(40, 'a')}}.dump()}},
                  {{"in", "/tree/"},
                   {"status", 200},
                   {"headers", {{"X-HF-Warning", "Topic; it moves soon"}}},
                   {"body", "[]"}}});
  HubClient hub = client();
  hub.open();
  EXPECT_EQ(told_, "the hub says: Topic; it moves soon\n");
}

TEST_F(HubTest, SaysWhereThereIsNoNetwork) {
  settings_.endpoint = "http://127.0.0.1:9";
  EXPECT_THAT(refusal(), AllOf(HasSubstr("http://127.0.0.1:9 could not be asked"),
                               HasSubstr("HF_HUB_OFFLINE=1")));
}

TEST_F(HubTest, OfflineSaysWhatIsMissing) {
  settings_.is_offline = true;
  EXPECT_THAT(refusal(), AllOf(HasSubstr("'org/toy' is not in"), HasSubstr("HF_HUB_OFFLINE")));
  settings_.is_offline = false;
  HubClient hub = client();
  hub.open();
  hub.fetch(files_of_model(hub.tree(), std::nullopt, ModelPart::config, hub.repo()));
  settings_.is_offline = true;
  EXPECT_THAT(refusal(), HasSubstr("only a part is in"));
  EXPECT_TRUE(file_requests("cdn").empty());
}

TEST_F(HubTest, RefusesPathsThatLeaveTheRepository) {
  for (const std::string path : {"../x", "a/../../x", "/etc/x", "C:/x", "a\\..\\x", "a//b", "."}) {
    hub_.set_rules(
        {{{"in", "/tree/"},
          {"status", 200},
          {"body",
           nlohmann::json{
               {{"type", "file"}, {"path", path}, {"size", 1}, {"oid", std::string(40, 'a')}}}
               .dump()}}});
    EXPECT_THAT(refusal(), HasSubstr("a path below the repository")) << path;
  }
}

TEST_F(HubTest, RefusesAFileThatNoHubServes) {
  hub_.set_rules(
      {{{"in", "/tree/"},
        {"status", 200},
        {"body",
         nlohmann::json{
             {{"type", "file"},
              {"path", "config.json"},
              {"size", 2},
              {"oid", std::string(40, 'a')}},
             {{"type", "file"},
              {"path", "model.safetensors"},
              {"size", 60'000'000'000},
              {"oid", std::string(40, 'b')},
              {"lfs",
               {{"oid", std::string(64, 'c')}, {"size", 60'000'000'000}, {"pointerSize", 134}}}}}
             .dump()}}});
  EXPECT_THAT(refusal(), HasSubstr("no file above 50 GB"));
  EXPECT_TRUE(file_requests("cdn").empty());
}

TEST_F(HubTest, RefusesWhatTheDiskHasNoRoomFor) {
  nlohmann::json rows = {
      {{"type", "file"}, {"path", "config.json"}, {"size", 2}, {"oid", std::string(40, 'a')}}};
  for (int i = 0; i < 9'000; ++i)  // 360 TB
    rows.push_back({{"type", "file"},
                    {"path", fmt::format("README{}.md", i)},
                    {"size", 1},
                    {"oid", fmt::format("{:040x}", i)}});
  rows.push_back(
      {{"type", "file"},
       {"path", "model.safetensors"},
       {"size", 49'000'000'000},
       {"oid", std::string(40, 'b')},
       {"lfs", {{"oid", std::string(64, 'c')}, {"size", 49'000'000'000}, {"pointerSize", 9}}}});
  hub_.set_rules({{{"in", "/tree/"}, {"status", 200}, {"body", rows.dump()}}});
  HubClient hub = client();
  hub.open();
  std::vector<RemoteFile> files;
  for (int i = 0; i < 9'000; ++i) {  // many shards of that size
    RemoteFile file = *hub.tree().find("model.safetensors");
    file.sha256 = fmt::format("{:064x}", i);
    file.path = fmt::format("{}.safetensors", i);
    files.push_back(file);
  }
  EXPECT_THAT(test::message_of([&] { hub.fetch(files); }), HasSubstr("free some space"));
  EXPECT_TRUE(file_requests("cdn").empty());
  EXPECT_FALSE(fs::exists(cache_ / "models--org--toy/blobs"));
}

TEST_F(HubTest, SaysWhatARepositoryLacks) {
  hub_.put("models/org/gguf/main/config.json", "{}");
  hub_.put("models/org/gguf/main/x.gguf", "x");
  EXPECT_THAT(refusal("org/gguf"), HasSubstr("GGUF files are not fetched by name"));
  hub_.put("models/org/lora/main/adapter_config.json", "{}");
  hub_.put("models/org/lora/main/adapter_model.bin", "x");
  EXPECT_THAT(refusal("org/lora"), HasSubstr("is an adapter without adapter_model.safetensors"));
  hub_.put("models/org/diffusers/main/model_index.json", "{}");
  EXPECT_THAT(refusal("org/diffusers"), HasSubstr("pipeline of diffusers"));
  hub_.put("models/org/half/main/config.json", "{}");
  hub_.put("models/org/half/main/model.safetensors.index.json", R"({"weight_map": {"a": "b"}})");
  EXPECT_THAT(refusal("org/half"),
              HasSubstr("has no file 'b', which model.safetensors.index.json"));
}

TEST_F(HubTest, TakesTorchFilesOnlyWithoutSafetensors) {
  hub_.put("models/org/old/main/config.json", "{}");
  hub_.put("models/org/old/main/pytorch_model.bin", bytes_of(3'000, 1));
  EXPECT_TRUE(fs::exists(fetch("org/old") / "pytorch_model.bin"));
}

TEST_F(HubTest, WaitsForWhoFetchesTheSameFile) {
  HubClient hub = client();
  hub.open();
  const RemoteFile file = *hub.tree().find("tokenizer.json");
  hub.cache().create();
  const auto path = hub.cache().lock_file(file.etag());
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0664);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  std::atomic<bool> is_done = false;
  std::thread fetching([&] {
    hub.fetch({file});
    is_done = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_FALSE(is_done);
  EXPECT_TRUE(file_requests("cdn").empty());
  ::close(fd);
  fetching.join();
  EXPECT_EQ(read_text_file(hub.snapshot() / "tokenizer.json"), on_hub("tokenizer.json"));
  EXPECT_TRUE(fs::exists(path));  // left behind, as other tools do
}

TEST_F(HubTest, EndsWhenTheUserHasEnough) {
  hub_.set_rules({{{"in", "model-0000"}, {"origin", "cdn"}, {"ms_per_64k", 50}}});
  std::atomic<int64_t> n_asked = 0;
  is_cancelled_ = [&] { return done_.first > 100'000; };
  EXPECT_THROW(fetch(), Cancelled);
  EXPECT_GT(n_partial(), 0U);
  is_cancelled_ = nullptr;
  hub_.set_rules(nlohmann::json::array());
  expect_whole(fetch());
  EXPECT_EQ(n_partial(), 0U);
}

/** The same files under the same names, links as links. */
std::string differences(const fs::path& a, const fs::path& b) {
  std::string output;
  const std::string command =
      fmt::format("diff -r --no-dereference '{}' '{}' 2>&1", a.string(), b.string());
  FILE* const pipe = ::popen(command.c_str(), "r");
  for (int c = 0; (c = std::fgetc(pipe)) != EOF;)
    output += static_cast<char>(c);
  ::pclose(pipe);
  return output;
}

TEST_F(HubTest, KilledAtManyMomentsItEndsTheSame) {
  const TempDir unhurt;
  settings_.cache = unhurt.path();
  fetch();
  settings_.cache = cache_.path();
  hub_.set_rules({{{"in", "model-0000"}, {"origin", "cdn"}, {"ms_per_64k", 20}}});
  int n_killed = 0;
  for (int moment = 0; moment < 20; ++moment) {
    if (moment == 10) fs::remove_all(cache_ / "models--org--toy");  // from its beginning again
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        fetch();
      } catch (...) {
        ::_exit(1);
      }
      ::_exit(0);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(8 * moment));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    n_killed += WIFSIGNALED(status);
  }
  EXPECT_GT(n_killed, 0);
  expect_whole(fetch());
  EXPECT_EQ(differences(unhurt / "models--org--toy", cache_ / "models--org--toy"), "");
}

TEST_F(HubTest, RemovesWhatKilledProcessesLeft) {
  const TempDir unhurt;
  settings_.cache = unhurt.path();
  fetch();
  settings_.cache = cache_.path();
  const fs::path repo = cache_ / "models--org--toy";
  const auto leave = [](const fs::path& file) {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << "half";
  };
  leave(cache_ / ".CACHEDIR.TAG.tmp-77-0");
  leave(repo / "refs/.main.tmp-77-0");
  for (const auto& tree : fs::directory_iterator(unhurt / "models--org--toy/trees"))
    leave(repo / "trees" / fmt::format(".{}.tmp-77-3", tree.path().filename().string()));
  for (const auto& commit : fs::directory_iterator(unhurt / "models--org--toy/snapshots")) {
    const fs::path snapshot = repo / "snapshots" / commit.path().filename();
    fs::create_directories(snapshot);
    fs::create_symlink("nowhere", snapshot / ".config.json.tmp-77-0");
  }
  fs::create_directories(repo / "blobs");
  fs::create_symlink("nowhere", repo / "blobs/.link.tmp-77-0");
  expect_whole(fetch());
  EXPECT_EQ(differences(unhurt / "models--org--toy", repo), "");
  EXPECT_FALSE(fs::exists(cache_ / ".CACHEDIR.TAG.tmp-77-0"));
}

/** huggingface_hub itself, where the tests' Python has it. */
class PythonClient : public HubTest {
 protected:
  void SetUp() override {
    if (run("import huggingface_hub") != 0)
      GTEST_SKIP()
          << "no Python with huggingface_hub (FERRY_TEST_PYTHON): run scripts/setup --tests";
  }
  int run(const std::string& program) {
    const char* const python = std::getenv("FERRY_TEST_PYTHON");
    cache_.write("../" + cache_.path().filename().string() + ".py", program);
    const std::string script = cache_.path().string() + ".py";
    const int code = std::system(
        fmt::format("HF_ENDPOINT={} HF_HUB_CACHE='{}' HF_HOME='{}' HF_TOKEN= "
                    "HF_HUB_DISABLE_XET=1 HF_HUB_DISABLE_TELEMETRY=1 "
                    "HF_HUB_DISABLE_UPDATE_CHECK=1 HF_HUB_DISABLE_PROGRESS_BARS=1 {} "
                    "'{}' >'{}.out' 2>&1",
                    hub_.url(), of_python_.empty() ? cache_.path().string() : of_python_.string(),
                    (cache_ / "home").string(), python ? python : "python3", script, script)
            .c_str());
    if (code != 0 && program.find("import huggingface_hub") != 0)
      ADD_FAILURE() << read_text_file(script + ".out");
    fs::remove(script);
    fs::remove(script + ".out");
    return code;
  }
  static constexpr const char* kSnapshot =
      "from huggingface_hub import snapshot_download\n"
      "snapshot_download('org/toy', allow_patterns=['*.json', 'model-*', 'README.md', 'LICENSE', "
      "'additional_chat_templates/*'])\n";

  fs::path of_python_;
};

TEST_F(PythonClient, MakesTheSameCache) {
  const TempDir other;
  of_python_ = other.path();
  ASSERT_EQ(run(kSnapshot), 0);
  fetch();
  EXPECT_EQ(differences(other / "models--org--toy", cache_ / "models--org--toy"), "");
  EXPECT_EQ(differences(other / "CACHEDIR.TAG", cache_ / "CACHEDIR.TAG"), "");
}

TEST_F(PythonClient, TakesWhatFerryHasFetched) {
  fetch();
  hub_.forget_requests();
  ASSERT_EQ(run(kSnapshot), 0);
  EXPECT_TRUE(file_requests("cdn").empty());
  ASSERT_EQ(run("import os\nos.environ['HF_HUB_OFFLINE'] = '1'\n" + std::string(kSnapshot)), 0);
  ASSERT_EQ(run("from huggingface_hub import scan_cache_dir\n"
                "info = scan_cache_dir()\n"
                "assert not info.warnings, info.warnings\n"
                "assert [r.repo_id for r in info.repos] == ['org/toy']\n"),
            0);
}

TEST_F(PythonClient, LeavesWhatFerryTakes) {
  ASSERT_EQ(run(kSnapshot), 0);
  hub_.forget_requests();
  expect_whole(fetch());
  EXPECT_TRUE(file_requests("cdn").empty());
  EXPECT_TRUE(file_requests("hub").empty());
}

TEST_F(PythonClient, NeedNotAskForWhatIsNotThere) {
  HubClient hub = client();
  hub.open();
  hub.fetch(wanted(hub));
  for (const std::string& path : absent_files_of_model(hub.tree()))
    hub.cache().write_absent(hub.tree().commit, path);
  hub_.forget_requests();
  ASSERT_EQ(run("from huggingface_hub import try_to_load_from_cache, _CACHED_NO_EXIST\n"
                "def look(name): return try_to_load_from_cache('org/toy', name)\n"
                "for name in ('generation_config.json', 'model.safetensors', 'vocab.txt'):\n"
                "    assert look(name) is _CACHED_NO_EXIST, name\n"
                "assert look('preprocessor_config.json') is None\n"
                "for name in ('config.json', 'tokenizer.json', 'model.safetensors.index.json'):\n"
                "    assert isinstance(look(name), str), name\n"
                "from huggingface_hub import scan_cache_dir\n"
                "assert not scan_cache_dir().warnings\n"),
            0);
  EXPECT_TRUE(hub_.requests().empty());
}

TEST_F(PythonClient, BringsTheOtherHalf) {
  ASSERT_EQ(run("from huggingface_hub import hf_hub_download\n"
                "hf_hub_download('org/toy', 'model-00001-of-00002.safetensors')\n"
                "hf_hub_download('org/toy', 'config.json')\n"),
            0);
  hub_.forget_requests();
  expect_whole(fetch());
  for (const auto& request : file_requests())
    EXPECT_FALSE(request["path"].get<std::string>().ends_with("model-00001-of-00002.safetensors"));
  ASSERT_EQ(run(kSnapshot), 0);
}

TEST(HubNames, AreJudged) {
  for (const char* name : {"gpt2", "org/name", "Qwen/Qwen2.5-0.5B", "a_b/c.d"})
    EXPECT_TRUE(is_repo_id(name)) << name;
  for (const char* name : {"", "/", "a/", "/a", "a/b/c", "../x", "a/..", "-a/b", "a/b.", "a--b",
                           "a b", "./x", "a/b\n", "~/x"})
    EXPECT_FALSE(is_repo_id(name)) << name;
  EXPECT_EQ(parse_repo_name(RepoKind::model, "a/b")->revision, "main");
  EXPECT_EQ(parse_repo_name(RepoKind::model, "a/b@refs/pr/1")->revision, "refs/pr/1");
  EXPECT_FALSE(parse_repo_name(RepoKind::model, "a/b@../../x"));
  EXPECT_FALSE(parse_repo_name(RepoKind::model, "a/b@"));
  EXPECT_EQ(encoded("refs/pr/1"), "refs%2Fpr%2F1");
  EXPECT_EQ(encoded("a b/c", true), "a%20b/c");
}

TEST(HubSettings, AreThoseOfTheEnvironment) {
  const TempDir home;
  const Environment environment({{"HOME", home.path().string()},
                                 {"XDG_CACHE_HOME", ""},
                                 {"HF_HOME", ""},
                                 {"HF_HUB_CACHE", ""},
                                 {"HUGGINGFACE_HUB_CACHE", ""},
                                 {"HF_ENDPOINT", ""},
                                 {"HF_TOKEN", ""},
                                 {"HUGGING_FACE_HUB_TOKEN", ""},
                                 {"HF_TOKEN_PATH", ""},
                                 {"HF_HUB_OFFLINE", ""},
                                 {"TRANSFORMERS_OFFLINE", ""},
                                 {"HF_HUB_DISABLE_IMPLICIT_TOKEN", ""}});
  EXPECT_EQ(settings_of_environment().cache, home / ".cache/huggingface/hub");
  EXPECT_EQ(settings_of_environment().endpoint, "https://huggingface.co");
  EXPECT_EQ(settings_of_environment().token, "");
  home.write(".cache/huggingface/token", " hf_file\n");
  EXPECT_EQ(settings_of_environment().token, "hf_file");
  setenv("HF_TOKEN", "hf_variable", 1);
  EXPECT_EQ(settings_of_environment().token, "hf_variable");
  EXPECT_EQ(settings_of_environment().token_origin, "HF_TOKEN");
  setenv("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1", 1);
  EXPECT_EQ(settings_of_environment().token, "");
  unsetenv("HF_HUB_DISABLE_IMPLICIT_TOKEN");
  setenv("HF_TOKEN", "two\nlines: x", 1);
  EXPECT_THAT(test::message_of([] { settings_of_environment(); }), HasSubstr("HF_TOKEN"));
  setenv("HF_TOKEN", "hf_x", 1);
  setenv("HF_HOME", "~/hf", 1);
  EXPECT_EQ(settings_of_environment().cache, home / "hf/hub");
  setenv("HF_HUB_CACHE", "$HOME/${HF_NOT_SET}/c", 1);
  EXPECT_EQ(settings_of_environment().cache, home.path().string() + "/${HF_NOT_SET}/c");
  setenv("HF_ENDPOINT", "http://mirror/", 1);
  EXPECT_EQ(settings_of_environment().endpoint, "http://mirror");
  setenv("HF_ENDPOINT", "mirror", 1);
  EXPECT_THAT(test::message_of([] { settings_of_environment(); }), HasSubstr("HF_ENDPOINT"));
  setenv("HF_ENDPOINT", "", 1);
  for (const char* on : {"1", "on", "Yes", "TRUE"}) {
    setenv("HF_HUB_OFFLINE", on, 1);
    EXPECT_TRUE(settings_of_environment().is_offline) << on;
  }
  setenv("HF_HUB_OFFLINE", "0", 1);
  EXPECT_FALSE(settings_of_environment().is_offline);
}

}  // namespace
}  // namespace ferry::hub
