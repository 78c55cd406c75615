#include "gui/models/settings/option_text.h"

#include <QCoreApplication>
#include <QRegularExpression>
#include <algorithm>

#include "gui/models/service_words.h"
#include "gui/models/text.h"
#include "src/base/nearest_name.h"
#include "src/config/options/value.h"
#include "src/config/param_groups.h"

namespace ferry::gui {

using config::Option;
using config::Type;

namespace {

QString translated(std::string_view text) {
  return QCoreApplication::translate("options", std::string(text).c_str());
}

struct OptionWords {
  Q_DECLARE_TR_FUNCTIONS(OptionWords)
};

std::optional<config::Value> read(const Option& option, const QString& text) {
  return config::value_from_text(option, text.toStdString());
}

/** "10%" and "0,5" are numbers to people. */
QString as_number(const Option& option, const QString& text) {
  if (option.type != Type::number && option.type != Type::steps && option.type != Type::interval)
    return {};
  QString plain = text.trimmed();
  const bool is_share = plain.endsWith('%');
  if (is_share) plain.chop(1);
  plain = plain.trimmed();
  plain.replace(',', '.');
  bool is_number = false;
  double number = plain.toDouble(&is_number);
  if (!is_number) return {};
  if (is_share) plain = QString::number(number / 100, 'g', 6);
  return read(option, plain) ? plain : QString();
}

/** Too small or too large, where the text is a value but for the range. */
QString range_problem(const Option& option, const QString& text) {
  Option wide = option;
  wide.range = {};
  const auto value = read(wide, text);
  if (!value) return {};
  double number = 0;
  if (const auto* integer = std::get_if<int64_t>(&*value))
    number = static_cast<double>(*integer);
  else if (const auto* real = std::get_if<double>(&*value))
    number = *real;
  else
    return {};
  const QString why = number < option.range.min ? OptionWords::tr("%1 is too small. Expected %2.")
                                                : OptionWords::tr("%1 is too large. Expected %2.");
  const QString trade_off = trade_off_of(option);
  const QString said = why.arg(text.trimmed(), expected_of(option));
  return trade_off.isEmpty() ? said : said + ' ' + trade_off;
}

}  // namespace

QString label_of(const Option& option) {
  return translated(option.label);
}
QString unit_of(const Option& option) {
  // Beside a field these say nothing that its label does not.
  static constexpr std::string_view kSilent[] = {"whole number", "size of a step",
                                                 "factor of learning_rate", "factor a layer"};
  const bool is_silent = std::ranges::find(kSilent, option.unit) != std::end(kSilent);
  return option.unit.empty() || is_silent ? QString() : translated(option.unit);
}
QString help_of(const Option& option) {
  return translated(option.help);
}
QString special_word(const Option& option, const QString& text) {
  if (option.special.value.empty()) return {};
  const auto value = read(option, text.trimmed());
  const bool is_special = value && value == read(option, to_text(option.special.value));
  return is_special ? translated(option.special.word) : QString();
}
QString in_words(const Option& option, const QString& text) {
  const QString word = special_word(option, text);
  return word.isEmpty() ? text : word;
}
QString group_of(const Option& option) {
  return translated(option.group);
}
QString expected_of(const Option& option) {
  const QString said = to_text(config::expectation(option));
  const QString or_auto = QStringLiteral(", or auto");
  return said.endsWith(or_auto)
             ? OptionWords::tr("%1, or auto").arg(service_words(said.chopped(or_auto.size())))
             : service_words(said);
}

QString trade_off_of(const Option& option) {
  static const QRegularExpression end(QStringLiteral("[.;。；] *"));
  const QString help = help_of(option);
  const QRegularExpressionMatch first = end.match(help);
  if (!first.hasMatch()) return {};
  const QString rest = help.mid(first.capturedEnd());
  static const QRegularExpression full_stop(QStringLiteral("[.。](?= |$)"));
  const QRegularExpressionMatch second = full_stop.match(rest);
  return second.hasMatch() ? rest.left(second.capturedEnd()) : rest;
}

QString problem_of(const Option& option, const QString& text) {
  if (read(option, text)) return {};
  if (option.type == Type::groups) {
    const QString why = to_text(config::parse_param_groups(text.toStdString()).problem);
    return OptionWords::tr("%1. Expected %2.").arg(why, expected_of(option));
  }
  if (option.type == Type::choice) {
    const std::string nearest = nearest_name(text.toStdString(), option.choices);
    if (!nearest.empty())
      return OptionWords::tr("Did you mean %1?").arg(isolated(to_text(nearest)));
  }
  if (const QString number = as_number(option, text); !number.isEmpty())
    return OptionWords::tr("Write %1, with a point and without a percent sign.").arg(number);
  if (const QString why = range_problem(option, text); !why.isEmpty()) return why;
  return OptionWords::tr("Expected %1.").arg(expected_of(option));
}

bool matches(const Option& option, const QString& words) {
  const auto plain = [](QString text) {
    text.replace('-', ' ').replace('_', ' ');
    return text.toCaseFolded();
  };
  QString all = label_of(option) + ' ' + to_text(option.key) + ' ' + group_of(option) + ' ' +
                help_of(option) + ' ' + to_text(option.label);
  for (const config::Alias& alias : option.aliases)
    all += ' ' + to_text(alias.name);
  all = plain(all);
  const QStringList wanted = plain(words).split(' ', Qt::SkipEmptyParts);
  return std::all_of(wanted.begin(), wanted.end(),
                     [&](const QString& word) { return all.contains(word); });
}

bool suits_task(const Option& option, const QString& task) {
  if (option.group == "Generation" || option.group == "Samples")
    return task == "causal-lm" || task == "preference" || task == "kto";
  if (option.group == "Pairs of answers") return task == "preference" || task == "kto";
  // Virtual tokens are of other tasks, too.
  if (option.group == "Prompts" && option.key.find("virtual") == option.key.npos &&
      !option.key.starts_with("prompt_tuning"))
    return task == "prompt-classification";
  if (option.key == "label_column")
    return task != "causal-lm" && task != "mlm" && task != "preference" && task != "reward";
  return true;
}

}  // namespace ferry::gui
