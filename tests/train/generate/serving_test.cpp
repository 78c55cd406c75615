// `ferry serve` by the whole program, asked as clients of OpenAI's API ask: answers are those of
// `ferry generate` for the text that the template makes of the messages.

#include <httplib.h>

#include "tests/train/run_test.h"

namespace ferry::test {
namespace {

using nlohmann::json;

class Serving : public RunTest {
 protected:
  static void SetUpTestSuite() {
    RunTest::SetUpTestSuite();
    write_tiny_chat_model(root_ / "chat");
  }
  void TearDown() override {
    if (server_ <= 0) return;
    ::kill(server_, SIGINT);
    EXPECT_EQ(await_end(server_, "serve_").code(), 0) << text_of(root_ / "serve_err");
  }
  /** Starts a server at a free port, and waits until it listens. */
  void start_server(const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"serve", "chat", "--port=0", "--device=cpu"};
    words.insert(words.end(), more.begin(), more.end());
    fs::remove(root_ / "serve_err");
    server_ = start(words, "serve_");
    const std::string mark = "answering at http://localhost:";
    std::string said;
    wait_until([&] {
      said = text_of(root_ / "serve_err");
      return said.find("/v1; ") != said.npos || has_ended_within(server_, 0ms);
    });
    const size_t at = said.find(mark);
    ASSERT_NE(at, said.npos) << said;
    port_ = std::stoi(said.substr(at + mark.size()));
  }
  httplib::Client client() const {
    httplib::Client client("localhost", port_);
    client.set_read_timeout(60);
    return client;
  }
  httplib::Response post(const std::string& path, const json& body, httplib::Headers headers = {}) {
    const std::string text = body.is_string() ? body.get<std::string>() : body.dump();
    const auto result = client().Post(path, headers, text, "application/json");
    EXPECT_TRUE(result) << httplib::to_string(result.error());
    return result ? *result : httplib::Response();
  }
  void expect_refused(const std::string& path,
                      const json& body,
                      int status,
                      const std::string& type,
                      const std::string& says) {
    const auto response = post(path, body);
    EXPECT_EQ(response.status, status) << response.body;
    const json error = json::parse(response.body).at("error");
    EXPECT_EQ(error["type"], type);
    EXPECT_NE(error["message"].get<std::string>().find(says), std::string::npos) << error;
  }
  static std::string generated(const std::string& prompt) {
    EXPECT_EQ(
        ferry({"generate", "--model=chat", "--json", "--device=cpu", "--max-new-tokens=5", prompt})
            .code(),
        0)
        << text_of(root_ / "err");
    return json::parse(text_of(root_ / "out"))["text"];
  }
  static json turn(const char* role, const std::string& content) {
    return {{"role", role}, {"content", content}};
  }

  pid_t server_ = 0;
  int port_ = 0;
};

constexpr const char* kChats = "/v1/chat/completions";

TEST_F(Serving, ALineOfJsonTellsProgramsWhereItListens) {
  start_server({"--json"});
  std::string line;
  wait_until([&] { return (line = text_of(root_ / "serve_out")).ends_with('\n'); });
  EXPECT_EQ(json::parse(line), (json{{"host", "127.0.0.1"}, {"port", port_}}));
}

TEST_F(Serving, AnswersAsTheModelDoes) {
  start_server();
  const std::string first = generated("[BOS] the red car [EOS]is");
  const std::string second =
      generated("a very[BOS] the red car [EOS]is " + first + " [EOS][BOS] a bird [EOS]is");
  const json question = turn("user", "the red car");
  json body = {{"messages", {question}}, {"max_tokens", 5}, {"temperature", 0}, {"user", "me"}};
  const json answer = json::parse(post(kChats, body).body);
  EXPECT_EQ(answer["object"], "chat.completion");
  EXPECT_EQ(answer["choices"][0]["message"]["content"], first) << answer;
  EXPECT_EQ(answer["choices"][0]["message"]["role"], "assistant");
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 6);
  EXPECT_EQ(answer["usage"]["completion_tokens"], 5);

  body["messages"] = {turn("system", "very"),
                      question,
                      turn("assistant", first),
                      {{"role", "user"}, {"content", {{{"type", "text"}, {"text", "a bird"}}}}}};
  body["max_completion_tokens"] = 5;
  body.erase("max_tokens");
  EXPECT_EQ(json::parse(post(kChats, body).body)["choices"][0]["message"]["content"], second);

  // The same as a stream.
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  const auto response = post(kChats, body);
  EXPECT_EQ(response.get_header_value("Content-Type"), "text/event-stream");
  std::istringstream lines(response.body);
  std::vector<json> events;
  std::string line, last;
  while (std::getline(lines, line)) {
    if (line.empty()) continue;
    ASSERT_TRUE(line.starts_with("data: ")) << line;
    last = line.substr(6);
    if (last != "[DONE]") events.push_back(json::parse(last));
  }
  EXPECT_EQ(last, "[DONE]");
  ASSERT_GE(events.size(), 3u);
  EXPECT_EQ(events.front()["choices"][0]["delta"]["role"], "assistant");
  std::string text;
  for (size_t i = 1; i + 2 < events.size(); ++i)
    text += events[i]["choices"][0]["delta"]["content"];
  EXPECT_EQ(text, second);
  EXPECT_EQ(events[events.size() - 2]["choices"][0]["finish_reason"], "length");
  EXPECT_TRUE(events.back()["choices"].empty());
  EXPECT_EQ(events.back()["usage"]["completion_tokens"], 5);

  const json plain = json::parse(
      post("/v1/completions", {{"prompt", "[BOS] the red car [EOS]is"}, {"max_tokens", 5}}).body);
  EXPECT_EQ(plain["object"], "text_completion");
  EXPECT_EQ(plain["choices"][0]["text"], first);
  // Seeds repeat what is drawn.
  const json drawn = {{"messages", {question}}, {"max_tokens", 8}, {"temperature", 2}, {"seed", 7}};
  EXPECT_EQ(json::parse(post(kChats, drawn).body)["choices"],
            json::parse(post(kChats, drawn).body)["choices"]);
  // Without max_tokens the context alone ends it.
  const json whole =
      json::parse(post(kChats, {{"messages", {question}}, {"logit_bias", nullptr}}).body);
  EXPECT_GT(whole["usage"]["completion_tokens"], 5);
}

TEST_F(Serving, AnswersSeveralAtOnce) {
  start_server();
  const std::string text = generated("[BOS] the red car [EOS]is");
  std::vector<std::thread> threads;
  std::vector<std::string> texts(4);
  for (std::string& its : texts)
    threads.emplace_back([&] {
      const auto result = client().Post(
          kChats, json{{"messages", {turn("user", "the red car")}}, {"max_tokens", 5}}.dump(),
          "application/json");
      if (result) its = json::parse(result->body)["choices"][0]["message"]["content"];
    });
  for (std::thread& thread : threads)
    thread.join();
  for (const std::string& its : texts)
    EXPECT_EQ(its, text);
}

TEST_F(Serving, SaysWhatIsWrong) {
  start_server();
  constexpr const char* kInvalid = "invalid_request_error";
  const json messages = {turn("user", "red")};
  expect_refused(kChats, "{", 400, kInvalid, "no JSON");
  expect_refused(kChats, {{"prompt", "red"}}, 400, kInvalid, "messages");
  expect_refused(kChats, {{"messages", {turn("user", "red"), turn("assistant", "car")}}}, 400,
                 kInvalid, "last turn is an answer");
  expect_refused(kChats, {{"messages", {turn("wizard", "red")}}}, 400, kInvalid, "'wizard'");
  expect_refused(kChats, {{"messages", messages}, {"n", 2}}, 400, kInvalid, "n = 2");
  expect_refused(kChats, {{"messages", messages}, {"presence_penalty", 0.5}}, 400, kInvalid,
                 "presence_penalty");
  expect_refused(kChats, {{"messages", messages}, {"temperature", "hot"}}, 400, kInvalid,
                 "temperature");
  expect_refused(kChats, {{"messages", messages}, {"response_format", {{"type", "json_schema"}}}},
                 400, kInvalid, "response_format");
  std::string many;
  for (int i = 0; i < 80; ++i)
    many += "red ";
  expect_refused(kChats, {{"messages", {turn("user", many)}}}, 400, "exceed_context_size_error",
                 "the context is 64");
  expect_refused("/v1/embeddings", {{"input", "red"}}, 501, "not_supported_error", "embeddings");
  expect_refused("/v1/nothing", messages, 404, "not_found_error", "/v1/nothing");
  auto http = client();
  EXPECT_EQ(http.Get("/health")->body, R"({"status":"ok"})");
  EXPECT_EQ(json::parse(http.Get("/v1/models")->body)["data"][0]["id"], "chat");
  EXPECT_EQ(http.Get("/v1/models", {{"Host", "evil.example"}})->status, 403);
  EXPECT_EQ(http.Get("/v1/models")->get_header_value("Access-Control-Allow-Origin"), "");
  // A second server at the same port.
  const Outcome second =
      ferry({"serve", "chat", "--device=cpu", "--port=" + std::to_string(port_)});
  EXPECT_EQ(second.code(), 5) << second.err;
  EXPECT_NE(second.err.find("--port takes another"), std::string::npos) << second.err;
}

TEST_F(Serving, AsksForItsKey) {
  start_server({"--api-key=secret", "--allow-origin=https://a.example"});
  const json body = {{"messages", {turn("user", "red")}}, {"max_tokens", 2}};
  expect_refused(kChats, body, 401, "authentication_error", "API key");
  EXPECT_EQ(post(kChats, body, {{"Authorization", "Bearer secre"}}).status, 401);
  const auto response = post(kChats, body, {{"Authorization", "Bearer secret"}});
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.get_header_value("Access-Control-Allow-Origin"), "https://a.example");
  EXPECT_EQ(client().Get("/health")->status, 200);
}

}  // namespace
}  // namespace ferry::test
