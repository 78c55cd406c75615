#include "src/chat/renderer.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/error.h"
#include "src/base/utf8.h"

namespace ferry::chat {
namespace {

/** Stands in a text where it has to be cut: a code point that no text has (Unicode 23.7). */
constexpr std::string_view kCut = "\uFDD2";

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = std::min(text.find_first_not_of(kSpace), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

size_t common_start(std::string_view a, std::string_view b) {
  const auto same = std::ranges::mismatch(a, b);
  size_t n = static_cast<size_t>(same.in1 - a.begin());
  // Not inside of a character.
  while (n > 0 && n < a.size() && (static_cast<unsigned char>(a[n]) & 0xc0) == 0x80)
    --n;
  return n;
}

size_t common_end(std::string_view a, std::string_view b) {
  size_t n = 0;
  while (n < a.size() && n < b.size() && a[a.size() - 1 - n] == b[b.size() - 1 - n])
    ++n;
  while (n > 0 && (static_cast<unsigned char>(a[a.size() - n]) & 0xc0) == 0x80)
    --n;
  return n;
}

/** Puts cuts into every text of a value that holds a control token. */
class Cutting {
 public:
  explicit Cutting(const std::vector<std::string>& controls) : controls_(controls) {}

  void cut(std::string& text) {
    for (const std::string& control : controls_) {
      const size_t n_first = first_size(control);
      // One character alone cannot be cut.
      if (n_first == control.size()) continue;
      for (size_t at = 0; (at = text.find(control, at)) != text.npos; at += kCut.size() + 1) {
        text.insert(at + n_first, kCut);
        any_ = true;
      }
    }
  }
  void cut(Json& value) {
    if (value.is_string()) {
      cut(value.get_ref<std::string&>());
    } else if (value.is_structured()) {
      for (auto& item : value)
        cut(item);
    }
  }
  bool any() const { return any_; }

 private:
  static size_t first_size(const std::string& text) {
    size_t n = 1;
    while (n < text.size() && (static_cast<unsigned char>(text[n]) & 0xc0) == 0x80)
      ++n;
    return n;
  }

  const std::vector<std::string>& controls_;
  bool any_ = false;
};

/** Renders the parts of one conversation, in one form of arguments. */
class Job {
 public:
  Job(const TemplateUse& use, const Conversation& conversation, const std::string& place)
      : use_(use),
        chat_(conversation.tools.is_null() || !use.with_tools ? *use.chat : *use.with_tools),
        conversation_(conversation),
        place_(place) {
    Cutting cutting(use.control_texts);
    for (Turn& turn : conversation_.turns) {
      if (turn.text) cutting.cut(*turn.text);
      cutting.cut(turn.thinking);
      cutting.cut(turn.name);
      for (ToolCall& call : turn.calls)
        cutting.cut(call.arguments);
    }
    cutting.cut(conversation_.tools);
    has_cuts_ = cutting.any();
  }

  RenderedChat run(TrainOn on) {
    render_whole(/*asks=*/false);
    RenderedChat out;
    if (on == TrainOn::all) {
      out.answers.push_back(text::span_of(0, whole_.text.size()));
    } else if (on == TrainOn::each && chat_.marks_answers() && are_all_trained()) {
      const std::vector<size_t> turns = trained_turns(on);
      if (turns.size() == whole_.generated.size())
        for (size_t i = 0; i < turns.size(); ++i)
          check_shows(turns[i], whole_.generated[i]);
      for (const text::Span& span : whole_.generated)
        out.answers.push_back(with_end(span, /*by_any=*/false));
      if (out.answers.empty()) refuse_mask("it marks none");
    } else {
      for (const size_t turn : trained_turns(on))
        out.answers.push_back(span_of_answer(turn));
      for (size_t i = 0; i < out.answers.size(); ++i)
        if (out.answers[i].begin >= out.answers[i].end ||
            (i > 0 && out.answers[i].begin < out.answers[i - 1].end))
          refuse_mask("its answers are not apart");
    }
    out.text = std::move(whole_.text);
    take_cuts(out);
    return out;
  }

  RenderedChat ask() {
    render_whole(/*asks=*/true);
    RenderedChat out = {.text = std::move(whole_.text)};
    take_cuts(out);
    return out;
  }

 private:
  [[noreturn]] void refuse_mask(std::string_view why) const {
    throw Error(
        Fault::data, "chat.mask",
        fmt::format("{}: the template '{}' does not show which part of the text is the answer: {}",
                    place_, chat_.name(), why),
        "take one with {% generation %} marks (--chat-template FILE), or train on all of the text "
        "with --train-on-turns all");
  }

  Json variables(Json messages, bool asks) const {
    Json all = use_.variables;
    all["messages"] = std::move(messages);
    if (!all.contains("tools")) all["tools"] = conversation_.tools;
    if (!all.contains("documents")) all["documents"] = nullptr;
    all["add_generation_prompt"] = asks;
    return all;
  }

  Rendering render(Json messages, bool asks) const {
    Rendering out = chat_.render(variables(std::move(messages), asks), use_.now);
    if (has_cuts_ && out.text.find("\\ufdd2") != out.text.npos)
      throw TemplateRaised("it writes texts with control tokens in them as escaped JSON");
    return out;
  }

  /** The first n turns, and with `asks` the beginning of an answer. Null where the template refuses
   * them. */
  std::optional<std::string> try_turns(size_t n, bool asks) const {
    if (n == 0) return std::nullopt;
    try {
      return render(conversation_.messages(form_, n), asks).text;
    } catch (const TemplateRaised&) {
      return std::nullopt;
    }
  }

  void render_whole(bool asks) {
    const size_t n = conversation_.turns.size();
    try {
      whole_ = render(conversation_.messages(form_, n), asks);
      return;
    } catch (const TemplateRaised& e) {
      if (!has_arguments()) refuse_chat(e.what());
      form_ = Arguments::as_texts;
      try {
        whole_ = render(conversation_.messages(form_, n), asks);
      } catch (const TemplateRaised&) {
        refuse_chat(e.what());
      }
    }
  }

  bool has_arguments() const {
    return std::ranges::any_of(conversation_.turns, [](const Turn& t) { return !t.calls.empty(); });
  }

  [[noreturn]] void refuse_chat(std::string_view why) const {
    throw Error(
        Fault::data, "chat.template",
        fmt::format("{}: the template '{}' refuses the chat: {}", place_, chat_.name(), why),
        "mend or leave out what it refuses, or take another template with --chat-template");
  }

  bool are_all_trained() const {
    return std::ranges::all_of(conversation_.turns,
                               [](const Turn& t) { return !t.is_answer() || t.is_trained; });
  }

  std::vector<size_t> trained_turns(TrainOn on) const {
    std::vector<size_t> all;
    for (size_t i = 0; i < conversation_.turns.size(); ++i)
      if (conversation_.turns[i].is_answer() && conversation_.turns[i].is_trained) all.push_back(i);
    if (on == TrainOn::last) all.erase(all.begin(), all.end() - 1);
    return all;
  }

  text::Span span_of_answer(size_t turn) const {
    return chat_.marks_answers() ? marked_span(turn) : found_span(turn);
  }

  /** By the template's own marks, one for each answer. */
  text::Span marked_span(size_t turn) const {
    const size_t n = conversation_.n_answers();
    if (whole_.generated.size() != n)
      refuse_mask(fmt::format("it marks {} parts of {} answers", whole_.generated.size(), n));
    size_t i = 0;
    for (size_t t = 0; t < turn; ++t)
      i += conversation_.turns[t].is_answer();
    check_shows(turn, whole_.generated[i]);
    return with_end(whole_.generated[i], /*by_any=*/false);
  }

  /** The text up to the answer is what the model is asked with, where the template begins answers
   * so. */
  text::Span found_span(size_t turn) const {
    const std::string& text = whole_.text;
    const auto asked = try_turns(turn, true);
    if (!asked || !text.starts_with(*asked)) return span_of_text(turn);
    const size_t begin = asked->size();
    size_t end = text.size();
    if (turn + 1 < conversation_.turns.size()) {
      const auto answered = try_turns(turn + 1, false);
      if (!answered || !answered->starts_with(*asked)) return span_of_text(turn);
      end = text.starts_with(*answered) ? answered->size() : end_by_token(*answered, begin);
    } else {
      end = end_before_more(begin);
    }
    const text::Span span = with_end(text::span_of(begin, end), /*by_any=*/true);
    check_shows(turn, span);
    return span;
  }

  /** The end of an answer that is written in another way where turns follow it: `answered` is the
   * text that ends with it. */
  size_t end_by_token(std::string_view answered, size_t begin) const {
    const std::string_view text = whole_.text;
    const size_t same = same_start(answered, text);
    // Only what stands behind the answer's end is another.
    if (same > begin && !last_control(text.substr(begin, same - begin)).empty()) return same;
    const std::string_view token = last_control(answered.substr(begin));
    if (token.empty()) refuse_mask("an earlier answer is written in another way than the last one");
    // Only the token that ends it is another.
    if (same > begin && trimmed(answered.substr(same)) == token)
      if (const std::string_view other = first_control(text.substr(same)); !other.empty())
        return same + other.size();
    const size_t at = text.find(token, begin);
    if (at == text.npos) refuse_mask("an earlier answer has no end");
    return at + token.size();
  }

  /** The end of the last answer: without what ends the whole text behind it. */
  size_t end_before_more(size_t begin) const {
    const std::string_view text = whole_.text;
    Json messages = conversation_.messages(form_, conversation_.turns.size());
    messages.push_back({{"role", kUser}, {"content", "?"}});
    try {
      const std::string more = render(std::move(messages), false).text;
      const size_t same = same_start(more, text);
      if (same > begin && !last_control(text.substr(begin, same - begin)).empty()) return same;
    } catch (const TemplateRaised&) {  // it takes no further turn
    }
    return text.size();
  }

  /** The place at which two texts part, before a control token that one of them has there. */
  size_t same_start(std::string_view a, std::string_view b) const {
    const size_t same = common_start(a, b);
    size_t longest = 0;
    for (const std::string& control : use_.control_texts)
      longest = std::max(longest, control.size());
    for (size_t back = std::min(same, longest); back > 0; --back)
      for (const std::string_view text : {a, b})
        if (first_control(text.substr(same - back)).size() > back) return same - back;
    return same;
  }

  /** The control token that a text begins with; empty for none. */
  std::string_view first_control(std::string_view text) const {
    for (const std::string& control : use_.control_texts)
      if (text.starts_with(control)) return text.substr(0, control.size());
    return {};
  }

  /** The control token at the end of a text, but for white space; empty for none. */
  std::string_view last_control(std::string_view text) const {
    while (!text.empty() && std::string_view(" \t\r\n").find(text.back()) != text.npos)
      text.remove_suffix(1);
    std::string_view longest;
    for (const std::string& control : use_.control_texts)
      if (text.ends_with(control) && control.size() > longest.size())
        longest = text.substr(text.size() - control.size());
    return longest;
  }

  /** By what changes where the answer's text does. */
  text::Span span_of_text(size_t turn) const {
    const Turn& answer = conversation_.turns[turn];
    const bool has_hidden =
        !answer.thinking.empty() && whole_.text.find(trimmed(answer.thinking)) != std::string::npos;
    if (!answer.text || !answer.calls.empty() || has_hidden)
      refuse_mask("an answer with a call or with thinking begins in another way than it is asked");
    std::string changed[2];
    constexpr const char* kWords[] = {"Qzq 1a", "Xkx 2b"};
    for (int i = 0; i < 2; ++i) {
      Json messages = conversation_.messages(form_, conversation_.turns.size());
      messages[turn]["content"] = kWords[i];
      try {
        changed[i] = render(std::move(messages), false).text;
      } catch (const TemplateRaised& e) {
        refuse_mask(e.what());
      }
    }
    const std::string_view text = whole_.text;
    const size_t n_before = common_start(changed[0], changed[1]),
                 n_behind = common_end(changed[0], changed[1]);
    const bool is_there =
        n_before + n_behind <= text.size() &&
        text.starts_with(std::string_view(changed[0]).substr(0, n_before)) &&
        text.ends_with(std::string_view(changed[0]).substr(changed[0].size() - n_behind)) &&
        changed[0].size() == n_before + std::string_view(kWords[0]).size() + n_behind;
    if (!is_there) refuse_mask("its text goes by what an answer says");
    const text::Span shown = text::span_of(n_before, text.size() - n_behind);
    const std::string_view said = trimmed(*answer.text),
                           seen = trimmed(text.substr(shown.begin, shown.size()));
    if (seen.empty() || !said.ends_with(seen)) refuse_mask("it changes an answer's text");
    return with_end(shown, /*by_any=*/true);
  }

  /** The answer with the token that ends it, and nothing behind that. `by_any`: a control token
   * that follows at once ends it, as the next turn's does where answers are written without an end
   * (GLM). */
  text::Span with_end(text::Span span, bool by_any) const {
    const std::string_view text = whole_.text;
    const std::string_view inside = text.substr(span.begin, span.size());
    if (const std::string_view token = last_control(inside); !token.empty()) {
      // A template's own marks say how far an answer goes.
      if (!chat_.marks_answers())
        span.end = span.begin + static_cast<uint32_t>(token.data() - inside.data() + token.size());
      return span;
    }
    const std::string_view rest = text.substr(span.end);
    if (by_any) {
      span.end += static_cast<uint32_t>(first_control(rest).size());
      return span;
    }
    const size_t n_space = std::min(rest.find_first_not_of(" \t\r\n"), rest.size());
    for (const std::string& end : use_.end_texts)
      if (rest.substr(n_space).starts_with(end))
        return text::span_of(span.begin, span.end + n_space + end.size());
    return span;
  }

  /** A template that leaves the answer out would train its frame alone. */
  void check_shows(size_t turn, text::Span span) const {
    const Turn& answer = conversation_.turns[turn];
    const std::string_view seen = std::string_view(whole_.text).substr(span.begin, span.size());
    for (const ToolCall& call : answer.calls)
      if (seen.find(call.name) == seen.npos) refuse_mask("it leaves out a call of a tool");
    // A template's own marks are about what it writes, in whichever way.
    if (!answer.text || !answer.calls.empty() || chat_.marks_answers()) return;
    std::string_view said = trimmed(*answer.text);
    // Thinking inside of a text is what templates take out.
    if (const size_t at = said.rfind("</think>"); at != said.npos)
      said = trimmed(said.substr(at + 8));
    if (seen.find(said) == seen.npos) refuse_mask("it leaves out or changes an answer's text");
  }

  /** Takes the cuts out of the text, and remembers where they were. */
  void take_cuts(RenderedChat& out) const {
    if (!has_cuts_) return;
    std::string text;
    size_t at = 0;
    std::vector<uint32_t> before;  // bytes of the text that had a cut, and are before it
    for (size_t found; (found = out.text.find(kCut, at)) != out.text.npos;
         at = found + kCut.size()) {
      text.append(out.text, at, found - at);
      out.cuts.push_back(static_cast<uint32_t>(text.size()));
      before.push_back(static_cast<uint32_t>(found));
    }
    text.append(out.text, at);
    const auto moved = [&](uint32_t place) {
      const auto n = std::ranges::lower_bound(before, place) - before.begin();
      return place - static_cast<uint32_t>(n) * static_cast<uint32_t>(kCut.size());
    };
    for (text::Span& span : out.answers)
      span = {moved(span.begin), moved(span.end)};
    out.text = std::move(text);
  }

  const TemplateUse& use_;
  const ChatTemplate& chat_;
  Conversation conversation_;
  const std::string& place_;
  Arguments form_ = Arguments::as_objects;
  bool has_cuts_ = false;
  Rendering whole_;
};

}  // namespace

Renderer::Renderer(TemplateUse use) : use_(std::move(use)) {
  // The longer is cut first, since it may hold another one.
  std::ranges::stable_sort(use_.control_texts, std::greater(), &std::string::size);
}

RenderedChat Renderer::render(const Conversation& conversation,
                              TrainOn on,
                              const std::string& place) const {
  return Job(use_, conversation, place).run(on);
}

RenderedChat Renderer::ask(const Conversation& conversation, const std::string& place) const {
  return Job(use_, conversation, place).ask();
}

}  // namespace ferry::chat
