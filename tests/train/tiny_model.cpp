#include "tests/train/tiny_model.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "models/family.h"
#include "src/files/safetensors/safetensors_writer.h"

namespace ferry::test {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kColours = {"red", "green", "blue"};
const std::vector<std::string> kWords = {"the", "a",    "car", "house", "bird", "was",
                                         "is",  "very", "old", "and",   "new",  "near"};

const std::vector<std::string> kOtherWords = {"the", "a",  "house", "bird",
                                              "was", "is", "very",  "old"};

std::vector<std::string> vocabulary() {
  std::vector<std::string> words = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  words.insert(words.end(), kColours.begin(), kColours.end());
  words.insert(words.end(), kWords.begin(), kWords.end());
  return words;
}

/** Random weights but for heads, which are left to be drawn. */
void write_weights(const fs::path& file, const ModelTable& table) {
  std::vector<TensorSpec> specs;
  for (const HfEntry& entry : table.hf_names)
    if (!entry.optional) specs.emplace_back(entry.hf_name, DType::f32, entry.hf_shape);
  SafetensorsWriter writer(file, specs);
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0.0f, 0.1f);
  for (const HfEntry& entry : table.hf_names) {
    if (entry.optional) continue;
    const ParamSpec& param = table.param_of(entry);
    std::vector<float> values(
        static_cast<size_t>(entry.rows * (param.n_elements / param.shape[0])));
    for (float& v : values)
      v = (param.init == Init::ones ? 1.0f : 0.0f) + normal(random);
    writer.write(entry.hf_name, std::as_bytes(std::span(values)));
  }
  writer.finish();
}

void write_model(const fs::path& directory, const nlohmann::json& config, HeadKind head) {
  fs::create_directories(directory);
  std::ofstream words(directory / "vocab.txt");
  for (const std::string& word : vocabulary())
    words << word << "\n";
  std::ofstream(directory / "tokenizer_config.json") << R"({"do_lower_case": true})";
  std::ofstream(directory / "config.json") << config.dump(2);
  const auto fields = JsonReader::of(config, {"config.json", "model.config", ""});
  write_weights(directory / "model.safetensors", make_table(fields, {.head = head}));
}

}  // namespace

void write_tiny_model(const fs::path& directory) {
  const nlohmann::json config = {{"model_type", "bert"},
                                 {"architectures", {"BertModel"}},
                                 {"vocab_size", vocabulary().size()},
                                 {"hidden_size", 32},
                                 {"num_hidden_layers", 2},
                                 {"num_attention_heads", 2},
                                 {"intermediate_size", 64},
                                 {"max_position_embeddings", 32},
                                 {"type_vocab_size", 2},
                                 {"hidden_act", "gelu"},
                                 {"layer_norm_eps", 1e-12},
                                 {"hidden_dropout_prob", 0.1},
                                 {"attention_probs_dropout_prob", 0.1},
                                 {"pad_token_id", 0},
                                 {"initializer_range", 0.1}};
  write_model(directory, config, HeadKind::classification);
}

void write_tiny_decoder(const fs::path& directory) {
  const nlohmann::json config = {{"model_type", "llama"},
                                 {"architectures", {"LlamaForCausalLM"}},
                                 {"vocab_size", vocabulary().size()},
                                 {"hidden_size", 32},
                                 {"num_hidden_layers", 2},
                                 {"num_attention_heads", 2},
                                 {"intermediate_size", 64},
                                 {"max_position_embeddings", 32},
                                 {"initializer_range", 0.1}};
  write_model(directory, config, HeadKind::causal_lm);
}

void write_tiny_language_model(const fs::path& directory) {
  nlohmann::json words = {{"[UNK]", 0}, {"[BOS]", 1}, {"[EOS]", 2}};
  for (const auto* some : {&kColours, &kWords})
    for (const std::string& word : *some)
      words[word] = words.size();
  const nlohmann::json config = {
      {"model_type", "llama"},         {"architectures", {"LlamaForCausalLM"}},
      {"vocab_size", words.size()},    {"hidden_size", 32},
      {"num_hidden_layers", 2},        {"num_attention_heads", 4},
      {"num_key_value_heads", 2},      {"intermediate_size", 64},
      {"max_position_embeddings", 64}, {"attention_dropout", 0.1},
      {"tie_word_embeddings", true},   {"eos_token_id", 2},
      {"initializer_range", 0.1}};
  write_model(directory, config, HeadKind::causal_lm);
  fs::remove(directory / "vocab.txt");
  const nlohmann::json tokenizer = {{"version", "1.0"},
                                    {"added_tokens", nlohmann::json::array()},
                                    {"normalizer", nullptr},
                                    {"pre_tokenizer", {{"type", "Whitespace"}}},
                                    {"post_processor", nullptr},
                                    {"decoder", nullptr},
                                    {"model",
                                     {{"type", "WordPiece"},
                                      {"unk_token", "[UNK]"},
                                      {"continuing_subword_prefix", "##"},
                                      {"max_input_chars_per_word", 100},
                                      {"vocab", words}}}};
  std::ofstream(directory / "tokenizer.json") << tokenizer.dump(1);
  std::ofstream(directory / "tokenizer_config.json") << R"({"eos_token": "[EOS]"})";
}

void write_tiny_chat_model(const fs::path& directory) {
  write_tiny_language_model(directory);
  nlohmann::json tokenizer = nlohmann::json::parse(std::ifstream(directory / "tokenizer.json"));
  for (const auto& [text, id] : {std::pair{"[BOS]", 1}, {"[EOS]", 2}})
    tokenizer["added_tokens"].push_back({{"id", id},
                                         {"content", text},
                                         {"single_word", false},
                                         {"lstrip", false},
                                         {"rstrip", false},
                                         {"normalized", false},
                                         {"special", true}});
  std::ofstream(directory / "tokenizer.json") << tokenizer.dump();
  std::ofstream(directory / "chat_template.jinja")
      << "{% for m in messages %}{% if m.role == 'system' %}a {{ m.content }}"
         "{% else %}{{ '[BOS]' if m.role == 'user' else 'is' }} {{ m.content }} [EOS]{% endif %}"
         "{% endfor %}{% if add_generation_prompt %}is{% endif %}";
}

void write_tiny_data(const fs::path& file, int n, unsigned seed) {
  std::mt19937 random(seed);
  std::ofstream out(file);
  out << "text\tlabel\n";
  for (int i = 0; i < n; ++i) {
    const std::string& colour = kColours[random() % kColours.size()];
    std::string text;
    const unsigned n_words = 2 + random() % 6, where = random() % n_words;
    for (unsigned w = 0; w < n_words; ++w)
      text += (w == where ? colour : kWords[random() % kWords.size()]) + " ";
    text.pop_back();
    out << text << "\t" << colour << "\n";
  }
}

void write_tiny_scores(const fs::path& file, int n, unsigned seed) {
  std::mt19937 random(seed);
  std::ofstream out(file);
  out << "text\tscore\n";
  for (int i = 0; i < n; ++i) {
    const size_t colour = random() % kColours.size();
    out << kWords[random() % kWords.size()] << " " << kColours[colour] << "\t" << colour << ".5\n";
  }
}

void write_tiny_label_lists(const fs::path& file, int n, unsigned seed) {
  std::mt19937 random(seed);
  std::ofstream out(file);
  for (int i = 0; i < n; ++i) {
    nlohmann::json labels = nlohmann::json::array();
    std::string text = kWords[random() % kWords.size()];
    for (const std::string& colour : kColours)
      if (random() % 2) {
        text += " " + colour;
        labels.push_back(colour);
      }
    out << nlohmann::json{{"text", text}, {"label", labels}} << "\n";
  }
}

void write_tiny_tags(const fs::path& file, int n, unsigned seed) {
  std::mt19937 random(seed);
  std::ofstream out(file);
  for (int i = 0; i < n; ++i) {
    nlohmann::json words, tags;
    for (unsigned w = 0; w < 3 + random() % 4; ++w) {
      const bool is_colour = random() % 3 == 0;
      words.push_back(is_colour ? kColours[random() % 3]
                                : kOtherWords[random() % kOtherWords.size()]);
      tags.push_back(is_colour ? "B-COL" : "O");
      if (!is_colour || random() % 2) continue;
      words.push_back("car");
      tags.push_back("I-COL");
    }
    out << nlohmann::json{{"tokens", words}, {"ner_tags", tags}} << "\n";
  }
}

void write_tiny_questions(const fs::path& file, int n, unsigned seed) {
  std::mt19937 random(seed);
  std::ofstream out(file);
  for (int i = 0; i < n; ++i) {
    std::string context, colour;
    const unsigned n_words = 5 + random() % 30, where = random() % (n_words + n_words / 4);
    size_t start = 0;
    for (unsigned w = 0; w < n_words; ++w) {
      if (w > 0) context += ' ';
      if (w == where) colour = kColours[random() % 3], start = context.size();
      context += w == where ? colour : kOtherWords[random() % kOtherWords.size()];
    }
    nlohmann::json texts = nlohmann::json::array(), starts = nlohmann::json::array();
    if (!colour.empty()) texts.push_back(colour), starts.push_back(start);
    out << nlohmann::json{{"id", "q" + std::to_string(i)},
                          {"question", "the car is"},
                          {"context", context},
                          {"answers", {{"text", texts}, {"answer_start", starts}}}}
        << "\n";
  }
}

void write_tiny_documents(const fs::path& file, int n, unsigned seed) {
  const std::vector<std::string> words = {"the", "old", "red", "car", "is", "near", "a", "bird"};
  std::mt19937 random(seed);
  std::ofstream out(file);
  for (int i = 0; i < n; ++i) {
    std::string text;
    for (unsigned w = random() % 4, end = w + 2 + random() % 12; w < end; ++w)
      text += (text.empty() ? "" : " ") + words[w % words.size()];
    out << nlohmann::json{{"text", text}} << "\n";
  }
}

}  // namespace ferry::test
