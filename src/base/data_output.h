#pragma once
// `--json` of a verb that talks while it works: standard output has lines of JSON alone, and all
// that is said for people goes to standard error, also where it is written to standard output.

#include <string>
#include <string_view>

namespace ferry {

/** From here on standard output is that of print_data(); what others write to it goes to standard
 * error. Called once, before anything is written. Throws Error(machine). */
void keep_output_for_data();
/** keep_output_for_data() was called. */
bool is_output_for_data();

/** One line, without its newline, at once; nothing unless the output is kept for data. A reader
 * that went away ends nothing. Any thread may call it. */
void print_data(std::string_view line);

/** `{"error": {"where": "data.read", "message": "...", "exit_code": 4}}`: the message of an Error,
 * or of another exception, whose "where" is null. */
std::string json_of_error(std::string_view message, int exit_code);

}  // namespace ferry
