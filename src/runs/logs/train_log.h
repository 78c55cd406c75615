#pragma once
// train.log of a run: what the run says on standard error, for people, each line with its time. The
// first line is the command line. A log that cannot be written never ends a training: that is said
// once, and the lines are tried again with the next one.

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "src/base/unique_fd.h"

namespace ferry::runs {

inline constexpr const char* kTrainLogName = "train.log";

/** The words as a shell takes them, those with anything special in quotes. */
std::string shell_line(std::span<const std::string> words);

class TrainLog {
 public:
  /** Opens run/train.log, goes on where one is there, and writes the command line. Never throws. */
  TrainLog(const std::filesystem::path& run, std::span<const std::string> command);

  /** "2026-11-21T10:15:00Z line": one write, so that a kill tears no line. Several lines become
   * one each; escape sequences are spelled out. Never throws. */
  void add(std::string_view line);

 private:
  void write(std::string text);
  void complain(int code);

  std::filesystem::path path_;
  UniqueFd fd_;
  std::string unwritten_;  ///< what the disk did not take: it goes before the next line
  bool is_cut_ = false;    ///< the last line has no end
  bool has_complained_ = false;
};

}  // namespace ferry::runs
