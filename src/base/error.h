#pragma once
// The two kinds of failure: Error is the user's or the machine's fault and carries what
// to do about it; FERRY_CHECK is ours, prints the values and aborts. Everything may include this;
// it knows nobody.

#include <exception>
#include <string>
#include <string_view>

namespace ferry {

/** The kind of a failure, by who can mend it. The numeric value is the process's exit code (design
 * 6). */
enum class Fault : int {
  usage = 2,  // command line, configuration
  does_not_fit = 3,
  data = 4,     // data or model file
  machine = 5,  // hardware, driver, disk
  diverged = 6,
};

/** A fault of the user or the machine: `[where] what - hint`, in one line; control characters and
 * bytes that are not UTF-8 in what it quotes are escaped. Thrown by value, caught in main. */
class Error : public std::exception {
 public:
  /** where: "room.action" ("safetensors.open"); what: value and expectation; hint: what to do, may
   * be empty. */
  Error(Fault fault, std::string_view where, std::string_view what, std::string_view hint = {});

  const char* what() const noexcept override { return message_.c_str(); }
  Fault fault() const { return fault_; }
  int exit_code() const { return static_cast<int>(fault_); }

 private:
  Fault fault_;
  std::string message_;
};

/** Prints file, line, expression and message to stderr and aborts. Called by FERRY_CHECK only. */
[[noreturn]] void check_failed(const char* file,
                               int line,
                               const char* expression,
                               const std::string& message);

}  // namespace ferry

/** Our own bug: `FERRY_CHECK(a == b, "a is {}, b is {}", a, b)`. Never on user input, never
 * compiled out. The file that uses it includes <fmt/format.h> (torch's copy in torch files, the
 * system's elsewhere). */
#define FERRY_CHECK(cond, ...)                                                    \
  do {                                                                            \
    if (!(cond)) [[unlikely]]                                                     \
      ::ferry::check_failed(__FILE__, __LINE__, #cond, fmt::format(__VA_ARGS__)); \
  } while (false)
