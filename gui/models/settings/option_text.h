#pragma once
// The option table's words for the user: all of them pass through here, so that one context of the
// translation, "options", holds them.

#include <QString>
#include <QStringList>
#include <functional>
#include <optional>

#include "src/config/options/option.h"

namespace ferry::gui {

QString label_of(const config::Option& option);
QString unit_of(const config::Option& option);
QString help_of(const config::Option& option);
QString group_of(const config::Option& option);
/** The word for a text that spells the option's special value, such as "no limit" for a maximum
 * time of 0; empty: any other text. */
QString special_word(const config::Option& option, const QString& text);
/** The special word of the text, or the text itself where it has none. */
QString in_words(const config::Option& option, const QString& text);
/** "a number of at least 0 and at most 1" */
QString expected_of(const config::Option& option);

/** The help's first sentence says what an option does; the rest is what a larger or smaller value
 * costs. */
QString trade_off_of(const config::Option& option);

/** Why `text` is no value of the option, and what would be one; empty: it is one. */
QString problem_of(const config::Option& option, const QString& text);

/** True where each word is in the option's label, key, aliases, group or help; "-" and "_" count
 * as spaces. No words: true. */
bool matches(const config::Option& option, const QString& words);

/** True where a run of the task reads the option at all. */
bool suits_task(const config::Option& option, const QString& task);

/** A message of the service for people: without its place ("[config.batch]"), and with the labels
 * of options in place of their keys. `keys` are those options. */
struct OptionMessage {
  QString text;
  QStringList keys;
};
OptionMessage message_of(const QString& what);
/** Does what may fail, as trouble_of() does; what went wrong in the app's words. */
std::optional<QString> words_of_trouble(const std::function<void()>& work);

}  // namespace ferry::gui
