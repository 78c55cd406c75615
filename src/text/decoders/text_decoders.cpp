#include "src/text/decoders/text_decoders.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "src/base/utf8.h"
#include "src/text/pattern.h"
#include "src/text/pieces.h"
#include "src/text/pre_tokenizers/metaspace.h"
#include "src/text/replace_all.h"

namespace ferry::text {
namespace {

using Tokens = std::vector<std::string>;

/** What a token may become; several tokens may be one where they were joined. */
constexpr size_t kToken_bytes_max = 64 << 20;

class DecoderOf final : public Decoder {
 public:
  explicit DecoderOf(std::function<void(Tokens&)> rewrite) : rewrite_(std::move(rewrite)) {}
  void decode(Tokens& tokens) const override { rewrite_(tokens); }

 private:
  std::function<void(Tokens&)> rewrite_;
};

std::unique_ptr<Decoder> decoder_of(std::function<void(Tokens&)> rewrite) {
  return std::make_unique<DecoderOf>(std::move(rewrite));
}

/** The byte that "<0x0A>" stands for; -1 for other tokens. */
int byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  int value = 0;
  for (const char c : token.substr(3, 2)) {
    const char lower = static_cast<char>(c | 0x20);
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit && !(lower >= 'a' && lower <= 'f')) return -1;
    value = value * 16 + (is_digit ? c - '0' : lower - 'a' + 10);
  }
  return value;
}

void join_bytes(Tokens& tokens) {
  Tokens joined;
  std::string bytes;  // of the tokens just before
  auto flush = [&] {
    if (bytes.empty()) return;
    if (first_invalid_utf8(bytes) == std::string::npos)
      joined.push_back(bytes);
    else
      joined.insert(joined.end(), bytes.size(), "\uFFFD");
    bytes.clear();
  };
  for (std::string& token : tokens) {
    const int byte = byte_of(token);
    if (byte >= 0) {
      bytes.push_back(static_cast<char>(byte));
      continue;
    }
    flush();
    joined.push_back(std::move(token));
  }
  flush();
  tokens = std::move(joined);
}

void strip(std::string& token, std::string_view character, int64_t start, int64_t stop) {
  std::string_view left = token;
  for (; start > 0 && left.starts_with(character); --start)
    left.remove_prefix(character.size());
  for (; stop > 0 && left.ends_with(character); --stop)
    left.remove_suffix(character.size());
  token = std::string(left);
}

}  // namespace

std::unique_ptr<Decoder> read_decoder_sequence(const JsonReader& section,
                                               const StageContext& context) {
  const JsonReader list = section.at("decoders");
  std::vector<std::shared_ptr<const Decoder>> parts;
  for (size_t i = 0; i < list.size(); ++i)
    parts.push_back(read_decoder(list.at(i), context));
  return decoder_of([parts = std::move(parts)](Tokens& tokens) {
    for (const auto& part : parts)
      part->decode(tokens);
  });
}

std::unique_ptr<Decoder> read_byte_fallback_decoder(const JsonReader&, const StageContext&) {
  return decoder_of(join_bytes);
}

std::unique_ptr<Decoder> read_fuse_decoder(const JsonReader&, const StageContext&) {
  return decoder_of([](Tokens& tokens) {
    std::string whole;
    for (const std::string& token : tokens)
      whole += token;
    tokens = {whole};
  });
}

std::unique_ptr<Decoder> read_replace_decoder(const JsonReader& section, const StageContext&) {
  return decoder_of(
      [pattern = read_pattern(section), content = section.text("content")](Tokens& tokens) {
        for (std::string& token : tokens) {
          std::string replaced;
          size_t done = 0;
          pattern.find_all(token, [&](size_t begin, size_t end) {
            replaced.append(token, done, begin - done).append(content);
            if (replaced.size() > kToken_bytes_max) refuse_growth(kToken_bytes_max);
            done = end;
            return true;
          });
          token = replaced.append(token, done);
        }
      });
}

std::unique_ptr<Decoder> read_strip_decoder(const JsonReader& section, const StageContext&) {
  const std::string character = section.text("content");
  if (character.empty()) section.at("content").fail("is empty", kSaveAgain);
  const int64_t start = section.integer("start", 0, kId_max);
  const int64_t stop = section.integer("stop", 0, kId_max);
  return decoder_of([=](Tokens& tokens) {
    for (std::string& token : tokens)
      strip(token, character, start, stop);
  });
}

std::unique_ptr<Decoder> read_metaspace_decoder(const JsonReader& section, const StageContext&) {
  return decoder_of([options = read_metaspace_options(section)](Tokens& tokens) {
    const bool drops = options.prepend != MetaspaceOptions::Prepend::never;
    for (size_t i = 0; i < tokens.size(); ++i)
      replace_all(tokens[i], options.replacement, i == 0 && drops ? "" : " ");
  });
}

std::unique_ptr<Decoder> read_suffix_decoder(const JsonReader& section, const StageContext&) {
  const std::string suffix = section.text("suffix");
  if (suffix.empty()) section.at("suffix").fail("is empty", kSaveAgain);
  return decoder_of([suffix](Tokens& tokens) {
    for (size_t i = 0; i < tokens.size(); ++i)
      replace_all(tokens[i], suffix, i + 1 < tokens.size() ? " " : "");
  });
}

}  // namespace ferry::text
