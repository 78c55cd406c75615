#pragma once
// Flags of other trainers that are no options of Ferry: Hugging Face's TrainingArguments and its
// example scripts, LLaMA-Factory, axolotl, TRL. One table says of each whether it is harmless,
// stands for an option, or asks for something that this version does not do. So a command line or a
// recipe that people bring along works, and no name is taken for another that looks like it.

#include <string>
#include <string_view>
#include <vector>

namespace ferry::config {

/** A value that stands for an option: stage = pt is task = causal-lm. */
struct ForeignMeaning {
  std::string_view value, key, means;
};

struct ForeignFlag {
  /** Names that share a reason; "ddp_*" stands for all that begin so. */
  std::vector<std::string_view> names;
  /** A boolean may stand alone (--do_train); others take a value. */
  bool is_boolean = false;
  /** Asks for what Ferry does not do, unless its value switches it off: false, 0, null. */
  bool is_refused = false;
  /** Not empty: only these values are harmless. '*' leaves a beginning or an end open. */
  std::vector<std::string_view> harmless = {};
  std::vector<ForeignMeaning> meanings = {};
  /** Not empty: the flag is a number of times in an epoch, and this option says in which steps. */
  std::string_view steps_key = {};
  /** Why it changes nothing, or what to do instead; a clause without a full stop. */
  std::string_view reason = {};
};

/** All of them; a name is in it once, and is no option's. */
const std::vector<ForeignFlag>& foreign_flags();

/** '-' counts as '_'. Null: no trainer that we know of calls anything so. */
const ForeignFlag* find_foreign_flag(std::string_view name);

/** The value says that nothing is set: empty, null, None, ~. */
bool is_null(std::string_view value);

/** What the value of the flag stands for; null: for no option. */
const ForeignMeaning* meaning_of(const ForeignFlag& flag, std::string_view value);

/** The note of a flag that changes nothing; `written` is how the user wrote its name, `where` what
 * a message calls it by (a flag, a line of a file). Throws Error(usage) for one that is refused,
 * or has a value that is not harmless. */
std::string accept_foreign_flag(const ForeignFlag& flag,
                                std::string_view written,
                                std::string_view value,
                                std::string_view where);

}  // namespace ferry::config
