#include "src/inputs/preflight.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "src/base/error.h"
#include "src/base/utf8.h"
#include "src/chat/template_source.h"
#include "src/data/content_hash.h"
#include "src/inputs/model_files.h"
#include "src/inputs/prompts.h"
#include "src/request/run_plan.h"

namespace ferry {
namespace {

/** Reading all of a large corpus would take minutes: sequences are then left out evenly. */
constexpr int64_t kLookedAt_tokens = 20'000'000;
/** Chats are rendered anew, which takes about a millisecond each. */
constexpr int64_t kLookedAt_chats = 200;

/** Some of all, and the first of them. */
struct Count {
  int64_t n = 0, of = 0, first = -1;

  void add(bool is_one, int64_t example) {
    ++of;
    if (!is_one) return;
    if (n == 0) first = example;
    ++n;
  }
  double share() const { return of > 0 ? static_cast<double>(n) / static_cast<double>(of) : 0; }
  bool are_most() const { return 2 * n > of; }
  /** "12 of 80 answers are empty, first in text 7" */
  std::string text(std::string_view what, std::string_view are) const {
    return fmt::format("{} of {} {} {}, first in text {}", n, of, what, are, first + 1);
  }
};

uint64_t hash_of(const std::vector<int32_t>& ids) {
  ContentHash hash;
  hash.add(std::as_bytes(std::span(ids)));
  return hash.value();
}

/** The words of a turn behind its thinking, which templates leave out of earlier turns. */
std::string_view said_in(std::string_view text) {
  constexpr std::string_view kEnd = "</think>";
  const size_t end = text.rfind(kEnd);
  return trim(end == text.npos ? text : text.substr(end + kEnd.size()));
}

/** A learning rate that such trainings mostly have. */
double usual_rate(const config::Config& config) {
  const std::string& tuning = config.text("tuning");
  double rate = tuning == "full" ? 2e-5 : tuning == "bitfit" ? 1e-3 : 2e-4;
  if (tuning == "full" && draws_weights(config)) rate = 3e-4;
  if (learns_preferences(config)) rate = tuning == "full" ? 1e-6 : 1e-5;
  const std::string& optim = config.text("optim");
  if (optim == "lion") rate /= 5;
  return optim == "sgd" ? 0 : rate;
}

class Preflight {
 public:
  explicit Preflight(const PreflightInputs& in) : in_(in), task_(*in.texts.task) {}

  std::vector<PreflightFinding> run() {
    look_at_tokens();
    look_at_evaluation();
    if (task_.learns_text()) {
      say_of_answers();
      say_of_begins();
      look_at_chats();
      look_at_templates();
    } else {
      say_of_labels();
    }
    say_of_repetitions();
    look_at_rate();
    look_at_packs();
    std::ranges::stable_sort(found_, std::ranges::greater{}, &PreflightFinding::gravity);
    return std::move(found_);
  }

 private:
  bool has_classes() const {
    return task_.scheme().problem == ProblemType::single_label && in_.data.train.has_labels();
  }
  void find(std::string_view check, Gravity gravity, std::string text, std::string hint) {
    found_.push_back({check, gravity, std::move(text), std::move(hint)});
  }

  void look_at_tokens() {
    const TokenizedDataset& train = in_.data.train;
    n_special_ = in_.tokenizer.n_added_single();
    bos_ = in_.tokenizer.special_ids().bos;
    const std::vector<int32_t> ends =
        end_ids_of(in_.files.generation_config, in_.model, in_.tokenizer);
    int64_t n_all = 0;
    for (int64_t i = 0; i < train.n_sequences(); ++i)
      n_all += train.n_ids(i);
    const int64_t step = std::max<int64_t>(1, n_all / kLookedAt_tokens);
    for (int64_t i = 0; i < train.n_sequences(); i += step) {
      const std::vector<int32_t> ids = train.ids(i);
      const int64_t example = train.example_of(i);
      const bool begins = i == 0 || train.example_of(i - 1) != example;
      if (task_.learns_text())
        look_at_answers(i, ids, ends, begins);
      else
        empty_.add(std::ssize(ids) <= n_special_, example);
      look_at_repetition(i);
    }
  }

  void look_at_answers(int64_t sequence,
                       const std::vector<int32_t>& ids,
                       const std::vector<int32_t>& ends,
                       bool begins) {
    const TokenizedDataset& train = in_.data.train;
    const int64_t example = train.example_of(sequence);
    if (begins && bos_ >= 0) {
      doubled_begin_.add(ids.size() > 1 && ids[0] == bos_ && ids[1] == bos_, example);
      lacking_begin_.add(ids.empty() || ids[0] != bos_, example);
    }
    const std::vector<text::Span> learnt = task_.learnt(train, sequence);
    untrained_.add(learnt.empty(), example);
    if (learnt.empty() || train.labels(sequence).empty()) return;
    const bool is_cut = train.is_truncated(sequence);
    cut_.add(is_cut, example);
    for (const text::Span& answer : learnt) {
      // The answer that was cut has no end.
      if (is_cut && &answer == &learnt.back()) break;
      const int32_t last = ids[answer.end - 1];
      const bool ends_it = in_.tokenizer.is_control(last) || std::ranges::count(ends, last) > 0;
      unended_.add(!ends_it, example);
      empty_.add(answer.end - answer.begin <= (ends_it ? 1u : 0u), example);
      if (ends_it) {
        other_end_.add(!ends.empty() && std::ranges::count(ends, last) == 0, example);
        if (other_end_.n == 1 && other_end_.first == example) other_end_id_ = last;
      }
    }
  }

  /** Two answers that are compared are one sample, which the first of them stands for. */
  bool is_second(int64_t sequence) const {
    return task_.compares_answers() && !is_chosen(sequence);
  }
  /** A hash of the tokens of a sequence, or of both answers that are compared. */
  uint64_t hash_of_sample(const TokenizedDataset& data, int64_t sequence) const {
    std::vector<int32_t> ids = data.ids(sequence);
    if (task_.compares_answers())
      std::ranges::copy(data.ids(sequence + 1), std::back_inserter(ids));
    return hash_of(ids);
  }

  /** The same tokens again, and the same tokens with another label. */
  void look_at_repetition(int64_t sequence) {
    if (is_second(sequence)) return;
    const TokenizedDataset& train = in_.data.train;
    const int64_t example = train.example_of(sequence);
    const auto labels = train.labels(sequence);
    const int32_t label = has_classes() && !labels.empty() ? labels.front() : 0;
    const auto [at, is_new] = seen_.try_emplace(hash_of_sample(train, sequence), label);
    repeated_.add(!is_new, example);
    contradicted_.add(!is_new && at->second != label, example);
  }

  void look_at_evaluation() {
    const TokenizedDataset &train = in_.data.train, &eval = in_.data.eval;
    for (int64_t i = 0; i < eval.n_sequences(); ++i)
      if (!is_second(i)) in_both_.add(seen_.contains(hash_of_sample(eval, i)), eval.example_of(i));
    const ProblemType problem = task_.scheme().problem;
    if (problem != ProblemType::single_label && problem != ProblemType::multi_label) return;
    if (!train.has_labels()) return;
    for (int64_t i = 0; i < train.n_sequences(); ++i)
      for (const int32_t label : train.labels(i))
        trained_labels_.insert(label);
    if (!eval.has_labels()) return;
    for (int64_t i = 0; i < eval.n_sequences(); ++i)
      for (const int32_t label : eval.labels(i))
        if (!trained_labels_.contains(label)) eval_labels_.insert(label);
  }

  void say_of_answers() {
    if (untrained_.n > 0)
      find("untrained", untrained_.n == untrained_.of ? Gravity::error : Gravity::warning,
           untrained_.text("texts", "have no token to learn"),
           "raise max_length, or look at them with `ferry preview`");
    if (unended_.n > 0 && in_.tokenizer.special_ids().eos >= 0)  // else a note says it
      find("stop_token", unended_.are_most() ? Gravity::error : Gravity::warning,
           unended_.text("answers", "have no end token among what is learnt"),
           "the model would not learn to stop: mend the chat template's generation marks, or name "
           "the end token in tokenizer_config.json");
    if (other_end_.are_most()) {
      const std::string& name = in_.tokenizer.id_to_token(other_end_id_);
      find("stop_token", Gravity::warning,
           fmt::format("answers end with {}, at which generation_config.json does not stop", name),
           fmt::format("other programs would go on behind the answer: add {} to its eos_token_id",
                       other_end_id_));
    }
    if (cut_.are_most())
      find("cut", Gravity::warning, cut_.text("texts", "are cut to max_length"),
           "their ends are not learnt: raise max_length");
    if (empty_.n > 0)
      find("empty", empty_.are_most() ? Gravity::error : Gravity::warning,
           empty_.text("answers", "are empty"), "leave these rows out");
  }

  void say_of_begins() {
    const auto name = [&] { return in_.tokenizer.id_to_token(bos_); };
    if (doubled_begin_.n > 0)
      find("begin_token", doubled_begin_.are_most() ? Gravity::error : Gravity::warning,
           doubled_begin_.text("texts", fmt::format("begin with {} twice", name())),
           "the data or the template writes it, and the tokenizer, too: take it out of one");
    std::vector<int32_t> of_nothing;
    in_.tokenizer.append_part("", /*begins=*/true, /*ends=*/true, /*continues=*/false, of_nothing);
    const bool is_added = !of_nothing.empty() && of_nothing.front() == bos_;
    if (is_added && lacking_begin_.are_most())
      find("begin_token", Gravity::warning,
           lacking_begin_.text("texts", fmt::format("do not begin with {}", name())),
           "the tokenizer puts it before every text, so the model knows no others: add it to the "
           "chat template");
  }

  void say_of_labels() {
    const LabelScheme& scheme = task_.scheme();
    if (empty_.n > 0)
      find("empty", empty_.are_most() ? Gravity::error : Gravity::warning,
           empty_.text("texts", "are empty"), "leave these rows out, or name the right column");
    if (has_classes() && trained_labels_.size() == 1 && scheme.labels.size() > 1)
      find("labels", Gravity::error,
           fmt::format("all texts that are trained on have the label {}",
                       escaped(scheme.labels.name(*trained_labels_.begin()))),
           "there is nothing to learn: are the data sorted, or is it the wrong column?");
    if (eval_labels_.empty()) return;
    std::string names;
    for (const int32_t label : eval_labels_)
      if (label >= 0 && label < scheme.labels.size())
        names += (names.empty() ? "" : ", ") + escaped(scheme.labels.name(label));
    find("labels", Gravity::warning,
         fmt::format("the evaluation has labels that no trained text has: {}", names),
         "the model cannot learn them: shuffle the data, or add such texts");
  }

  void say_of_repetitions() {
    constexpr double kFewRepeated = 0.2, kFewInBoth = 0.05, kFewContradicted = 0.02;
    constexpr int64_t kLeast = 5;
    if (repeated_.n >= kLeast && repeated_.share() > kFewRepeated)
      find("repeated", Gravity::warning, repeated_.text("texts", "are there before"),
           "they count twice, and hide what the model has learnt by heart: leave them out");
    if (contradicted_.n >= 2 && contradicted_.share() > kFewContradicted)
      find("contradicted", Gravity::warning,
           contradicted_.text("texts", "are there before with another label"),
           "no model can learn both");
    if (in_both_.n >= 2 && in_both_.share() > kFewInBoth)
      find("in_both", Gravity::warning, in_both_.text("texts to evaluate", "are trained on, too"),
           "their scores say nothing of new texts: leave them out of one");
  }

  void look_at_rate() {
    constexpr double kFar = 100;
    const double usual = usual_rate(in_.config), rate = in_.config.number("learning_rate");
    if (usual == 0 || rate == 0 || (rate < kFar * usual && rate * kFar > usual)) return;
    find("learning_rate", Gravity::warning,
         fmt::format("learning_rate is {:g}, and such trainings mostly have about {:g}", rate,
                     usual),
         rate > usual ? "the loss would most likely run away" : "it would hardly learn");
  }

  void look_at_packs() {
    const TokenizedDataset& train = in_.data.train;
    if (!train.is_packed() || train.size() < train.n_sequences() || train.size() < 2) return;
    find("packing", Gravity::warning,
         fmt::format("packing gains nothing: no two of {} texts fit into {} tokens", train.size(),
                     in_.data.max_length),
         "raise max_length, or leave packing out");
  }

  /** The first chats of the training data. */
  std::vector<std::pair<chat::Conversation, std::string>> first_chats() const {
    std::vector<std::pair<chat::Conversation, std::string>> chats;
    if (!in_.texts.chats) return chats;
    const auto examples = in_.texts.train.examples();
    Example example;
    while (std::ssize(chats) < kLookedAt_chats && examples->next(example)) {
      if (!example.is_chat) break;  // a file has chats, or none
      chats.emplace_back(chat::unpacked(example.text), example.place);
    }
    return chats;
  }

  /** Templates may leave out what they do not know of, such as a system prompt. */
  void look_at_chats() {
    chats_ = first_chats();
    std::map<std::string, Count> lost;  // by role
    Count lost_thinking, tools_learnt;
    for (size_t i = 0; i < chats_.size(); ++i) {
      const auto& [conversation, place] = chats_[i];
      const auto text = in_.texts.chats->rendering(conversation, place);
      if (!text) continue;
      const auto at = static_cast<int64_t>(i);
      for (const chat::Turn& turn : conversation.turns) {
        lost[turn.role].add(turn.text && text->find(said_in(*turn.text)) == text->npos, at);
      }
      const chat::Turn& last = conversation.turns.back();
      lost_thinking.add(text->find(trim(last.thinking)) == text->npos, at);
    }
    for (const auto& [role, count] : lost)
      if (count.n > 0)
        find("template",
             role != chat::kSystem && count.are_most() ? Gravity::error : Gravity::warning,
             count.text(fmt::format("turns of role {}", role), "are left out by the template"),
             "choose another with --chat-template, or leave these turns out");
    if (lost_thinking.n > 0)
      find("template", Gravity::warning,
           lost_thinking.text("answers", "have thinking that the template leaves out"),
           "choose another with --chat-template, or write it into the answer");
    const bool is_all =
        in_.texts.chats && in_.texts.chats->settings().train_on == chat::TrainOn::all;
    const auto has_tools = [](const auto& its) {
      return std::ranges::any_of(its.first.turns,
                                 [](const chat::Turn& turn) { return turn.role == chat::kTool; });
    };
    if (is_all && std::ranges::any_of(chats_, has_tools))
      find("tools", Gravity::warning, "train_on_turns = all trains what tools return, too",
           "the model would learn to make up results: --train-on-turns each");
  }

  /** A model that was made for one template is asked by it elsewhere. */
  void look_at_templates() {
    if (chats_.empty()) return;
    const std::filesystem::path& directory = in_.files.tokenizer;
    const auto own = chat::template_of_model(directory);
    if (!own) return;
    const chat::ChatSettings& settings = in_.texts.chats->settings();
    if (const auto other = chat::template_of_tokenizer_config(directory);
        settings.chat_template == "model" && other && trim(other->text) != trim(own->text) &&
        renders_otherwise(other->text))
      find("template", Gravity::warning,
           "chat_template.jinja and tokenizer_config.json have two different chat templates",
           "older programs read the second: make both the same");
    if (settings.chat_template != "model" && renders_otherwise(own->text))
      find("template", Gravity::warning,
           fmt::format("chats are written by the template {}, and the model was made for another "
                       "template, its own",
                       settings.chat_template),
           "leave chat_template out to go on with its own");
  }
  /** The template writes one of the first chats in another way than the run's. */
  bool renders_otherwise(const std::string& text) const {
    const chat::ChatEncoder other(in_.texts.chats->settings(),
                                  {.name = "a template", .text = text, .tools_text = {}}, in_.files,
                                  in_.tokenizer);
    constexpr size_t kLookedAt = 20;
    for (size_t i = 0; i < std::min(kLookedAt, chats_.size()); ++i) {
      const auto& [conversation, place] = chats_[i];
      const auto a = in_.texts.chats->rendering(conversation, place),
                 b = other.rendering(conversation, place);
      if (a && a != b) return true;
    }
    return false;
  }

  const PreflightInputs& in_;
  const Task& task_;
  int32_t bos_ = -1;
  int64_t n_special_ = 0;
  Count untrained_, doubled_begin_, lacking_begin_, cut_, unended_, other_end_, empty_, repeated_,
      contradicted_, in_both_;
  int32_t other_end_id_ = -1;
  std::unordered_map<uint64_t, int32_t> seen_;  ///< by the hash of its tokens, a text's first label
  std::set<int32_t> trained_labels_, eval_labels_;  ///< the second: those that training lacks
  std::vector<std::pair<chat::Conversation, std::string>> chats_;  ///< with their places
  std::vector<PreflightFinding> found_;
};

}  // namespace

std::vector<PreflightFinding> preflight(const PreflightInputs& inputs) {
  if (!inputs.config.flag("preflight")) return {};
  return Preflight(inputs).run();
}

std::vector<std::string> take_warnings(const std::vector<PreflightFinding>& findings) {
  std::vector<std::string> notes;
  for (const PreflightFinding& finding : findings) {
    if (finding.gravity == Gravity::error)
      throw Error(Fault::data, fmt::format("preflight.{}", finding.check), finding.text,
                  finding.hint + " (--preflight off trains all the same)");
    notes.push_back(fmt::format("warning: {}: {}", finding.text, finding.hint));
  }
  return notes;
}

}  // namespace ferry
