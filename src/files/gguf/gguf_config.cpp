#include "src/files/gguf/gguf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "src/files/gguf/gguf_keys.h"
#include "src/files/gguf/gguf_names.h"
#include "src/files/gguf/gguf_tensors.h"

namespace ferry {
namespace {

using Json = nlohmann::ordered_json;

/** The shortest number of an fp32 value: 1e-05, and not 9.999999747378752e-06. */
double short_number(double value) {
  return std::stod(fmt::format("{}", static_cast<float>(value)));
}

std::vector<double> values_of(const GgufTensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.columns()));
  tensor.read_row(0, values);
  std::vector<double> numbers;
  for (const float value : values)
    numbers.push_back(short_number(static_cast<double>(value)));
  return numbers;
}

class ConfigOfGguf {
 public:
  explicit ConfigOfGguf(const GgufFile& file)
      : file_(file),
        keys_(file),
        architecture_(gguf_architecture(file)),
        names_(*std::ranges::find(gguf_names(), architecture_, &GgufNames::architecture)) {}

  Json read() {
    const int64_t width = integer("embedding_length"), n_heads = integer("attention.head_count");
    if (width < 1 || n_heads < 1 || n_heads > width || head_width() < 1)
      keys_.refuse(fmt::format("says {} heads of {} in a width of {}", n_heads,
                               n_heads < 1 ? 0 : head_width(), width));
    json_["architectures"] = {names_.hf_class};
    json_["model_type"] = names_.model_type;
    const GgufTensor* words = file_.find("token_embd.weight");
    if (!words) keys_.refuse("has no tensor 'token_embd.weight'", "is the download complete?");
    json_["vocab_size"] = words->shape.front();
    if (is("gpt2"))
      add_gpt2();
    else
      add_plain();
    add_special_ids();
    json_["torch_dtype"] = dtype();
    add_storages();
    return std::move(json_);
  }

 private:
  bool is(std::string_view architecture) const { return architecture_ == architecture; }
  bool is_gemma() const { return architecture_.starts_with("gemma"); }
  std::string own(std::string_view key) const { return fmt::format("{}.{}", architecture_, key); }
  int64_t integer(std::string_view key, std::optional<int64_t> otherwise = {}) const {
    return keys_.integer(own(key), otherwise);
  }
  double number(std::string_view key, std::optional<double> otherwise = {}) const {
    const double value = keys_.number(own(key), otherwise);
    if (!std::isfinite(value)) keys_.refuse(fmt::format("has {} as '{}'", value, own(key)));
    return short_number(value);
  }
  bool has_tensor(std::string_view name) const { return file_.find(name) != nullptr; }
  int64_t head_width() const {
    const int64_t n_heads = std::max<int64_t>(integer("attention.head_count"), 1);
    return integer("attention.key_length", integer("embedding_length") / n_heads);
  }

  void add_gpt2() {
    json_["n_embd"] = integer("embedding_length");
    json_["n_layer"] = integer("block_count");
    json_["n_head"] = integer("attention.head_count");
    json_["n_positions"] = integer("context_length");
    json_["n_inner"] = integer("feed_forward_length");
    json_["layer_norm_epsilon"] = number("attention.layer_norm_epsilon");
    json_["activation_function"] = "gelu_new";
    json_["tie_word_embeddings"] = true;
    if (has_tensor("output.weight"))
      keys_.refuse("has a head beside the embeddings, which GPT-2 does not");
  }

  void add_plain() {
    json_["hidden_size"] = integer("embedding_length");
    json_["intermediate_size"] = integer("feed_forward_length");
    json_["num_hidden_layers"] = integer("block_count");
    json_["num_attention_heads"] = integer("attention.head_count");
    json_["max_position_embeddings"] = integer("context_length");
    json_["tie_word_embeddings"] = !has_tensor("output.weight");
    if (is("gptneox")) return add_neox();
    json_["num_key_value_heads"] =
        integer("attention.head_count_kv", integer("attention.head_count"));
    json_["rms_norm_eps"] = number("attention.layer_norm_rms_epsilon");
    if (!is("phi3")) json_["head_dim"] = head_width();
    json_["hidden_act"] = is_gemma() ? "gelu_pytorch_tanh" : "silu";
    if (is_gemma()) json_["hidden_activation"] = "gelu_pytorch_tanh";
    if (is("llama")) {
      json_["attention_bias"] = has_tensor("blk.0.attn_q.bias");
      json_["mlp_bias"] = has_tensor("blk.0.ffn_up.bias");
    }
    if (is("phi3")) {
      const int64_t window = integer("attention.sliding_window", 0);
      json_["sliding_window"] = window > 0 ? Json(window) : Json();
    }
    if (is("gemma2") || is("gemma3")) add_windows();
    add_rope(is("gemma3") ? 1e6 : 1e4);
  }

  void add_neox() {
    json_["layer_norm_eps"] = number("attention.layer_norm_epsilon");
    json_["hidden_act"] = "gelu";
    json_["use_parallel_residual"] = keys_.flag(own("use_parallel_residual"), true);
    json_["rotary_pct"] = static_cast<double>(integer("rope.dimension_count", head_width())) /
                          static_cast<double>(head_width());
    json_["rotary_emb_base"] = number("rope.freq_base", 1e4);
    if (const Json scaling = scaling_of(); !scaling.is_null()) json_["rope_scaling"] = scaling;
    // A tied head is there twice.
    json_["tie_word_embeddings"] = has_equal_head();
  }

  /** The head has the bytes of the embeddings. */
  bool has_equal_head() const {
    const GgufTensor *words = file_.find("token_embd.weight"), *head = file_.find("output.weight");
    return !head || (head->type == words->type && std::ranges::equal(head->bytes, words->bytes));
  }

  void add_windows() {
    const int64_t n_layers = integer("block_count"), width = head_width();
    const bool is_27b = n_layers == (is("gemma2") ? 46 : 62);
    json_["query_pre_attn_scalar"] =
        is_27b ? integer("embedding_length") / integer("attention.head_count") : width;
    json_["sliding_window"] = integer("attention.sliding_window", 4096);
    if (is("gemma2")) {
      json_["attn_logit_softcapping"] = number("attn_logit_softcapping", 50.0);
      json_["final_logit_softcapping"] = number("final_logit_softcapping", 30.0);
    } else {
      json_["sliding_window_pattern"] = 6;
      json_["rope_local_base_freq"] = number("rope.freq_base_swa", 1e4);
    }
  }

  void add_rope(double usual_theta) {
    json_["rope_theta"] = number("rope.freq_base", usual_theta);
    const int64_t width = head_width(), n_turned = integer("rope.dimension_count", width);
    if (is("phi3"))
      json_["partial_rotary_factor"] = static_cast<double>(n_turned) / static_cast<double>(width);
    else if (n_turned != width)
      keys_.refuse(fmt::format("turns {} of {} elements of each head", n_turned, width));
    const Json scaling = scaling_of();
    if (scaling.is_null()) return;
    json_["rope_scaling"] = scaling;
    if (is("phi3"))
      json_["original_max_position_embeddings"] =
          integer("rope.scaling.original_context_length", integer("context_length"));
  }

  /** rope_scaling; null where there is none. */
  Json scaling_of() const {
    if (const GgufTensor* divisors = file_.find("rope_freqs.weight")) return llama3_of(*divisors);
    const GgufTensor *longer = file_.find("rope_factors_long.weight"),
                     *shorter = file_.find("rope_factors_short.weight");
    if (longer && shorter)
      return {{"type", "longrope"},
              {"short_factor", values_of(*shorter)},
              {"long_factor", values_of(*longer)}};
    const std::string type = keys_.text(own("rope.scaling.type"), "none");
    if (type == "none") return {};
    if (type == "linear")
      return {{"rope_type", "linear"}, {"factor", number("rope.scaling.factor")}};
    if (type == "yarn")
      return {{"rope_type", "yarn"},
              {"factor", number("rope.scaling.factor")},
              {"original_max_position_embeddings", integer("rope.scaling.original_context_length")},
              {"beta_fast", number("rope.scaling.yarn_beta_fast", 32.0)},
              {"beta_slow", number("rope.scaling.yarn_beta_slow", 1.0)}};
    keys_.refuse(fmt::format("scales rotary positions as {}, which Ferry does not read", type));
  }

  /** The numbers of Llama 3's scaling, of which a file has divisors of the frequencies alone: those
   * of its releases, and of texts of other lengths, are tried. */
  Json llama3_of(const GgufTensor& divisors) const {
    const std::vector<double> given = values_of(divisors);
    const double theta = number("rope.freq_base", 1e4), low = 1, high = 4;
    const double factor = *std::ranges::max_element(given);
    for (int64_t original = 8192, n = 0; n < 24; ++n) {
      if (n > 0) original = int64_t{16} << n;
      bool is_same = true;
      for (size_t i = 0; i < given.size() && is_same; ++i) {
        const double wave =
            2 * std::numbers::pi *
            std::pow(theta, static_cast<double>(i) / static_cast<double>(given.size()));
        const auto length = static_cast<double>(original);
        const double smooth = (length / wave - low) / (high - low);
        const double between = 1 / ((1 - smooth) / factor + smooth);
        const double expected = wave < length / high ? 1 : wave > length / low ? factor : between;
        is_same = std::abs(given[i] - expected) <= 1e-4 * expected;
      }
      if (is_same)
        return {{"rope_type", "llama3"},
                {"factor", factor},
                {"low_freq_factor", low},
                {"high_freq_factor", high},
                {"original_max_position_embeddings", original}};
    }
    keys_.refuse("has factors of rotary positions (rope_freqs.weight) that are none of Llama 3's",
                 "take the model's Hugging Face directory, which says what they are made of");
  }

  void add_special_ids() {
    for (const auto& [key, its] :
         {std::pair{"bos", "bos_token_id"}, {"eos", "eos_token_id"}, {"padding", "pad_token_id"}}) {
      const std::string name = fmt::format("tokenizer.ggml.{}_token_id", key);
      const int64_t id = keys_.integer(name, -1);
      if (id >= 0 && id < json_["vocab_size"].get<int64_t>()) json_[its] = id;
    }
    // The default of some families is a row that another token has.
    if (!json_.contains("pad_token_id")) json_["pad_token_id"] = nullptr;
  }

  std::string dtype() const {
    const auto largest = std::ranges::max_element(
        file_.tensors(), {}, [](const GgufTensor& tensor) { return tensor.bytes.size(); });
    return largest->type == GgufType::f16    ? "float16"
           : largest->type == GgufType::bf16 ? "bfloat16"
                                             : "float32";
  }

  /** The storages of quantised matrices, by Hugging Face's names of tensors. */
  void add_storages() {
    auto storages = Json::object();
    for (const GgufTensor& tensor : file_.tensors())
      if (const std::string_view storage = gguf_storage(tensor.type); !storage.empty())
        storages[names_.hf_name(tensor.name)] = storage;
    if (!storages.empty())
      json_["quantization_config"] = {{"quant_method", "gguf"}, {"storages", std::move(storages)}};
  }

  const GgufFile& file_;
  GgufKeyReader keys_;
  std::string architecture_;
  const GgufNames& names_;
  Json json_;
};

}  // namespace

nlohmann::ordered_json gguf_config(const GgufFile& file) {
  return ConfigOfGguf(file).read();
}

}  // namespace ferry
