// A message of the service in the app's words. Labels of fields stand in place of options, a label
// and a value in place of KEY = VALUE and --flag VALUE, pages in place of commands of a terminal.

#include <QCoreApplication>
#include <QRegularExpression>
#include <algorithm>
#include <optional>

#include "gui/models/settings/option_text.h"
#include "gui/models/text.h"
#include "src/config/options/value.h"

namespace ferry::gui {

using config::Option;

namespace {

struct MessageWords {
  Q_DECLARE_TR_FUNCTIONS(MessageWords)
};

const Option* option_of_word(QString word) {
  while (word.startsWith('-'))
    word.remove(0, 1);
  return config::find_option(word.toStdString()).option;
}

/** The commands that a message names, and where the app does the same. Longer ones come first. */
struct Command {
  const char *command, *place;
};
constexpr Command kCommands[] = {
    {"(?:continue|go on) with(?: that run)?: ferry train --resume '[^']*'",
     QT_TRANSLATE_NOOP("MessageWords", "choose Resume on the Runs page")},
    {"`ferry train --resume RUN` goes on with it",
     QT_TRANSLATE_NOOP("MessageWords", "Resume on the Runs page continues it")},
    {"`ferry runs stop`(?: it| saves and leaves)",
     QT_TRANSLATE_NOOP("MessageWords", "stop it on the Runs page")},
    {"(?:make a model of it|make a model of its last checkpoint): ferry export --model '[^']*'"
     "(?: --output-dir DIR)?",
     QT_TRANSLATE_NOOP("MessageWords", "make a model of it on the Export page")},
    {"run `ferry doctor`(?: again)?", QT_TRANSLATE_NOOP("MessageWords", "see the Doctor page")},
    {"`ferry doctor` again", QT_TRANSLATE_NOOP("MessageWords", "look at the Doctor page again")},
    {"`ferry doctor`", QT_TRANSLATE_NOOP("MessageWords", "the Doctor page")},
    {"`ferry plan`", QT_TRANSLATE_NOOP("MessageWords", "the Memory step of New run")},
    {"`ferry runs(?: [a-zA-Z]+)*(?: '[^']*')?`",
     QT_TRANSLATE_NOOP("MessageWords", "the Runs page")},
    {"`ferry train(?: --task [a-z-]+)?`", QT_TRANSLATE_NOOP("MessageWords", "the New run page")},
    {"`ferry export`", QT_TRANSLATE_NOOP("MessageWords", "the Export page")},
    {"`ferry (?:predict|generate)`", QT_TRANSLATE_NOOP("MessageWords", "the Try it page")},
};

QString with_pages(QString text) {
  static const auto commands = [] {
    std::vector<QRegularExpression> all;
    for (const Command& each : kCommands)
      all.emplace_back(QLatin1String(each.command));
    return all;
  }();
  for (size_t i = 0; i < commands.size(); ++i)
    text.replace(commands[i], isolated(MessageWords::tr(kCommands[i].place)));
  return text;
}

/** A value that an option's name is followed by. */
bool is_value(const Option& option, const QString& text) {
  if (text.startsWith('\'')) return true;
  const bool is_number = !text.isEmpty() && (text[0].isDigit() || text[0] == '-');
  return is_number || std::ranges::find(option.choices, text.toStdString()) != option.choices.end();
}

/** NAME, DIR, NAME,NAME: a place for what the reader fills in. */
bool is_blank(const QString& text) {
  static const QRegularExpression blank(QStringLiteral("^[A-Z][A-Z_]*(,[A-Z_]+)*$"));
  return blank.match(text).hasMatch();
}

QString field_text(const Option& option, const QString& value) {
  if (value.isEmpty() || is_blank(value)) return MessageWords::tr("“%1”").arg(label_of(option));
  QString shown = value;
  if (shown.size() > 1 && shown.startsWith('\'')) shown = shown.mid(1, shown.size() - 2);
  return MessageWords::tr("“%1: %2”").arg(label_of(option), in_words(option, shown));
}

}  // namespace

OptionMessage message_of(const QString& what) {
  OptionMessage message;
  static const QRegularExpression place(QStringLiteral("^(ferry: )?\\[[a-z_.]+\\] "));
  QString text = what;
  text.remove(place);
  // " (--lr)" and " (dataset from the app)" say where a value was given: always in this form.
  static const QRegularExpression where(
      QStringLiteral(" \\((--[a-z0-9_-]+|[a-z0-9_]+ from (the app|--[a-z0-9_-]+))\\)"));
  text.remove(where);
  // A reader of an absolute path needs no such hint.
  if (text.contains(QLatin1String("'/")))
    text.remove(QStringLiteral(" - paths count from the current directory"));
  text = with_pages(text);

  // Quoted words are the user's own, and stay. A value may be quoted, too, or a list of values.
  static const QRegularExpression word(QStringLiteral(
      "(?<!\\w)'[^'\\n]*'(?!\\w)"
      "|(?<![\\w`/.-])(?<name>(?:--)?[A-Za-z][A-Za-z0-9_-]*)"
      "(?:(?<given> = |=| )"
      "(?<value>'[^'\\n]*'|\\d[\\d.]* ?[KMGT]iB|[^\\s;,)?'`]+(?:,[^\\s;,)?'`]+)*))?"));
  QString shown;
  qsizetype at = 0;
  for (QRegularExpressionMatch match = word.match(text, at); match.hasMatch();
       match = word.match(text, at)) {
    const QString name = match.captured(QStringLiteral("name"));
    QString given = match.captured(QStringLiteral("given"));
    QString value = match.captured(QStringLiteral("value"));
    while (value.size() > 1 && (value.endsWith('.') || value.endsWith(':')))
      value.chop(1);
    const bool is_flag = name.startsWith(QLatin1String("--")),
               is_set = given == QLatin1String(" = ") || (is_flag && given == QLatin1String("="));
    // "task" and "device" are words, too; "eval_fraction", "--task" and "task =" are options.
    const Option* option = is_flag || is_set || name.contains('_') ? option_of_word(name) : nullptr;
    if (!option) {
      const qsizetype end = name.isEmpty() ? match.capturedEnd() : match.capturedEnd(1);
      shown += text.mid(at, end - at);
      at = end;
      continue;
    }
    const bool takes_value = is_set || (is_flag && (is_value(*option, value) || is_blank(value)));
    shown += text.mid(at, match.capturedStart() - at) +
             field_text(*option, takes_value ? value : QString());
    at = takes_value ? match.capturedStart(QStringLiteral("value")) + value.size()
                     : match.capturedEnd(1);
    const QString key = to_text(option->key);
    if (!message.keys.contains(key)) message.keys << key;
  }
  shown += text.mid(at);
  static const QRegularExpression named(
      QStringLiteral("name it with (“[^”]+”)(, or by its number from 0)?"));
  const QRegularExpressionMatch field = named.match(shown);
  if (field.hasMatch())
    shown.replace(field.capturedStart(), field.capturedLength(),
                  MessageWords::tr("choose it as %1").arg(field.captured(1)));
  message.text = sentence(shown);
  return message;
}

std::optional<QString> words_of_trouble(const std::function<void()>& work) {
  const auto trouble = trouble_of(work);
  return trouble ? std::optional(message_of(*trouble).text) : std::nullopt;
}

}  // namespace ferry::gui
