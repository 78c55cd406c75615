#include "src/term/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "src/base/print.h"
#include "src/base/utf8.h"
#include "src/term/table.h"

namespace ferry::term {

namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);  // on a terminal
constexpr auto kPlainLine = std::chrono::seconds(30);  // elsewhere, or at each tenth of the whole
constexpr int kBarWidth = 20, kNarrowestBar = 5;

std::string rate_text(double rate, std::string_view unit) {
  const std::string many = fmt::format("{}{}", unit, unit.ends_with('B') ? "" : "s");  // "MB"
  if (rate >= 100) return fmt::format("{:.0f} {}/s", rate, many);
  if (rate >= 1) return fmt::format("{:.1f} {}/s", rate, many);
  return fmt::format("{:.2f} s/{}", 1 / rate, unit);
}

/** The bar takes what the numbers leave, where all have room: they are worth more. */
std::string drawn_bar(const ProgressState& state,
                      std::string_view numbers,
                      int width,
                      const Terminal& terminal) {
  constexpr int kEnds = 3;  // a space and both ends
  const int left = width - display_width(state.what) - display_width(numbers) - kEnds;
  if (!terminal.is_terminal || state.total <= 0 || left < kNarrowestBar) return {};
  const std::string drawn = bar(static_cast<double>(state.done), static_cast<double>(state.total),
                                std::min(left, kBarWidth), terminal);
  return terminal.has_utf8 ? fmt::format(" ▕{}▏", drawn) : fmt::format(" [{}]", drawn);
}

}  // namespace

namespace {

/** The parts of a line. What is worth least goes first where the line is too long: the numbers from
 * the last to the second, the rate, the time left. The first number, mostly the loss, stays. */
struct Parts {
  std::string count, rate, left;
  std::vector<std::string> numbers;

  std::string text() const {
    std::string text = count;
    for (const std::string* part : {&rate, &left})
      if (!part->empty()) text += "  " + *part;
    for (const std::string& number : numbers)
      text += "  " + number;
    return text;
  }
  /** False where nothing more may go. */
  bool shorten() {
    if (numbers.size() > 1)
      numbers.pop_back();
    else if (!rate.empty())
      rate.clear();
    else if (!left.empty())
      left.clear();
    else
      return false;
    return true;
  }
};

/** "a 1  b 2" as "a 1" and "b 2". */
std::vector<std::string> numbers_of(std::string_view detail) {
  std::vector<std::string> numbers;
  while (!detail.empty()) {
    const size_t end = std::min(detail.find("  "), detail.size());
    numbers.emplace_back(detail.substr(0, end));
    detail.remove_prefix(std::min(end + 2, detail.size()));
  }
  return numbers;
}

Parts parts_of(const ProgressState& state) {
  Parts parts{.count = fmt::format(" {}", state.done),
              .rate = {},
              .left = {},
              .numbers = numbers_of(state.detail)};
  if (state.total > 0) {
    const int64_t percent = 100 * std::min(state.done, state.total) / state.total;
    parts.count = fmt::format(" {:>3} %  {}/{}", percent, state.done, state.total);
  }
  const int64_t n_here = state.done - state.first_done;
  if (n_here >= 3 && state.elapsed_s >= 1) {
    const double rate = static_cast<double>(n_here) / state.elapsed_s;
    const auto n_left = static_cast<double>(state.total - state.done);
    parts.rate = rate_text(rate, state.unit);
    parts.left = n_left > 0 ? fmt::format("{} left", format_duration(n_left / rate))
                            : format_duration(state.elapsed_s);
  } else if (state.done < state.total) {
    parts.left = "estimating";
  }
  return parts;
}

}  // namespace

std::string progress_text(const ProgressState& state, const Terminal& terminal) {
  constexpr int kNoEnd = 1000;
  const int width = terminal.is_terminal ? terminal.width - 1 : kNoEnd;
  Parts parts = parts_of(state);
  bool is_whole = true;
  while (display_width(state.what) + display_width(parts.text()) > width && parts.shorten())
    is_whole = false;
  const std::string text = parts.text();
  const std::string bar = is_whole ? drawn_bar(state, text, width, terminal) : "";
  return fitted(fmt::format("{}{}{}", state.what, bar, text), width, terminal);
}

Progress::Progress(std::FILE* out,
                   Terminal terminal,
                   std::string what,
                   int64_t total,
                   std::string unit,
                   int64_t first_done)
    : out_(out),
      terminal_(terminal),
      what_(std::move(what)),
      unit_(std::move(unit)),
      total_(total),
      first_done_(first_done),
      done_(first_done) {}

Progress::~Progress() {
  if (!is_open_) return;
  std::fputc('\n', out_);
  std::fflush(out_);
}

void Progress::update(int64_t done, std::string_view detail, bool is_told) {
  done_ = done;
  detail_ = detail;
  const Clock::time_point now = Clock::now();
  if (is_told) {
    last_note_ = now;
    last_noted_ = done;
  }
  const bool is_next_tenth =
      total_ > 0 && 10 * done / total_ > 10 * std::max<int64_t>(last_noted_, 0) / total_;
  const bool is_due = last_noted_ < 0 || is_next_tenth || now - last_note_ >= kPlainLine;
  if (is_due) note_progress(now);
  if (is_told && !terminal_.is_terminal) last_drawn_ = done;
  if (terminal_.is_terminal ? last_drawn_ < 0 || now - last_draw_ >= kRedraw : is_due) draw(now);
}

std::string Progress::text(Clock::time_point now, const Terminal& terminal) const {
  return progress_text({what_, unit_, done_, total_, first_done_,
                        std::chrono::duration<double>(now - start_).count(), detail_},
                       terminal);
}

void Progress::note_progress(Clock::time_point now) {
  log_only(text(now, {.has_utf8 = true}));
  last_note_ = now;
  last_noted_ = done_;
}

void Progress::draw(Clock::time_point now) {
  const std::string line = text(now, terminal_);
  if (terminal_.is_terminal) {
    clear();
    std::fputs(line.c_str(), out_);
    is_open_ = true;
  } else {
    std::fputs((line + '\n').c_str(), out_);
  }
  std::fflush(out_);
  last_draw_ = now;
  last_drawn_ = done_;
}

void Progress::clear() {
  if (is_open_) std::fputs("\r\x1b[K", out_);
  is_open_ = false;
}

void Progress::vanish() {
  clear();
  std::fflush(out_);
}

void Progress::log_line(std::string_view line) {
  log_only(line);
  show(line);
}

void Progress::show(std::string_view lines) {
  const bool was_open = is_open_;
  clear();
  std::fputs((escaped_lines(lines) + '\n').c_str(), out_);
  if (was_open) draw(Clock::now());
  std::fflush(out_);
}

void Progress::finish() {
  if (last_noted_ != done_) note_progress(Clock::now());
  if (last_drawn_ != done_ || terminal_.is_terminal) draw(Clock::now());
  if (is_open_) std::fputc('\n', out_);
  is_open_ = false;
  std::fflush(out_);
}

}  // namespace ferry::term
