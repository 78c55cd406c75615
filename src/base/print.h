#pragma once
// The one way out for words: lines for people to standard error and, where somebody listens, to a
// log; results to standard output. Names, texts and paths of others may hold what a terminal obeys:
// all is printed by escaped_lines() (utf8.h). Nothing here throws or stops: a terminal that went
// away, or a pipe that nobody reads any more, must not end a run. Any thread may speak.

#include <functional>
#include <string_view>

namespace ferry {

/** One line, without its newline, to standard error and the listener. */
void log_line(std::string_view line);
/** One line to standard error, and to no listener: what a log must not keep. */
void print_unlogged(std::string_view line);
/** To the listener only: what standard error shows in another form. */
void log_only(std::string_view line);

/** Hears every line while it lives; one at a time. What it throws is lost. */
class Listening {
 public:
  using Listener = std::function<void(std::string_view line)>;
  explicit Listening(Listener listener);
  ~Listening();
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;
};

/** Text to standard output, at once. */
void print(std::string_view text);
/** The same for what was drawn with colours (term::Table, term::styled), and so is escaped where it
 * is foreign. */
void print_drawn(std::string_view text);
/** errno of the first print() that did not arrive; 0: all did. */
int print_failure();

}  // namespace ferry
