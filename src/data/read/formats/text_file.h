#pragma once
// A text file, checked: byte order mark off, encoding known, errors with line and byte. Small files
// are held in memory, large ones are mapped, so that a file may be larger than the memory. Lines
// end in LF or CRLF, which the parsers tell apart; a file of CR alone has LF in its place. Private
// to src/data: every reader gets its text here.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "src/files/mapped_file.h"

namespace ferry {

struct DatasetOptions;

enum class TextEncoding : uint8_t {
  utf8,            // anything else is an error
  latin1,          // every byte is a character
  utf8_or_latin1,  // by file: Latin-1 where it is not valid UTF-8
};

class TextFile {
 public:
  /** The bytes of the file as they stand: UTF-8, or Latin-1. Of a mapped file only those are known
   * to be valid that were taken. */
  std::string_view text() const { return text_; }
  bool is_latin1() const { return is_latin1_; }

  /** A part of text() as UTF-8: itself, or in `buffer`. What comes before it is done with: pages of
   * a mapped file need not stay in memory. Error(data) where bytes up to the part's end are not
   * valid. */
  std::string_view take(std::string_view part, std::string& buffer);
  /** All before this place is done with and valid. */
  void take_to(const char* place);
  /** Turns a copy of a part into UTF-8. */
  void to_utf8(std::string& part) const;

 private:
  friend TextFile load_text_file(const std::filesystem::path&, TextEncoding, size_t);
  friend TextFile load_text_file(const DatasetOptions&);

  TextFile(std::filesystem::path path, TextEncoding encoding)
      : path_(std::move(path)), encoding_(encoding) {}
  void hold(std::shared_ptr<std::string> text);
  void map();
  void look_for_encoding();
  void look();
  void check_to(size_t end);
  void check_nul(std::string_view piece) const;
  void pass(size_t end);
  void unify_line_ends();

  std::filesystem::path path_;
  TextEncoding encoding_;
  std::string_view all_, text_;  // with and without byte order mark
  bool is_latin1_ = false;
  std::shared_ptr<std::string> held_;  // one of these two has the bytes
  std::optional<MappedFile> mapped_;
  size_t n_checked_ = 0, n_passed_ = 0;  // bytes of all_; the latter whole pages
};

/** Files of more bytes than this are mapped. */
inline constexpr size_t kHeldText_bytes = 4 << 20;

/** Error(data): missing, unreadable, UTF-16, a NUL or invalid UTF-8 (file:line and byte offset in
 * the file). `held_bytes`: the largest file that is held in memory. */
TextFile load_text_file(const std::filesystem::path& path,
                        TextEncoding encoding,
                        size_t held_bytes = kHeldText_bytes);

/** The same of a dataset's file, or of a pipe that was read before. */
TextFile load_text_file(const DatasetOptions& options);

/** Whole characters from the beginning of UTF-8, at most n_bytes, but one at least. */
std::string_view whole_characters(std::string_view text, size_t n_bytes);

}  // namespace ferry
