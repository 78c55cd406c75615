#pragma once
// The abilities of the terminal at the other end, and text measured as it will appear there. Used
// by everything that draws: tables, curves, progress. Torch-free; the trainer links it too.

#include <string>
#include <string_view>

namespace ferry::term {

struct Terminal {
  bool is_terminal = false;  // else a file or a pipe: nothing is rewritten
  bool has_color = false;    // false under NO_COLOR, TERM=dumb, or no terminal
  bool has_utf8 = false;     // by the locale's variables; else drawings are ASCII
  int width = 80;            // columns
};

/** Looks at the descriptor and at NO_COLOR, TERM, COLUMNS, LC_ALL, LC_CTYPE, LANG. */
Terminal detect_terminal(int descriptor);

enum class Style { bold, dim, red, green, yellow, cyan };
/** The text in that style, or as it is where there is no colour. */
std::string styled(std::string_view text, Style style, const Terminal& terminal);

/** Columns that UTF-8 text takes: wide East Asian characters two, combining marks none. Escape
 * sequences count as what they are, so measure before styling. */
int display_width(std::string_view text);

/** Text that cannot disturb a terminal: control characters (escape sequences in a label) become
 * '?', bytes that are no UTF-8, and everything beyond ASCII where the terminal has no UTF-8, too.
 */
std::string printable(std::string_view text, const Terminal& terminal);

/** Printable text cut to at most `width` columns, with "…" (or "~") where something is missing. */
std::string fitted(std::string_view text, int width, const Terminal& terminal);

/** "12 s", "3 min 20 s", "1 h 04 min", "2 d 3 h". */
std::string format_duration(double seconds);

}  // namespace ferry::term
