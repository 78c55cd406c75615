#include "src/chat/encoder.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/error.h"
#include "src/base/json/json_reader.h"
#include "src/chat/template_source.h"
#include "src/data/content_hash.h"
#include "src/files/hf/end_ids.h"
#include "src/files/hf/hf_directory.h"
#include "src/files/plain_file.h"

namespace ferry::chat {
namespace {

namespace fs = std::filesystem;

/** The tokens that end a text by generation_config.json, and the tokenizer's own. */
std::vector<std::string> end_texts_of(const fs::path& file, const Tokenizer& tokenizer) {
  std::vector<std::string> texts;
  const auto add = [&](int32_t id) {
    if (id < 0 || id >= tokenizer.vocab_size()) return;
    const std::string& text = tokenizer.id_to_token(id);
    if (!text.empty() && std::ranges::count(texts, text) == 0) texts.push_back(text);
  };
  add(tokenizer.special_ids().eos);
  if (!path_exists(file)) return texts;
  const auto config = JsonReader::parse(read_text_file(file),
                                        {file.string(), "chat.template", "remove or mend it"});
  std::ranges::for_each(end_ids_in(config), add);
  return texts;
}

Json variables_of(const ChatSettings& settings,
                  const fs::path& directory,
                  const Tokenizer& tokenizer) {
  Json variables = special_tokens_in(directory);
  const auto add = [&](const char* name, int32_t id) {
    if (!variables.contains(name) && id >= 0) variables[name] = tokenizer.id_to_token(id);
  };
  add("bos_token", tokenizer.special_ids().bos);
  add("eos_token", tokenizer.special_ids().eos);
  for (const auto& [name, value] : settings.template_variables.items())
    variables[name] = value;
  return variables;
}

TemplateSource own_template(const ModelFiles& model) {
  if (auto source = template_of_model(model.tokenizer)) return std::move(*source);
  throw Error(Fault::data, "chat.template",
              fmt::format("'{}' has no chat template", model.tokenizer.string()),
              "name one with --chat-template: a .jinja file, or alpaca, chatml, llama3, vicuna or "
              "zephyr");
}

/** The tokens that overlap a range of bytes, as transformers' masks have it. */
text::Span tokens_in(const std::vector<text::Span>& spans, text::Span bytes) {
  const auto begin =
      std::ranges::find_if(spans, [&](const text::Span& span) { return span.end > bytes.begin; });
  const auto end = std::find_if(begin, spans.end(),
                                [&](const text::Span& span) { return span.begin >= bytes.end; });
  return text::span_of(static_cast<size_t>(begin - spans.begin()),
                       static_cast<size_t>(end - spans.begin()));
}

/** Appends the tokens of a rendered chat, and gives the bytes of each. */
std::vector<text::Span> append(const RenderedChat& chat,
                               const Tokenizer& tokenizer,
                               std::vector<int32_t>& ids) {
  std::vector<text::Span> spans;
  const std::string_view text = chat.text;
  size_t begin = 0;
  for (size_t i = 0; i <= chat.cuts.size(); ++i) {
    const size_t end = i < chat.cuts.size() ? chat.cuts[i] : text.size();
    const size_t first = spans.size();
    if (begin < end)
      tokenizer.append_spans(text.substr(begin, end - begin), ids, spans, /*continues=*/i > 0);
    for (size_t t = first; t < spans.size(); ++t)
      spans[t] = text::span_of(spans[t].begin + begin, spans[t].end + begin);
    begin = end;
  }
  return spans;
}

}  // namespace

ModelFiles::ModelFiles(const fs::path& directory)
    : tokenizer(directory), generation_config(directory / kGenerationConfigName) {}

ModelFiles::ModelFiles(const HfDirectory& model)
    : tokenizer(model.tokenizer()), generation_config(model.file(kGenerationConfigName)) {}

ChatEncoder::ChatEncoder(const ChatSettings& settings,
                         const ModelFiles& model,
                         const Tokenizer& tokenizer)
    : settings_(settings) {
  std::optional<TemplateSource> named;
  if (settings.chat_template != "model") named = template_named(settings.chat_template);
  open([&] { return named ? *named : own_template(model); }, model, tokenizer);
}

ChatEncoder::ChatEncoder(const ChatSettings& settings,
                         const TemplateSource& source,
                         const ModelFiles& model,
                         const Tokenizer& tokenizer)
    : settings_(settings) {
  open([&] { return source; }, model, tokenizer);
}

void ChatEncoder::open(const std::function<TemplateSource()>& find,
                       const ModelFiles& model,
                       const Tokenizer& tokenizer) {
  try {
    const TemplateSource source = find();
    template_text_ = source.text;
    TemplateUse use = {.chat = ChatTemplate::parse(source.text, source.name),
                       .with_tools = nullptr,
                       .variables = variables_of(settings_, model.tokenizer, tokenizer),
                       .now = settings_.now,
                       .control_texts = tokenizer.control_texts(),
                       .end_texts = end_texts_of(model.generation_config, tokenizer)};
    if (!source.tools_text.empty())
      use.with_tools = ChatTemplate::parse(source.tools_text, source.name + " (tool_use)");
    renderer_.emplace(std::move(use));
  } catch (const Error&) {
    fault_ = std::current_exception();
  }
}

bool ChatEncoder::tells_date() const {
  if (!renderer_) return false;
  const TemplateUse& use = renderer_->use();
  return use.chat->tells_date() || (use.with_tools && use.with_tools->tells_date());
}

uint64_t ChatEncoder::key() const {
  ContentHash hash;
  hash.add_text(template_text_);
  hash.add_number(static_cast<uint64_t>(settings_.train_on));
  hash.add_number(settings_.takes_prompts);
  if (!renderer_) return hash.value();
  const TemplateUse& use = renderer_->use();
  hash.add_text(use.with_tools ? use.with_tools->source() : "");
  hash.add_text(use.variables.dump());
  if (tells_date()) hash.add_number(static_cast<uint64_t>(use.now));
  for (const std::string& text : use.end_texts)
    hash.add_text(text);
  return hash.value();
}

std::optional<EncodedChat> ChatEncoder::encode(const Conversation& conversation,
                                               const Tokenizer& tokenizer,
                                               int64_t max_length,
                                               const std::string& place) const {
  if (!renderer_) std::rethrow_exception(fault_);
  const RenderedChat chat = renderer_->render(conversation, settings_.train_on, place);
  EncodedChat out;
  const std::vector<text::Span> spans = append(chat, tokenizer, out.ids);
  if (!chat.cuts.empty()) {
    const std::lock_guard lock(mutex_);
    ++n_with_controls_;
    // The first by name and line, whichever thread saw it first.
    const auto is_before = [](const std::string& a, const std::string& b) {
      return a.size() != b.size() ? a.size() < b.size() : a < b;
    };
    if (first_with_controls_.empty() || is_before(place, first_with_controls_))
      first_with_controls_ = place;
  }
  for (const text::Span& answer : chat.answers)
    if (const text::Span tokens = tokens_in(spans, answer); tokens.begin < tokens.end)
      out.answers.push_back(tokens);
  if (out.answers.empty())
    throw Error(Fault::data, "chat.mask", fmt::format("{}: the answers have no tokens", place),
                "leave the row out");
  // A text without an end would not teach the model to stop.
  const int32_t eos = tokenizer.special_ids().eos;
  if (out.answers.back().end == out.ids.size() && eos >= 0 &&
      !tokenizer.is_control(out.ids.back())) {
    out.ids.push_back(eos);
    ++out.answers.back().end;
  }
  const auto length = static_cast<size_t>(max_length);
  if (out.ids.size() <= length) return out;
  out.was_cut = true;
  if (settings_.train_on == TrainOn::all) {
    out.ids.resize(length);
    out.answers.back().end = static_cast<uint32_t>(length);
    return out;
  }
  std::vector<text::Span> whole;
  for (const text::Span& answer : out.answers)
    if (answer.end <= length) whole.push_back(answer);
  if (whole.empty()) {
    text::Span first = out.answers.front();
    if (first.begin >= length) return std::nullopt;
    first.end = static_cast<uint32_t>(length);
    whole.push_back(first);
  }
  out.answers = std::move(whole);
  out.ids.resize(out.answers.back().end);
  return out;
}

std::optional<std::string> ChatEncoder::rendering(const Conversation& conversation,
                                                  const std::string& place) const {
  if (!renderer_) return std::nullopt;
  try {
    return renderer_->render(conversation, TrainOn::all, place).text;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::vector<int32_t> ChatEncoder::ask(const Conversation& conversation,
                                      const Tokenizer& tokenizer,
                                      const std::string& place) const {
  if (!renderer_) std::rethrow_exception(fault_);
  std::vector<int32_t> ids;
  append(renderer_->ask(conversation, place), tokenizer, ids);
  return ids;
}

int32_t ChatEncoder::end_of_answer(const Tokenizer& tokenizer) const {
  if (!renderer_) return -1;
  Conversation chat;
  chat.turns = {{.role = std::string(kUser), .text = "?"},
                {.role = std::string(kAssistant), .text = "!"}};
  try {
    const RenderedChat rendered = renderer_->render(chat, TrainOn::each, "a chat");
    std::vector<int32_t> ids;
    const std::vector<text::Span> spans = append(rendered, tokenizer, ids);
    const text::Span answer = tokens_in(spans, rendered.answers.back());
    const int32_t last = answer.begin < answer.end ? ids[answer.end - 1] : -1;
    return last >= 0 && tokenizer.is_control(last) ? last : -1;
  } catch (const Error&) {
    return -1;
  }
}

std::vector<std::string> ChatEncoder::take_notes() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> notes;
  if (n_with_controls_ > 0)
    notes.push_back(fmt::format(
        "warning: {} chat{} control tokens of the model in what people wrote, the first is {}: "
        "they "
        "are read as plain text",
        n_with_controls_, n_with_controls_ == 1 ? " has" : "s have", first_with_controls_));
  n_with_controls_ = 0;
  first_with_controls_.clear();
  return notes;
}

}  // namespace ferry::chat
