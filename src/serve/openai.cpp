#include "src/serve/openai.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/json/json_reader.h"
#include "src/chat/rows.h"

namespace ferry::serve {
namespace {

using chat::Json;

[[noreturn]] void refuse(std::string message) {
  throw ApiError{.message = std::move(message)};
}

const Json* find(const Json& object, std::string_view key) {
  const auto found = object.find(std::string(key));
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::optional<double> number(const Json& body, std::string_view key, double least, double most) {
  const Json* value = find(body, key);
  if (!value) return std::nullopt;
  if (!value->is_number() || !(*value >= least && *value <= most))
    refuse(
        fmt::format("{} is {}, expected a number from {} to {}", key, value->dump(), least, most));
  return value->get<double>();
}

std::optional<int64_t> integer(const Json& body, std::string_view key) {
  const Json* value = find(body, key);
  if (!value) return std::nullopt;
  if (!value->is_number_integer() || *value < -1 || *value > std::numeric_limits<int32_t>::max())
    refuse(fmt::format("{} is {}, expected a whole number", key, value->dump()));
  return value->get<int64_t>();
}

/** Fields that would change the text, with the value that leaves it. */
void check_others(const Json& body) {
  constexpr std::pair<std::string_view, double> kNeutral[] = {{"n", 1},
                                                              {"best_of", 1},
                                                              {"presence_penalty", 0},
                                                              {"frequency_penalty", 0},
                                                              {"repetition_penalty", 1},
                                                              {"min_p", 0},
                                                              {"typical_p", 1}};
  for (const auto& [key, neutral] : kNeutral)
    if (const Json* value = find(body, key); value && (!value->is_number() || *value != neutral))
      refuse(fmt::format("{} = {} is not there: leave it out", key, value->dump()));
  if (const Json* bias = find(body, "logit_bias"); bias && !bias->empty())
    refuse("logit_bias is not there: leave it out");
  if (const Json* form = find(body, "response_format"); form && form->is_object())
    if (const Json* type = find(*form, "type"); type && *type != "text")
      refuse("response_format other than text is not there: leave it out");
}

void read_stops(const Json& body, std::vector<std::string>& stops) {
  const Json* given = find(body, "stop");
  if (!given) return;
  const auto add = [&](const Json& stop) {
    if (!stop.is_string()) refuse("stop is no text and no list of texts");
    if (!stop.get_ref<const std::string&>().empty()) stops.push_back(stop);
  };
  if (!given->is_array()) return add(*given);
  for (const Json& stop : *given)
    add(stop);
}

chat::Conversation conversation_of(const Json& body) {
  const Json* messages = find(body, "messages");
  if (!messages || !chat::has_turns(*messages)) refuse("messages is no list of turns with roles");
  try {
    return chat::read_row(body, {.turns = "messages"}, "messages", chat::RowUse::is_answered);
  } catch (const Error& error) {
    refuse(error.what());
  }
}

}  // namespace

std::string json_of(const ApiError& error) {
  return Json{{"error",
               {{"message", error.message},
                {"type", error.type},
                {"param", nullptr},
                {"code", error.status}}}}
      .dump();
}

WritingRequest parse_request(std::string_view text, bool is_chat) {
  Json body;
  if (const auto fault = parse_json(text, body))
    refuse(fmt::format("the request is no JSON: {}", fault->what));
  if (!body.is_object()) refuse("the request is no object of JSON");
  WritingRequest request;
  request.is_chat = is_chat;
  check_others(body);
  if (is_chat) {
    request.conversation = conversation_of(body);
  } else {
    const Json* prompt = find(body, "prompt");
    if (prompt && prompt->is_array() && prompt->size() == 1) prompt = &prompt->front();
    if (!prompt || !prompt->is_string()) refuse("prompt is no text");
    request.prompt = prompt->get<std::string>();
  }
  for (const char* key : {"max_tokens", "max_completion_tokens", "n_predict"})
    if (const auto most = integer(body, key); most && *most >= 0) request.n_new_most = *most;
  if (request.n_new_most == 0) refuse("max_tokens is 0: nothing would be written");
  request.temperature = number(body, "temperature", 0, 100);
  request.top_p = number(body, "top_p", 0, 1);
  if (const auto top_k = integer(body, "top_k")) request.top_k = std::max<int64_t>(0, *top_k);
  if (const auto seed = integer(body, "seed"); seed && *seed >= 0)
    request.seed = static_cast<uint64_t>(*seed);
  read_stops(body, request.stops);
  const Json* streams = find(body, "stream");
  request.streams = streams && *streams == true;
  if (const Json* options = find(body, "stream_options"); options && options->is_object())
    if (const Json* usage = find(*options, "include_usage"))
      request.includes_usage = *usage == true;
  return request;
}

namespace {

Json usage_of(const Written& written) {
  return {{"prompt_tokens", written.n_prompt_tokens},
          {"completion_tokens", written.n_new_tokens},
          {"total_tokens", written.n_prompt_tokens + written.n_new_tokens}};
}

const char* reason_of(const Written& written) {
  return written.is_cut ? "length" : "stop";
}

std::string event(const Json& json) {
  return fmt::format("data: {}\n\n", json.dump());
}

}  // namespace

Json AnswerForm::frame(bool is_stream) const {
  const char* object = !is_chat_   ? "text_completion"
                       : is_stream ? "chat.completion.chunk"
                                   : "chat.completion";
  return {{"id", id_}, {"object", object}, {"created", created_}, {"model", model_}};
}

std::string AnswerForm::line(Json choice) const {
  Json json = frame(true);
  json["choices"] = Json::array({std::move(choice)});
  return event(json);
}

std::string AnswerForm::whole(const Written& written) const {
  Json json = frame(false);
  Json choice = {{"index", 0}};
  if (is_chat_)
    choice["message"] = {{"role", chat::kAssistant}, {"content", written.text}};
  else
    choice["text"] = written.text;
  choice["finish_reason"] = reason_of(written);
  json["choices"] = Json::array({std::move(choice)});
  json["usage"] = usage_of(written);
  return json.dump();
}

std::string AnswerForm::first() const {
  if (!is_chat_) return {};
  return line({{"index", 0},
               {"delta", {{"role", chat::kAssistant}, {"content", ""}}},
               {"finish_reason", nullptr}});
}

std::string AnswerForm::piece(std::string_view text) const {
  Json choice = {{"index", 0}};
  if (is_chat_)
    choice["delta"] = {{"content", text}};
  else
    choice["text"] = text;
  choice["finish_reason"] = nullptr;
  return line(std::move(choice));
}

std::string AnswerForm::last(const Written& written, bool includes_usage) const {
  Json choice = {{"index", 0}};
  if (is_chat_)
    choice["delta"] = Json::object();
  else
    choice["text"] = "";
  choice["finish_reason"] = reason_of(written);
  std::string lines = line(std::move(choice));
  if (includes_usage) {
    Json json = frame(true);
    json["choices"] = Json::array();
    json["usage"] = usage_of(written);
    lines += event(json);
  }
  return lines + "data: [DONE]\n\n";
}

std::string AnswerForm::failed(const ApiError& error) {
  return fmt::format("data: {}\n\n", json_of(error));
}

std::string models_json(std::string_view model, int64_t created) {
  return Json{
      {"object", "list"},
      {"data", {{{"id", model}, {"object", "model"}, {"created", created}, {"owned_by", "ferry"}}}}}
      .dump();
}

}  // namespace ferry::serve
