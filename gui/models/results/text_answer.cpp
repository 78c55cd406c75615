#include "gui/models/results/text_answer.h"

#include <QCoreApplication>
#include <QLocale>
#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "gui/models/text.h"

namespace ferry::gui {

namespace {

struct TextAnswerWords {
  Q_DECLARE_TR_FUNCTIONS(TextAnswerWords)
};

QString share_text(double share) {
  return QLocale().toString(share, 'f', 2);
}

QString labelled(const QString& label, double share) {
  return std::isnan(share) ? label : TextAnswerWords::tr("%1 (%2)").arg(label, share_text(share));
}

void read_classes(const nlohmann::ordered_json& line, TextAnswer& answer) {
  if (const auto value = line.find("value"); value != line.end()) {
    answer.number = value->get<double>();
    return;
  }
  QStringList chosen;
  for (const auto& label : line.at("labels"))
    chosen << to_text(label.get<std::string>());
  for (const auto& [label, score] : line.at("scores").items()) {
    const QString name = to_text(label);
    // A score that is not finite is null in JSON.
    const double share =
        score.is_number() ? score.get<double>() : std::numeric_limits<double>::quiet_NaN();
    answer.scores.push_back({name, share, chosen.contains(name)});
  }
  std::stable_sort(answer.scores.begin(), answer.scores.end(),
                   [](const auto& a, const auto& b) { return a.share > b.share; });
}

void read_entities(const nlohmann::ordered_json& entities, TextAnswer& answer) {
  answer.has_entities = true;
  for (const auto& entity : entities)
    answer.marks.push_back({.begin = utf16_place(answer.text, entity.at("start").get<int64_t>()),
                            .end = utf16_place(answer.text, entity.at("end").get<int64_t>()),
                            .label = to_text(entity.at("label").get<std::string>()),
                            .score = entity.at("score").get<double>()});
  std::stable_sort(answer.marks.begin(), answer.marks.end(),
                   [](const auto& a, const auto& b) { return a.begin < b.begin; });
}

/** Words come without their places; they follow each other in the text. */
void read_tags(const nlohmann::ordered_json& line, TextAnswer& answer) {
  const auto &words = line.at("words"), &tags = line.at("tags");
  qsizetype from = 0;
  for (size_t w = 0; w < words.size() && w < tags.size(); ++w) {
    const QString word = to_text(words[w].get<std::string>());
    const qsizetype at = answer.text.indexOf(word, from);
    if (at < 0) continue;
    from = at + word.size();
    if (tags[w].is_string())
      answer.marks.push_back({.begin = at,
                              .end = from,
                              .label = to_text(tags[w].get<std::string>()),
                              .score = std::numeric_limits<double>::quiet_NaN()});
  }
}

void read_answer(const nlohmann::ordered_json& line, TextAnswer& answer) {
  answer.answer = to_text(line.at("answer").get<std::string>());
  answer.answer_score = line.at("score").get<double>();
  if (!line.at("start").is_number() || !line.at("end").is_number()) return;
  answer.marks.push_back({.begin = utf16_place(answer.context, line.at("start").get<int64_t>()),
                          .end = utf16_place(answer.context, line.at("end").get<int64_t>()),
                          .label = TextAnswerWords::tr("answer"),
                          .score = answer.answer_score});
}

}  // namespace

qsizetype utf16_place(const QString& text, int64_t n_characters) {
  qsizetype at = 0;
  for (int64_t n = 0; n < n_characters && at < text.size(); ++n)
    at +=
        text[at].isHighSurrogate() && at + 1 < text.size() && text[at + 1].isLowSurrogate() ? 2 : 1;
  return at;
}

TextAnswer parse_answer(const nlohmann::ordered_json& line,
                        FormKind kind,
                        const QString& text,
                        const QString& context) {
  TextAnswer answer;
  answer.kind = kind;
  answer.text = text;
  answer.context = context;
  if (kind == FormKind::tokens) {
    if (const auto entities = line.find("entities"); entities != line.end())
      read_entities(*entities, answer);
    else
      read_tags(line, answer);
  } else if (kind == FormKind::question) {
    read_answer(line, answer);
  } else {
    read_classes(line, answer);
  }
  return answer;
}

QString TextAnswer::short_text() const {
  if (number) return QLocale().toString(*number, 'g', 4);
  if (kind == FormKind::question)
    return answer.isEmpty() ? TextAnswerWords::tr("no answer") : labelled(answer, answer_score);
  QStringList words;
  if (kind == FormKind::tokens) {
    for (const Mark& mark : marks)
      words << labelled(TextAnswerWords::tr("%1: %2").arg(
                            text.mid(mark.begin, mark.end - mark.begin), mark.label),
                        mark.score);
    return words.isEmpty() ? TextAnswerWords::tr("no entities") : listed(words);
  }
  for (const Score& score : scores)
    if (score.is_chosen) words << labelled(score.label, score.share);
  return words.isEmpty() ? TextAnswerWords::tr("no label is likely") : listed(words);
}

QString TextAnswer::plain_text() const {
  QStringList lines{text};
  if (!context.isEmpty()) lines << context;
  lines << QString();
  if (kind != FormKind::classification || number)
    lines << short_text();
  else
    for (const Score& score : scores)
      lines << labelled(score.label, score.share);
  return lines.join('\n');
}

}  // namespace ferry::gui
