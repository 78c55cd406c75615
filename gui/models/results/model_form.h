#pragma once
// The form in which a model is asked: by the task that its config.json names.

#include <QString>
#include <QStringList>
#include <filesystem>

namespace ferry::gui {

enum class FormKind {
  none,            ///< it answers no texts: masked words
  classification,  ///< a class, several, or a number
  tokens,          ///< entities or tags of words
  question,        ///< an answer within a context
  generation,      ///< text that goes on
};

struct ModelForm {
  FormKind kind = FormKind::none;
  bool takes_pairs = false;     ///< two texts at once
  bool is_multi_label = false;  ///< each label is likely or not by itself
  bool is_regression = false;   ///< a number
  QStringList labels;
  QString family;                   ///< "bert"
  std::filesystem::path directory;  ///< the model's own
  bool has_chat_template = false;   ///< it answers turns of a chat
  /** The model that it was trained from; empty: not known, or not on this machine. */
  std::filesystem::path base;
  /** The template of the tuned model's, for a base that has none; empty: the base has one. */
  std::filesystem::path base_template;
  QString trouble;  ///< why it cannot be asked; empty: it can
};

/** Reads config.json of what `ferry --model` takes: a run, a checkpoint, a model directory, a name.
 * A fault is in `trouble`. */
ModelForm read_model_form(const QString& name_or_path);

}  // namespace ferry::gui
