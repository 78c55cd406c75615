#include "src/data/read/formats/text_file.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "src/base/error.h"
#include "src/base/utf8.h"
#include "src/data/read/reader.h"
#include "src/files/plain_file.h"

namespace ferry {
namespace {

/** Looked at at once. */
constexpr size_t kPiece_bytes = 1 << 20;

void append_latin1(std::string& to, std::string_view bytes) {
  to.reserve(to.size() + bytes.size() + bytes.size() / 16);
  for (char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      to.push_back(c);
    } else {
      to.push_back(static_cast<char>(0xc0 | byte >> 6));
      to.push_back(static_cast<char>(0x80 | (byte & 0x3f)));
    }
  }
}

/** The line, from 1, of a place in a text. */
int64_t line_of(std::string_view text, size_t place) {
  const std::string_view before = text.substr(0, place);
  return 1 + std::count(before.begin(), before.end(), '\n');
}

/** UTF-16 and UTF-32 of plain letters is valid UTF-8 with a NUL beside each letter, so the mark at
 * the beginning does not tell all. */
void refuse_mark(std::string_view text, const std::filesystem::path& path) {
  if (!text.starts_with("\xff\xfe") && !text.starts_with("\xfe\xff")) return;
  const int n_bits = text.substr(2).starts_with(std::string_view("\0\0", 2)) ? 32 : 16;
  throw Error(Fault::data, "data.read",
              fmt::format("'{}' is UTF-{}, expected UTF-8", path.string(), n_bits),
              fmt::format("save it as UTF-8, for example: iconv -f UTF-{} -t UTF-8", n_bits));
}

[[noreturn]] void refuse_nul(std::string_view text, size_t nul, const std::filesystem::path& path) {
  const std::string_view begin = text.substr(0, kPiece_bytes);
  const bool is_wide =
      nul < 2 && std::count(begin.begin(), begin.end(), '\0') * 4 > std::ssize(begin);
  throw Error(Fault::data, "data.read",
              fmt::format("{}:{}: byte {} of the file is 0 (NUL), which no text has", path.string(),
                          line_of(text, nul), nul),
              is_wide ? fmt::format("is it UTF-16? save it as UTF-8, for example: "
                                    "iconv -f UTF-16{} -t UTF-8",
                                    nul % 2 == 1 ? "LE" : "BE")
                      : "is it UTF-16, no text at all, or damaged in this line?");
}

[[noreturn]] void refuse_invalid(std::string_view text,
                                 size_t invalid,
                                 const std::filesystem::path& path) {
  throw Error(
      Fault::data, "data.read",
      fmt::format("{}:{}: byte {} of the file (0x{:02x}) is not valid UTF-8", path.string(),
                  line_of(text, invalid), invalid, static_cast<unsigned char>(text[invalid])),
      "save the file as UTF-8, or read it with dataset_encoding = utf8_or_latin1");
}

std::shared_ptr<std::string> read_whole(const std::filesystem::path& path) {
  return std::make_shared<std::string>(read_text_file(path, std::numeric_limits<size_t>::max()));
}

}  // namespace

std::string_view whole_characters(std::string_view text, size_t n_bytes) {
  if (text.size() <= n_bytes) return text;
  const auto continues = [&](size_t at) {
    return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
  };
  size_t end = n_bytes;
  while (end > 0 && continues(end))
    --end;
  if (end > 0) return text.substr(0, end);
  for (end = 1; continues(end);)
    ++end;
  return text.substr(0, end);
}

void TextFile::hold(std::shared_ptr<std::string> text) {
  held_ = std::move(text);
  all_ = *held_;
}

void TextFile::map() {
  mapped_ = MappedFile::open(path_);
  const auto bytes = mapped_->bytes();
  all_ = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  ::madvise(const_cast<std::byte*>(bytes.data()), bytes.size(), MADV_SEQUENTIAL);
}

std::string_view TextFile::take(std::string_view part, std::string& buffer) {
  if (mapped_) {
    check_to(static_cast<size_t>(part.data() - all_.data()) + part.size());
    pass(static_cast<size_t>(part.data() - all_.data()));
  }
  if (!is_latin1_) return part;
  buffer.clear();
  append_latin1(buffer, part);
  return buffer;
}

void TextFile::take_to(const char* place) {
  if (!mapped_) return;
  check_to(static_cast<size_t>(place - all_.data()));
  pass(static_cast<size_t>(place - all_.data()));
}

void TextFile::to_utf8(std::string& part) const {
  if (!is_latin1_) return;
  std::string latin1;
  latin1.swap(part);
  append_latin1(part, latin1);
}

/** Checks bytes that were not looked at before. */
void TextFile::check_to(size_t end) {
  while (n_checked_ < end) {
    const std::string_view piece = whole_characters(all_.substr(n_checked_), kPiece_bytes);
    check_nul(piece);
    if (const size_t invalid = is_latin1_ ? piece.npos : first_invalid_utf8(piece);
        invalid != piece.npos)
      refuse_invalid(all_, n_checked_ + invalid, path_);
    n_checked_ += piece.size();
  }
}

void TextFile::check_nul(std::string_view piece) const {
  if (const size_t nul = piece.find('\0'); nul != piece.npos)
    refuse_nul(all_, static_cast<size_t>(piece.data() - all_.data()) + nul, path_);
}

void TextFile::pass(size_t end) {
  if (end < n_passed_ + 8 * kPiece_bytes) return;
  static const size_t page_bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  end = end / page_bytes * page_bytes;
  // Advice that is not taken costs nothing: the system takes the pages when it wants memory.
  ::madvise(const_cast<char*>(all_.data()) + n_passed_, end - n_passed_, MADV_DONTNEED);
  n_passed_ = end;
}

/** Looks at all of the file, where that decides. */
void TextFile::look_for_encoding() {
  is_latin1_ = encoding_ == TextEncoding::latin1;
  if (encoding_ != TextEncoding::utf8_or_latin1) return;
  for (size_t at = 0; at < all_.size() && !is_latin1_;) {
    const std::string_view piece = whole_characters(all_.substr(at), kPiece_bytes);
    check_nul(piece);
    is_latin1_ = first_invalid_utf8(piece) != piece.npos;
    at += piece.size();
    if (mapped_) pass(at);
  }
}

/** Line ends of Macs before 2001 and of some spreadsheets. */
void TextFile::unify_line_ends() {
  bool has_cr = false;
  for (size_t at = 0; at < all_.size(); at = n_checked_) {
    check_to(at + 1);  // of a file without an end, as of zeros, not all is looked at
    const std::string_view piece = all_.substr(at, n_checked_ - at);
    if (piece.find('\n') != piece.npos) return;
    has_cr = has_cr || piece.find('\r') != piece.npos;
    if (mapped_) pass(at);
  }
  if (!has_cr) return;
  if (mapped_) {
    hold(read_whole(path_));
    mapped_.reset();
  }
  std::ranges::replace(*held_, '\r', '\n');
}

/** Finds out all that has to be known before the first part is taken. */
void TextFile::look() {
  refuse_mark(all_, path_);
  look_for_encoding();
  n_passed_ = 0;  // it is read again
  unify_line_ends();
  n_passed_ = 0;
  if (held_) check_to(all_.size());
  text_ = all_;
  if (!is_latin1_ && text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
}

TextFile load_text_file(const std::filesystem::path& path,
                        TextEncoding encoding,
                        size_t held_bytes) {
  TextFile file(path, encoding);
  if (open_plain_file(path).size_bytes > held_bytes)
    file.map();
  else
    file.hold(read_whole(path));
  file.look();
  return file;
}

TextFile load_text_file(const DatasetOptions& options) {
  if (!options.pipe_text) return load_text_file(options.path, options.encoding);
  TextFile file(options.path, options.encoding);
  file.hold(options.pipe_text);
  file.look();
  return file;
}

}  // namespace ferry
