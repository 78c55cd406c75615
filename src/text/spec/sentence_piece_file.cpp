#include "src/text/spec/sentence_piece_file.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <stdexcept>
#include <unordered_set>

#include "src/base/utf8.h"
#include "src/files/plain_file.h"
#include "src/text/spec/known_tokens.h"

namespace ferry::text {
namespace {

/** Goes through the fields of a message. A getter that does not go with the field's type, and a
 * length beyond the message's end, is a std::invalid_argument. */
class Message {
 public:
  explicit Message(std::string_view bytes) : bytes_(bytes) {}

  /** Moves on to the next field; false: there is none. */
  bool next() {
    if (bytes_.empty()) return false;
    const uint64_t tag = take_varint();
    number_ = static_cast<uint32_t>(tag >> 3);
    varint_ = 0;
    content_ = {};
    type_ = static_cast<Type>(tag & 7);
    switch (type_) {
      case Type::varint:
        varint_ = take_varint();
        break;
      case Type::fixed64:
        content_ = take(8);
        break;
      case Type::bytes:
        content_ = take(take_varint());
        break;
      case Type::fixed32:
        content_ = take(4);
        break;
      default:
        throw std::invalid_argument(fmt::format("has a field of wire type {}", tag & 7));
    }
    return true;
  }

  uint32_t number() const { return number_; }

  std::string_view bytes() const {
    expect(Type::bytes);
    return content_;
  }
  bool flag() const {
    expect(Type::varint);
    return varint_ != 0;
  }
  int32_t integer() const {
    expect(Type::varint);
    return static_cast<int32_t>(static_cast<uint32_t>(varint_));
  }
  float real() const {
    expect(Type::fixed32);
    uint32_t bits = 0;
    for (size_t i = 0; i < 4; ++i)
      bits |= static_cast<uint32_t>(static_cast<unsigned char>(content_[i])) << 8 * i;
    return std::bit_cast<float>(bits);
  }

 private:
  enum class Type { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

  void expect(Type type) const {
    if (type_ != type)
      throw std::invalid_argument(fmt::format("has field {} with wire type {}, expected {}",
                                              number_, static_cast<int>(type_),
                                              static_cast<int>(type)));
  }
  std::string_view take(uint64_t size) {
    if (size > bytes_.size())
      throw std::invalid_argument(
          fmt::format("ends {} bytes before field {} does", size - bytes_.size(), number_));
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  uint64_t take_varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    throw std::invalid_argument("has a number of more than ten bytes");
  }

  std::string_view bytes_;  // that are left
  uint32_t number_ = 0;
  Type type_ = Type::varint;
  uint64_t varint_ = 0;
  std::string_view content_;
};

SentencePieceFile::Piece read_piece(std::string_view bytes) {
  SentencePieceFile::Piece piece;
  for (Message field(bytes); field.next();) {
    if (field.number() == 1) piece.text = field.bytes();
    if (field.number() == 2) piece.score = field.real();
    if (field.number() != 3) continue;
    const int32_t kind = field.integer();
    if (kind < 1 || kind > 6)
      throw std::invalid_argument(fmt::format("has a piece of kind {}", kind));
    piece.kind = static_cast<SentencePieceFile::Kind>(kind);
  }
  return piece;
}

void read_training(std::string_view bytes, SentencePieceFile& model) {
  for (Message field(bytes); field.next();) {
    switch (field.number()) {
      case 3: {
        const int32_t type = field.integer();
        if (type != 1 && type != 2)
          throw std::invalid_argument(
              fmt::format("is a model of type {}, supported are UNIGRAM and BPE",
                          type == 3   ? "WORD"
                          : type == 4 ? "CHAR"
                                      : fmt::format("{}", type)));
        model.algorithm = static_cast<SentencePieceFile::Algorithm>(type);
        break;
      }
      case 24:
        if (field.flag())
          throw std::invalid_argument("puts blanks behind words, which is not supported");
        break;
      case 35:
        model.byte_fallback = field.flag();
        break;
      case 40:
        model.unknown_id = field.integer();
        break;
      case 41:
        model.bos_id = field.integer();
        break;
      case 42:
        model.eos_id = field.integer();
        break;
      case 43:
        model.pad_id = field.integer();
        break;
      default:
        break;
    }
  }
}

void read_normalizing(std::string_view bytes, SentencePieceFile& model) {
  for (Message field(bytes); field.next();) {
    if (field.number() == 2) model.charsmap = field.bytes();
    if (field.number() == 3) model.add_dummy_prefix = field.flag();
    if (field.number() == 4) model.remove_extra_whitespaces = field.flag();
    if (field.number() == 5 && !field.flag())
      throw std::invalid_argument("leaves blanks as they are, which is not supported");
  }
}

void check_pieces(const SentencePieceFile& model) {
  if (model.pieces.empty()) throw std::invalid_argument("has no pieces");
  std::unordered_set<std::string_view> seen;
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    const std::string& text = model.pieces[id].text;
    if (text.empty()) throw std::invalid_argument(fmt::format("has an empty piece, id {}", id));
    if (first_invalid_utf8(text) != text.npos)
      throw std::invalid_argument(fmt::format("has a piece that is not UTF-8, id {}", id));
    if (!std::isfinite(model.pieces[id].score))
      throw std::invalid_argument(fmt::format("has a piece without a score, id {}", id));
    if (!seen.insert(text).second)
      throw std::invalid_argument(fmt::format("has the piece '{}' twice", text));
  }
  if (model.text_of(model.unknown_id).empty())
    throw std::invalid_argument(
        fmt::format("has the unknown id {}, but {} pieces", model.unknown_id, model.pieces.size()));
}

}  // namespace

SentencePieceFile read_sentence_piece_file(const std::filesystem::path& file) {
  const std::string bytes = read_text_file(file);
  SentencePieceFile model;
  try {
    for (Message field(bytes); field.next();) {
      if (field.number() == 1) model.pieces.push_back(read_piece(field.bytes()));
      if (field.number() == 2) read_training(field.bytes(), model);
      if (field.number() == 3) read_normalizing(field.bytes(), model);
    }
    check_pieces(model);
  } catch (const std::invalid_argument& error) {
    fail(file, fmt::format("as a SentencePiece model {}", error.what()), kFetchAgain);
  }
  return model;
}

}  // namespace ferry::text
