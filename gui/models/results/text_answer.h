#pragma once
// The answer of a trained model to one text, from a line of `ferry predict --json`. Places count
// UTF-16 units, as QString does; the line counts characters.

#include <QString>
#include <QStringList>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "gui/models/results/model_form.h"

namespace ferry::gui {

struct TextAnswer {
  struct Score {
    QString label;
    double share = 0;        ///< 0 to 1
    bool is_chosen = false;  ///< the model says this one
  };
  struct Mark {
    qsizetype begin = 0, end = 0;  ///< in the text; of an answer in the context
    QString label;
    double score = 0;  ///< NaN: not told
  };

  FormKind kind = FormKind::none;
  QString text, context;         ///< the context of a question, or the second text
  std::vector<Score> scores;     ///< the likeliest first
  std::optional<double> number;  ///< of a regression
  std::vector<Mark> marks;       ///< entities, tags of words, the answer
  bool has_entities = false;     ///< marks are entities, not tags
  QString answer;                ///< to a question; empty: the context has none
  double answer_score = 0;

  /** All of it as text, to copy. */
  QString plain_text() const;
  /** In a few words: "business (0.97)". */
  QString short_text() const;
};

/** Throws nlohmann's exceptions where the line is none of such a model. `text` and `context` are
 * what was asked. */
TextAnswer parse_answer(const nlohmann::ordered_json& line,
                        FormKind kind,
                        const QString& text,
                        const QString& context = {});

/** The place of a character in UTF-16 units. */
qsizetype utf16_place(const QString& text, int64_t n_characters);

}  // namespace ferry::gui
