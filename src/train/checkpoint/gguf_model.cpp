#include "src/train/checkpoint/gguf_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numbers>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_set>

#include "models/decoder/decoder_table.h"
#include "models/family.h"
#include "src/base/error.h"
#include "src/base/json/json_reader.h"
#include "src/chat/template_source.h"
#include "src/files/gguf/gguf_names.h"
#include "src/files/hf/end_ids.h"
#include "src/tasks/task.h"
#include "src/text/spec/gguf_tokens.h"

namespace ferry {
namespace {

using Json = nlohmann::ordered_json;
using text::GgufTokens;

constexpr const char* kTakeHf = "export a Hugging Face directory in its place: --format hf";

[[noreturn]] void refuse(const HfDirectory& model,
                         std::string_view what,
                         std::string_view hint = kTakeHf) {
  throw Error(Fault::data, "export.gguf", fmt::format("'{}' {}", model.path().string(), what),
              hint);
}

/** A family, and what llama.cpp computes of it. */
struct Architecture {
  const GgufNames* names = nullptr;
  std::vector<RopeScaling> scalings;
  bool has_biases = false;  ///< attention's and the MLP's where the configuration says so
};

/** Scalings of rotary positions that llama.cpp has for a family. */
std::vector<RopeScaling> scalings_of(std::string_view model_type) {
  using enum RopeScaling;
  if (model_type == "gpt2") return {none};
  if (model_type == "phi3") return {none, longrope};
  std::vector<RopeScaling> scalings = {none, linear, dynamic};
  const bool is_llama = model_type == "llama" || model_type == "mistral";
  if (is_llama || model_type.starts_with("qwen")) scalings.push_back(yarn);
  if (is_llama) scalings.push_back(llama3);
  return scalings;
}

Architecture architecture_of(const HfDirectory& model) {
  const std::string& type = model.config().model_type;
  const auto found = std::ranges::find(gguf_names(), type, &GgufNames::model_type);
  if (found != gguf_names().end())
    return {.names = &*found,
            .scalings = scalings_of(type),
            .has_biases = type == "llama" || type == "gpt2" || type == "gpt_neox"};
  std::vector<std::string_view> names;
  for (const GgufNames& known : gguf_names())
    names.push_back(known.model_type);
  refuse(
      model,
      fmt::format("is of model_type {}, which Ferry writes no GGUF of", model.config().model_type),
      fmt::format("--format hf writes a Hugging Face directory; GGUF files are made of {}",
                  fmt::join(names, ", ")));
}

/** Writes keys down; the prefix is "llama." and the like. */
class KeyList {
 public:
  explicit KeyList(std::string_view architecture) : prefix_(fmt::format("{}.", architecture)) {}

  void put(std::string key, GgufValue value) {
    keys_.emplace_back(std::move(key), std::move(value));
  }
  void put_own(std::string_view key, int64_t value) {
    put(prefix_ + std::string(key), GgufValue::u32(value));
  }
  void put_own(std::string_view key, double value) {
    put(prefix_ + std::string(key), GgufValue::f32(static_cast<float>(value)));
  }
  void put_own(std::string_view key, GgufValue value) {
    put(prefix_ + std::string(key), std::move(value));
  }
  GgufKeys take() { return std::move(keys_); }

 private:
  std::string prefix_;
  GgufKeys keys_;
};

int64_t file_type_of(GgufType type) {
  switch (type) {
    case GgufType::f16:
      return 1;
    case GgufType::q8_0:
      return 7;
    case GgufType::bf16:
      return 32;
    default:
      return 0;
  }
}

/** Reads one model into keys and tensors. */
class Describer {
 public:
  Describer(const HfDirectory& model,
            const CheckpointReader& weights,
            GgufType type,
            const std::string& name)
      : model_(model),
        weights_(weights),
        type_(type),
        name_(name),
        arch_(architecture_of(model)),
        keys_(arch_.names->architecture) {}

  GgufModel describe() {
    check_head();
    const TableOptions options = {
        .head = HeadKind::causal_lm, .hidden_dropout = 0.0f, .attention_dropout = 0.0f};
    table_ = make_table(model_.config().fields(), options);
    its_ = family_of(model_.config().fields()).decoder(model_.config().fields(), options);
    tokens_ = text::read_gguf_tokens(model_.tokenizer());
    check_computes();
    add_tensors();
    add_general();
    add_hyper_parameters();
    if (its_.rope) add_rope();
    add_tokenizer();
    return {.keys = keys_.take(), .tensors = std::move(tensors_)};
  }

 private:
  bool is(std::string_view model_type) const { return arch_.names->model_type == model_type; }
  bool is_gemma() const { return is("gemma") || is("gemma2") || is("gemma3_text"); }
  int64_t head_dim() const { return table_.head_width; }

  void check_head() const {
    if (kind_of_model(model_.config()).generates()) return;
    refuse(model_, "is no language model that generates, and a GGUF file holds nothing else");
  }

  /** Refuses what llama.cpp would compute in another way. */
  void check_computes() const {
    const auto expect = [&](bool is_right, std::string_view what) {
      if (!is_right) refuse(model_, fmt::format("{}, which llama.cpp does not compute", what));
    };
    if (its_.family == DecoderFamily::llama)
      expect(its_.gate == (is_gemma() ? Activation::gelu_tanh : Activation::silu),
             "has another activation function than its family");
    if (is("gpt2"))
      expect(its_.activation == Activation::gelu_tanh, "has another function than gelu_new");
    if (is("gpt_neox")) {
      expect(its_.activation == Activation::gelu || its_.activation == Activation::gelu_tanh,
             "has another function than gelu");
      expect(its_.qkv_bias, "has no biases (attention_bias)");
    }
    if (!arch_.has_biases)
      expect(!its_.output_bias && !its_.mlp_bias && its_.qkv_bias == is("qwen2"),
             "has biases of attention or of the MLP");
    if (is("gemma") || is("gemma2"))
      expect(its_.tie_word_embeddings, "has a head beside the embeddings (tie_word_embeddings)");
    if (is("gemma2")) expect(its_.score_cap > 0 && its_.logits.soft_cap > 0, "has no caps");
    if (is("gemma2") || is("gemma3_text")) {
      const bool is_27b = its_.num_hidden_layers == (is("gemma2") ? 46 : 62);
      const double width =
          static_cast<double>(is_27b ? its_.hidden_size / its_.num_attention_heads : head_dim());
      expect(std::abs(its_.score_scale * std::sqrt(width) - 1) < 1e-6,
             "has another factor of attention's scores (query_pre_attn_scalar)");
      const int64_t pattern = is("gemma2") ? 2 : 6;
      const bool sees_all = its_.window == 0 || its_.window >= its_.max_position_embeddings;
      bool is_usual = its_.layer_has_window.empty() == (its_.window == 0);
      for (int64_t i = 0; i < std::ssize(its_.layer_has_window); ++i)
        is_usual &= its_.layer_has_window[static_cast<size_t>(i)] == ((i + 1) % pattern != 0);
      expect(is_usual || (sees_all && !its_.window_rope),
             fmt::format("has not a window in all but each {} layers", pattern));
    }
    for (const auto& rope : {its_.rope, its_.window_rope}) {
      if (!rope) continue;
      const bool is_known =
          std::ranges::find(arch_.scalings, rope->scaling) != arch_.scalings.end();
      expect(is_known, "has a scaling of rotary positions (rope_scaling) of another family");
      if (rope->scaling != RopeScaling::yarn) continue;
      expect(rope->attention_factor == 0 && rope->mscale == 0 && rope->mscale_all_dim == 0 &&
                 rope->truncate,
             "has YaRN with other factors than its paper");
    }
    if (its_.window_rope)
      expect(its_.window_rope->scaling == RopeScaling::none ||
                 its_.window_rope->scaling == RopeScaling::dynamic,
             "scales the positions of its windows");
    if (std::ssize(tokens_.tokens) > its_.vocab_size)
      refuse(model_,
             fmt::format("has {} rows of words, and its tokenizer {} tokens", its_.vocab_size,
                         tokens_.tokens.size()),
             "give the model a row for each token (transformers' resize_token_embeddings)");
  }

  // ---- Tensors

  GgufType type_of(const std::string& name, const std::vector<int64_t>& shape) const {
    if (shape.size() == 1 || name.starts_with("position_embd")) return GgufType::f32;
    return shape.back() % block_elements(type_) == 0 ? type_ : GgufType::f16;
  }

  void add(const std::string& name, const HfEntry& entry, const StoredTensor& stored) {
    GgufSource source = {.stored = &stored, .values = {}, .transposed = entry.transposed};
    source.spec = {.name = name, .shape = entry.hf_shape};
    if (entry.transposed) std::ranges::reverse(source.spec.shape);
    source.spec.type = type_of(name, source.spec.shape);
    const bool is_turned = name.find(".attn_q.") != name.npos || name.find(".attn_k.") != name.npos;
    if (arch_.names->architecture == "llama" && is_turned)
      source.order = GgufRows::neighbours, source.head_rows = head_dim();
    if (is("gpt_neox") && name.find(".attn_qkv.") != name.npos)
      source.order = GgufRows::parts, source.head_rows = head_dim();
    if (is_gemma() && name.ends_with("norm.weight")) source.offset = 1;
    tensors_.push_back(std::move(source));
  }

  void add_tensors() {
    std::unordered_set<std::string> known(table_.hf_ignored.begin(), table_.hf_ignored.end());
    for (const HfEntry& entry : table_.hf_names) {
      const StoredTensor* stored = nullptr;
      for (const std::string& name : names_of(entry)) {
        known.insert(name);
        if (!stored) stored = weights_.find(name);
      }
      known.insert(entry.tied_names.begin(), entry.tied_names.end());
      if (!entry.is_first_part()) continue;
      if (!stored)
        refuse(model_, fmt::format("has no tensor '{}'", entry.hf_name), "is the model complete?");
      weights_.get(stored->name, entry.hf_shape);
      const std::string name = arch_.names->gguf_name(entry.hf_name);
      FERRY_CHECK(!name.empty(), "no GGUF name of '{}'", entry.hf_name);
      add(name, entry, *stored);
      // llama.cpp takes the embeddings where there is no head, but for this family.
      if (is("gpt_neox") && its_.tie_word_embeddings && name == "token_embd.weight")
        add("output.weight", entry, *stored);
    }
    for (const StoredTensor* tensor : weights_.tensors())
      if (!known.contains(tensor->name) &&
          !is_old_buffer(model_.config().model_type, tensor->name) && is_of_layers(tensor->name))
        refuse(model_, fmt::format("has the tensor '{}', which its family has not", tensor->name),
               "does config.json belong to these weights?");
    add_rope_factors();
  }

  /** A tensor of the part that is exported; a model of texts and images has others, too. */
  bool is_of_layers(std::string_view name) const {
    return name.find("layers.") != name.npos && name.find("vision") == name.npos &&
           name.starts_with(arch_.names->layers.substr(0, arch_.names->layers.find('.')));
  }

  void add_values(const char* name, std::vector<float> values) {
    GgufSource source;
    source.spec = {.name = name, .shape = {std::ssize(values)}};
    source.values = std::move(values);
    tensors_.push_back(std::move(source));
  }

  void add_rope_factors() {
    if (!its_.rope) return;
    const RopeSpec& rope = *its_.rope;
    if (rope.scaling == RopeScaling::longrope) {
      const auto floats = [](const std::vector<double>& values) {
        return std::vector<float>(values.begin(), values.end());
      };
      add_values("rope_factors_long.weight", floats(rope.long_factor));
      add_values("rope_factors_short.weight", floats(rope.short_factor));
    }
    if (rope.scaling != RopeScaling::llama3) return;
    // Divisors of the frequencies: 1 of short waves, the factor of long ones, between them smooth.
    const auto original = static_cast<double>(rope.original_positions);
    std::vector<float> divisors;
    for (int64_t i = 0; i < rope.width / 2; ++i) {
      const double frequency =
          std::pow(rope.theta, -2.0 * static_cast<double>(i) / static_cast<double>(rope.width));
      const double wave = 2 * std::numbers::pi / frequency;
      const double low = original / rope.low_frequency_factor,
                   high = original / rope.high_frequency_factor;
      const double smooth = (original / wave - rope.low_frequency_factor) /
                            (rope.high_frequency_factor - rope.low_frequency_factor);
      const double between = 1 / ((1 - smooth) / rope.factor + smooth);
      divisors.push_back(static_cast<float>(wave < high ? 1 : wave > low ? rope.factor : between));
    }
    add_values("rope_freqs.weight", std::move(divisors));
  }

  // ---- Keys

  /** llama.cpp treats a model whose name says Phi-3 in another way: the control tokens take
   * the blanks behind them. */
  std::string safe_name() const {
    std::string lower = name_;
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
    const bool says_phi = lower.find("phi-3") != lower.npos || lower.find("phi3") != lower.npos;
    if (!tokens_.takes_blanks_after)
      return says_phi ? std::string(arch_.names->architecture) + " model" : name_;
    for (const char* token : {"</s>", "<unk>", "<s>", "<|endoftext|>"})
      if (tokens_.find(token) < 0)
        refuse(model_, fmt::format("has special tokens that take the blanks behind them, and no "
                                   "token '{}', without which llama.cpp does not do so",
                                   token));
    return says_phi ? name_ : "phi-3 " + name_;
  }

  void add_general() {
    keys_.put("general.architecture", GgufValue::text(std::string(arch_.names->architecture)));
    keys_.put("general.type", GgufValue::text("model"));
    std::string name = safe_name();
    // Phi-3's name has a meaning for llama.cpp, and the architecture's own is none.
    if (arch_.names->architecture == "phi3" && !tokens_.takes_blanks_after && name == "phi3 model")
      name = "model";
    keys_.put("general.name", GgufValue::text(std::move(name)));
    int64_t n_params = 0;
    for (const GgufSource& source : tensors_)
      if (source.stored) n_params += source.n_rows() * source.n_columns();
    const auto billions = static_cast<double>(n_params) / 1e9;
    keys_.put("general.size_label",
              GgufValue::text(billions >= 1 ? fmt::format("{:.1f}B", billions)
                                            : fmt::format("{:.0f}M", billions * 1e3)));
    if (const auto& adapter = model_.adapter(); adapter && !adapter->base_model.empty()) {
      keys_.put("general.base_model.count", GgufValue::u32(1));
      keys_.put("general.base_model.0.name", GgufValue::text(adapter->base_model));
    }
    keys_.put("general.file_type", GgufValue::u32(file_type_of(type_)));
    keys_.put("general.quantization_version", GgufValue::u32(2));
  }

  /** Texts up to this length are computed as Ferry does. llama.cpp has windows in Gemma 2 and 3
   * alone, so another model's window ends the context. */
  int64_t context_length() const {
    const bool has_windows = is("gemma2") || is("gemma3_text");
    const bool is_used =
        its_.layer_has_window.empty() ||
        std::ranges::find(its_.layer_has_window, true) != its_.layer_has_window.end();
    if (has_windows || its_.window == 0 || !is_used) return its_.max_position_embeddings;
    return std::min(its_.window, its_.max_position_embeddings);
  }

  void add_hyper_parameters() {
    keys_.put_own("vocab_size", its_.vocab_size);
    keys_.put_own("context_length", context_length());
    keys_.put_own("embedding_length", its_.hidden_size);
    keys_.put_own("block_count", its_.num_hidden_layers);
    keys_.put_own("feed_forward_length", its_.intermediate_size);
    keys_.put_own("attention.head_count", its_.num_attention_heads);
    keys_.put_own("attention.head_count_kv", its_.num_key_value_heads);
    const bool is_llama = its_.family == DecoderFamily::llama;
    keys_.put_own(is_llama ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon",
                  static_cast<double>(its_.norm_eps));
    if (is_llama) {
      keys_.put_own("attention.key_length", head_dim());
      keys_.put_own("attention.value_length", head_dim());
    }
    if (is("gpt_neox")) keys_.put_own("use_parallel_residual", GgufValue::flag(its_.is_parallel));
    if (is("gemma2")) {
      keys_.put_own("attn_logit_softcapping", static_cast<double>(its_.score_cap));
      keys_.put_own("final_logit_softcapping", static_cast<double>(its_.logits.soft_cap));
    }
    if (is("gemma2") || is("gemma3_text"))
      keys_.put_own("attention.sliding_window",
                    its_.window > 0 ? its_.window : its_.max_position_embeddings);
  }

  void add_rope() {
    const RopeSpec& rope = *its_.rope;
    keys_.put_own("rope.dimension_count", rope.width);
    keys_.put_own("rope.freq_base", rope.theta);
    if (its_.window_rope) keys_.put_own("rope.freq_base_swa", its_.window_rope->theta);
    const auto put_type = [&](const char* type) {
      keys_.put_own("rope.scaling.type", GgufValue::text(type));
    };
    switch (rope.scaling) {
      case RopeScaling::linear:
        put_type("linear");
        keys_.put_own("rope.scaling.factor", rope.factor);
        break;
      case RopeScaling::yarn:
        put_type("yarn");
        keys_.put_own("rope.scaling.factor",
                      rope.factor > 0 ? rope.factor
                                      : static_cast<double>(rope.max_positions) /
                                            static_cast<double>(rope.original_positions));
        keys_.put_own("rope.scaling.original_context_length", rope.original_positions);
        keys_.put_own("rope.scaling.yarn_beta_fast", rope.beta_fast);
        keys_.put_own("rope.scaling.yarn_beta_slow", rope.beta_slow);
        break;
      case RopeScaling::longrope:
        put_type("longrope");
        keys_.put_own("rope.scaling.original_context_length", rope.original_positions);
        keys_.put_own("rope.scaling.attn_factor", static_cast<double>(rope_table(rope).factor));
        break;
      default:
        // dynamic differs beyond the context alone, and the factors of llama3 are a tensor.
        put_type("none");
    }
  }

  // ---- The tokenizer

  /** A file that goes with the model, as it was when the model was opened; nothing: none. */
  std::optional<JsonReader> copied_json(std::string_view name) const {
    for (const HfDirectory::CopiedFile& file : model_.copied_files())
      if (file.name == name)
        return JsonReader::parse(file.text, {(model_.tokenizer() / file.name).string(),
                                             "export.gguf", "remove or mend it"});
    return std::nullopt;
  }

  /** The chat templates by name, "default" among them. */
  std::map<std::string, std::string> chat_templates() const {
    std::map<std::string, std::string> templates;
    if (const auto source = chat::template_of_model(model_.tokenizer())) {
      templates["default"] = source->text;
      if (!source->tools_text.empty()) templates["tool_use"] = source->tools_text;
    }
    const auto config = copied_json("tokenizer_config.json");
    const auto found = config ? config->find("chat_template") : std::nullopt;
    if (found && found->is_list())
      for (size_t i = 0; i < found->size(); ++i)
        templates.emplace(found->at(i).text("name"), found->at(i).text("template"));
    return templates;
  }

  /** The tokens that end an answer by generation_config.json, else by config.json, and by the
   * tokenizer. Each stands once; ids beyond the vocabulary are left out. */
  std::vector<int32_t> stop_ids() const {
    std::vector<int32_t> ids;
    if (const auto config = copied_json(kGenerationConfigName)) ids = end_ids_in(*config);
    if (ids.empty()) ids = end_ids_in(model_.config().fields());
    ids.push_back(tokens_.eos);
    std::vector<int32_t> stops;
    for (const int32_t id : ids)
      if (id >= 0 && id < std::ssize(tokens_.tokens) && std::ranges::find(stops, id) == stops.end())
        stops.push_back(id);
    return stops;
  }

  /** The tokens by which chats end a turn; llama.cpp stops at each of them by its text. */
  static constexpr std::string_view kTurnEnds[] = {
      "<|eot_id|>", "<|im_end|>", "<end_of_turn>", "<turn|>",           "<|end|>",
      "<|return|>", "<EOT>",      "[EOT]",         "<end_of_utterance>"};
  static constexpr std::string_view kOtherEnds[] = {
      "<|call|>",        "<|endoftext|>", "</s>",
      "<eos>",           "<|eom_id|>",    "[EOS]",
      "<|end_of_text|>", "[e~[",          "<\uff5cend\u2581of\u2581sentence\uff5c>"};

  bool stops_by_text(int32_t id) const {
    const std::string& token = tokens_.tokens[static_cast<size_t>(id)];
    return std::ranges::find(kTurnEnds, token) != std::end(kTurnEnds) ||
           std::ranges::find(kOtherEnds, token) != std::end(kOtherEnds);
  }

  /** The end of a turn by the chat template, else the tokenizer's end of a text, else the first of
   * the stops. */
  int32_t end_id(const std::vector<int32_t>& stops, const std::string& chat) const {
    const auto is_in_chat = [&](int32_t id) {
      return chat.find(tokens_.tokens[static_cast<size_t>(id)]) != chat.npos;
    };
    const bool has_own = std::ranges::find(stops, tokens_.eos) != stops.end();
    if (!chat.empty()) {
      if (has_own && (is_in_chat(tokens_.eos) || chat.find("eos_token") != chat.npos))
        return tokens_.eos;
      for (const std::string_view token : kTurnEnds)
        if (const int32_t id = tokens_.find(std::string(token)); id >= 0 && is_in_chat(id))
          return id;
      for (const int32_t id : stops)
        if (is_in_chat(id)) return id;
    }
    return has_own ? tokens_.eos : stops.front();
  }

  void add_stops(const std::string& chat) {
    const std::vector<int32_t> stops = stop_ids();
    if (stops.empty())
      refuse(model_, "names no token that ends a text, and llama.cpp would take another one",
             "set eos_token in tokenizer_config.json");
    const int32_t eos = end_id(stops, chat);
    if (tokens_.last >= 0 && tokens_.last != eos)
      refuse(model_, fmt::format("puts '{}' behind each text, and ends a turn by '{}'",
                                 tokens_.tokens[static_cast<size_t>(tokens_.last)],
                                 tokens_.tokens[static_cast<size_t>(eos)]));
    keys_.put("tokenizer.ggml.eos_token_id", GgufValue::u32(eos));
    std::vector<int32_t> others;
    for (const int32_t id : stops)
      if (id != eos && !stops_by_text(id)) others.push_back(id);
    constexpr std::string_view kKeys[] = {"tokenizer.ggml.eot_token_id",
                                          "tokenizer.ggml.eom_token_id"};
    if (others.size() > std::size(kKeys)) {
      std::vector<std::string> names;
      for (const int32_t id : others)
        names.push_back(tokens_.tokens[static_cast<size_t>(id)]);
      refuse(model_,
             fmt::format("stops at {}, of which a GGUF file names two at most",
                         fmt::join(names, ", ")),
             "leave the stop tokens that answers end with in generation_config.json "
             "(eos_token_id)");
    }
    if (others.empty()) others.push_back(eos);
    for (size_t i = 0; i < others.size(); ++i)
      keys_.put(std::string(kKeys[i]), GgufValue::u32(others[i]));
  }

  int32_t bos_id() const {
    if (tokens_.first >= 0) return tokens_.first;
    if (tokens_.bos >= 0) return tokens_.bos;
    if (const auto id = model_.config().fields().find("bos_token_id"))
      if (const int64_t its = id->integer(-1, INT32_MAX);
          its >= 0 && its < std::ssize(tokens_.tokens))
        return static_cast<int32_t>(its);
    return -1;
  }

  void add_tokenizer() {
    std::vector<std::string> tokens = tokens_.tokens;
    std::vector<int64_t> kinds;
    for (const text::GgufTokenKind kind : tokens_.kinds)
      kinds.push_back(static_cast<int64_t>(kind));
    std::vector<double> scores = tokens_.scores;
    // llama.cpp has a row of words for each token.
    const std::set<std::string_view> taken(tokens_.tokens.begin(), tokens_.tokens.end());
    while (std::ssize(tokens) < its_.vocab_size) {
      std::string name = fmt::format("[PAD{}]", tokens.size());
      while (taken.contains(name))
        name = fmt::format("[{}]", name);
      tokens.push_back(std::move(name));
      kinds.push_back(static_cast<int64_t>(text::GgufTokenKind::unused));
      if (!scores.empty()) scores.push_back(-1e9);
    }
    const std::map<std::string, std::string> templates = chat_templates();
    const auto usual = templates.find("default");
    const std::string chat = usual == templates.end() ? std::string() : usual->second;

    keys_.put("tokenizer.ggml.model", GgufValue::text(tokens_.model));
    keys_.put("tokenizer.ggml.pre", GgufValue::text(tokens_.pre));
    keys_.put("tokenizer.ggml.tokens", GgufValue::texts(std::move(tokens)));
    if (!scores.empty()) keys_.put("tokenizer.ggml.scores", GgufValue::f32s(std::move(scores)));
    keys_.put("tokenizer.ggml.token_type", GgufValue::i32s(std::move(kinds)));
    if (!tokens_.merges.empty())
      keys_.put("tokenizer.ggml.merges", GgufValue::texts(tokens_.merges));
    add_stops(chat);
    // Without the key llama.cpp would take a fixed number.
    const int32_t bos = bos_id();
    keys_.put("tokenizer.ggml.bos_token_id", GgufValue::u32(bos >= 0 ? bos : stop_ids().front()));
    if (tokens_.unk >= 0) keys_.put("tokenizer.ggml.unknown_token_id", GgufValue::u32(tokens_.unk));
    if (tokens_.pad >= 0) keys_.put("tokenizer.ggml.padding_token_id", GgufValue::u32(tokens_.pad));
    keys_.put("tokenizer.ggml.add_bos_token", GgufValue::flag(tokens_.first >= 0));
    keys_.put("tokenizer.ggml.add_eos_token", GgufValue::flag(tokens_.last >= 0));
    if (tokens_.model == "llama")
      keys_.put("tokenizer.ggml.add_space_prefix", GgufValue::flag(tokens_.adds_blank));
    std::vector<std::string> names;
    for (const auto& [name, text] : templates) {
      if (name == "default") continue;
      names.push_back(name);
      keys_.put(fmt::format("tokenizer.chat_template.{}", name), GgufValue::text(text));
    }
    if (!names.empty()) keys_.put("tokenizer.chat_templates", GgufValue::texts(std::move(names)));
    if (!chat.empty()) keys_.put("tokenizer.chat_template", GgufValue::text(chat));
  }

  const HfDirectory& model_;
  const CheckpointReader& weights_;
  GgufType type_;
  std::string name_;
  const Architecture arch_;
  KeyList keys_;
  ModelTable table_;
  DecoderConfig its_;
  GgufTokens tokens_;
  std::vector<GgufSource> tensors_;
};

}  // namespace

GgufModel describe_gguf(const HfDirectory& model,
                        const CheckpointReader& weights,
                        GgufType type,
                        const std::string& name) {
  return Describer(model, weights, type, name).describe();
}

}  // namespace ferry
