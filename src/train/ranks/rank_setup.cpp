#include "src/train/ranks/rank_setup.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/config/launch.h"

namespace ferry {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const config::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? "true" : "false";
  if (const auto* integer = std::get_if<int64_t>(&value)) return fmt::format("{}", *integer);
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  if (const auto* time = std::get_if<config::Seconds>(&value)) return to_text(*time);
  return "auto";
}

Json json_of(const config::Config& config) {
  Json values = Json::object();
  for (const config::Option& option : config::option_table())
    if (config.is_set(option.key) && !config::is_of_launch(option))
      values[std::string(option.key)] = text_of(config.value(option.key));
  return values;
}

config::Config config_in(const Json& values) {
  config::Config config;
  for (const auto& [key, text] : values.items())
    config.set(key, text.get<std::string>(),
               {.source = config::Source::chosen, .where = "rank 0", .is_spelled = true});
  return config;
}

Json json_of(const BatchShape& shape) {
  Json streams = Json::array();
  for (const StreamShape& stream : shape.streams)
    streams.push_back({stream.tokens, stream.n_seqs_max, stream.max_length});
  return {{"tokens", shape.tokens},
          {"n_seqs_max", shape.n_seqs_max},
          {"max_length", shape.max_length},
          {"streams", streams}};
}
BatchShape batch_shape_in(const Json& json) {
  BatchShape shape = {.tokens = json.at("tokens"),
                      .n_seqs_max = json.at("n_seqs_max"),
                      .max_length = json.at("max_length")};
  for (const Json& its : json.at("streams"))
    shape.streams.push_back({its.at(0), its.at(1), its.at(2)});
  return shape;
}

/** Calls `each` with the name of every number that a planner chooses, and the number of each of the
 * shapes. */
template <class Each, class... Shapes>
void for_choices(const Each& each, Shapes&... shapes) {
  each("n_micro_max", shapes.n_micro_max...);
  each("n_weight_slots", shapes.n_weight_slots...);
  each("n_grad_slots", shapes.n_grad_slots...);
  each("n_saved_slots", shapes.n_saved_slots...);
  each("n_layer_input_slots", shapes.n_layer_input_slots...);
  each("layer_inputs_on_host", shapes.layer_inputs_on_host...);
  each("order", shapes.order...);
  each("scratch_bytes", shapes.scratch_bytes...);
  each("library_bytes", shapes.library_bytes...);
  each("generation_bytes", shapes.generation_bytes...);
  each("save_buffer_bytes_max", shapes.save_buffer_bytes_max...);
  each("pinned_bytes_max", shapes.pinned_bytes_max...);
  each("world", shapes.ranks.world...);
  each("shares", shapes.ranks.shares...);
  each("n_stages", shapes.ranks.n_stages...);
  each("sp_size", shapes.ranks.sharing.sp_size...);
  each("sp_attention", shapes.ranks.sharing.sp_attention...);
  each("tp_size", shapes.ranks.sharing.tp_size...);
  each("reduction", shapes.reduction...);
}
template <class Each, class... Blocks>
void for_choices_of_block(const Each& each, Blocks&... blocks) {
  each("stage", blocks.stage...);
  each("weights", blocks.place.weights...);
  each("states", blocks.place.states...);
  each("grads", blocks.place.grads...);
  each("gathers_each_pass", blocks.gathers_each_pass...);
  each("activations", blocks.activations...);
  each("updates_late", blocks.updates_late...);
}

template <class Value>
Json number_of(const Value& value) {
  if constexpr (std::is_enum_v<Value>)
    return static_cast<int64_t>(value);
  else
    return value;
}
template <class Value>
void take_number(const Json& json, Value& value) {
  if constexpr (std::is_enum_v<Value>)
    value = static_cast<Value>(json.get<int64_t>());
  else
    value = json.get<Value>();
}

Json json_of(const StepShape& shape) {
  Json json = Json::object();
  for_choices([&](const char* name, const auto& value) { json[name] = number_of(value); }, shape);
  for (const BlockShape& block : shape.blocks) {
    Json its = Json::object();
    for_choices_of_block([&](const char* name, const auto& value) { its[name] = number_of(value); },
                         block);
    json["blocks"].push_back(std::move(its));
  }
  return json;
}
StepShape shape_in(const Json& json) {
  StepShape shape;
  for_choices([&](const char* name, auto& value) { take_number(json.at(name), value); }, shape);
  for (const Json& its : json.at("blocks")) {
    BlockShape& block = shape.blocks.emplace_back();
    for_choices_of_block([&](const char* name, auto& value) { take_number(its.at(name), value); },
                         block);
  }
  return shape;
}

Json json_of(const SessionFacts& facts) {
  return {{"loss", number_of(facts.loss)},
          {"seed", facts.seed},
          {"class_weights", facts.class_weights},
          {"n_sequences", facts.generation.n_sequences},
          {"cache_tokens", facts.generation.cache_tokens},
          {"n_steps", facts.n_steps},
          {"trains", facts.trains},
          {"optim", number_of(facts.optim)},
          {"compute", number_of(facts.compute)}};
}
SessionFacts facts_in(const Json& json) {
  SessionFacts facts;
  take_number(json.at("loss"), facts.loss);
  facts.seed = json.at("seed");
  facts.class_weights = json.at("class_weights").get<std::vector<float>>();
  facts.generation = {json.at("n_sequences"), json.at("cache_tokens")};
  facts.n_steps = json.at("n_steps");
  facts.trains = json.at("trains");
  take_number(json.at("optim"), facts.optim);
  take_number(json.at("compute"), facts.compute);
  return facts;
}

}  // namespace

Json to_json(const RankSetup& setup) {
  return {{"config", json_of(setup.config)},    {"run_id", setup.run_id},
          {"model_config", setup.model_config}, {"model_origin", setup.model_origin},
          {"head", number_of(setup.head)},      {"n_labels", setup.n_labels},
          {"largest", json_of(setup.largest)},  {"facts", json_of(setup.facts)},
          {"shape", json_of(setup.shape)}};
}

RankSetup setup_in(const Json& json) {
  RankSetup setup;
  setup.config = config_in(json.at("config"));
  setup.run_id = json.at("run_id");
  setup.model_config = json.at("model_config");
  setup.model_origin = json.at("model_origin");
  take_number(json.at("head"), setup.head);
  setup.n_labels = json.at("n_labels");
  setup.largest = batch_shape_in(json.at("largest"));
  setup.facts = facts_in(json.at("facts"));
  setup.shape = shape_in(json.at("shape"));
  return setup;
}

void take_choices(const StepShape& from, StepShape& to) {
  FERRY_CHECK(from.blocks.size() == to.blocks.size(), "{} blocks and {}", from.blocks.size(),
              to.blocks.size());
  const auto copy = [](const char*, const auto& value, auto& copied) { copied = value; };
  for_choices(copy, from, to);
  for (size_t b = 0; b < to.blocks.size(); ++b)
    for_choices_of_block(copy, from.blocks[b], to.blocks[b]);
}

}  // namespace ferry
