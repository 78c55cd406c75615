#pragma once
// Flags of other trainers that are no options of Ferry: Hugging Face's TrainingArguments and its
// example scripts, LLaMA-Factory. One table says of each whether it is harmless, so that a command
// line that people bring along works, or asks for something that this version does not do.

#include <string>
#include <string_view>
#include <vector>

namespace ferry::config {

struct ForeignFlag {
  /** Names that share a reason; "ddp_*" stands for all that begin so. */
  std::vector<std::string_view> names;
  /** A boolean may stand alone (--do_train); others take a value. */
  bool is_boolean = false;
  /** Asks for what Ferry does not do. */
  bool is_refused = false;
  /** Not empty: only this value is harmless. */
  std::string_view harmless = {};
  /** Why it changes nothing, or what to do instead; a clause without a full stop. */
  std::string_view reason = {};
};

/** All of them; a name is in it once, and is no option's. */
const std::vector<ForeignFlag>& foreign_flags();

/** '-' counts as '_'. Null: no trainer that we know of calls anything so. */
const ForeignFlag* find_foreign_flag(std::string_view name);

/** The note of a flag that changes nothing; `written` is how the user wrote its name, `where` what
 * a message calls it by (a flag, a line of a file). Throws Error(usage) for one that is refused,
 * or has a value that is not harmless. */
std::string accept_foreign_flag(const ForeignFlag& flag,
                                std::string_view written,
                                std::string_view value,
                                std::string_view where);

}  // namespace ferry::config
