#include "src/text/normalizers/precompiled.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "src/base/utf8.h"
#include "src/text/base64.h"
#include "src/text/normalizers/changes.h"
#include "src/text/unicode/graphemes.h"

namespace ferry::text {
namespace {

/** A longer cluster is mapped character by character, as SentencePiece does it. */
constexpr size_t kWholeCluster_bytes = 5;

// The fields of a unit.
constexpr uint32_t kIsValue = uint32_t{1} << 31;
constexpr uint32_t kHasLeaf = 1 << 8;

size_t offset_of(uint32_t unit) {
  return static_cast<size_t>(unit >> 10) << ((unit & 1 << 9) >> 6);
}

uint32_t read_u32(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i)
    value |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[at + i])) << 8 * i;
  return value;
}

bool is_ascii(char c) {
  return static_cast<unsigned char>(c) < 0x80;
}

int count_characters(std::string_view text) {
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

/** A character and its change, as ChangeWriter takes it. */
struct Change {
  char32_t c;
  int change;
};

/** Adds what `old` became: the last of more characters were put beside those before, and the last
 * of fewer, be it one from before, stands for those that are gone. */
void add_changes(std::string_view old, std::string_view put, std::vector<Change>& changes) {
  for (size_t i = 0; i < put.size();)
    changes.push_back({next_code_point(put, i), 0});
  const int n_more = count_characters(put) - count_characters(old);
  if (n_more < 0 && !changes.empty()) changes.back().change += n_more;
  for (int i = 0; i < n_more; ++i)
    changes[changes.size() - 1 - static_cast<size_t>(i)].change = 1;
}

}  // namespace

Precompiled::Precompiled(std::string_view charsmap) {
  const size_t trie_bytes = charsmap.size() < 4 ? 0 : read_u32(charsmap, 0);
  if (trie_bytes < 4 || trie_bytes % 4 != 0 || trie_bytes > charsmap.size() - 4)
    throw std::invalid_argument(
        fmt::format("says that its table has {} of its {} bytes", trie_bytes, charsmap.size()));
  units_.reserve(trie_bytes / 4);
  for (size_t i = 0; i < trie_bytes; i += 4)
    units_.push_back(read_u32(charsmap, 4 + i));
  replacements_ = charsmap.substr(4 + trie_bytes);
  if (first_invalid_utf8(replacements_) != std::string::npos)
    throw std::invalid_argument("has replacements that are not UTF-8");
  check_leaves();
  for (size_t i = 0; i < ascii_.size(); ++i) {
    const auto c = static_cast<char>(i);
    ascii_[i] = find({&c, 1});
  }
}

/** Every leaf has to be there, and the replacement it tells the place of. */
void Precompiled::check_leaves() const {
  for (size_t i = 0; i < units_.size(); ++i) {
    if ((units_[i] & kIsValue) || !(units_[i] & kHasLeaf)) continue;
    const size_t leaf = i ^ offset_of(units_[i]);
    if (leaf >= units_.size())
      throw std::invalid_argument(fmt::format("has a leaf at {} of {} units", leaf, units_.size()));
    const size_t place = units_[leaf] & ~kIsValue;
    if (place > replacements_.size() ||
        (place < replacements_.size() && (replacements_[place] & 0xC0) == 0x80))
      throw std::invalid_argument(
          fmt::format("has no replacement at {} of {} bytes", place, replacements_.size()));
  }
}

std::unique_ptr<Normalizer> Precompiled::read(const JsonReader& section, const StageContext&) {
  const JsonReader charsmap = section.at("precompiled_charsmap");
  const std::optional<std::string> bytes = bytes_of_base64(charsmap.text());
  if (!bytes) charsmap.fail("is not base64", kFetchAgain);
  try {
    return std::make_unique<Precompiled>(*bytes);
  } catch (const std::invalid_argument& error) {
    charsmap.fail(error.what(), kFetchAgain);
  }
}

/** The place of the replacement of the shortest text in the map that begins the chunk; -1: none. */
int32_t Precompiled::find(std::string_view chunk) const {
  size_t at = offset_of(units_[0]);
  for (const char c : chunk) {
    const auto byte = static_cast<unsigned char>(c);
    at ^= byte;
    if (byte == 0 || at >= units_.size()) return -1;
    const uint32_t unit = units_[at];
    if ((unit & (kIsValue | 0xFF)) != byte) return -1;
    at ^= offset_of(unit);
    if (unit & kHasLeaf) return static_cast<int32_t>(units_[at] & ~kIsValue);
  }
  return -1;
}

/** Calls keep(begin, end) for what stays and put(begin, end, replacement) for what changes, from
 * left to right, until put returns false. */
template <typename Keep, typename Put>
void Precompiled::each_change(std::string_view text, Keep keep, Put put) const {
  const GraphemeTable& table = GraphemeTable::get();
  size_t kept = 0;  // what lies from here to the place looked at stays
  const auto change = [&](size_t begin, size_t end, int32_t place) {
    if (kept < begin) keep(kept, begin);
    kept = end;
    return put(begin, end, replacement(place));
  };
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const bool is_single =
        is_ascii(text[i]) && (i + 1 == text.size() || (is_ascii(text[i + 1]) && text[i] != '\r'));
    if (is_single) {
      const int32_t place = ascii_[static_cast<size_t>(text[i++])];
      if (place >= 0 && !change(begin, i, place)) return;
      continue;
    }
    const size_t end = cluster_end(text, begin, table);
    i = end;
    if (end - begin <= kWholeCluster_bytes) {
      const int32_t place = find(text.substr(begin, end - begin));
      if (place >= 0) {
        if (!change(begin, end, place)) return;
        continue;
      }
    }
    for (size_t at = begin; at < end;) {
      const size_t first = at;
      next_code_point(text, at);
      const int32_t place = find(text.substr(first, at - first));
      if (place >= 0 && !change(first, at, place)) return;
    }
  }
  if (kept < text.size()) keep(kept, text.size());
}

void Precompiled::normalize(NormalizedText& text) const {
  bool changes_any = false;
  each_change(
      text.text(), [](size_t, size_t) {},
      [&](size_t, size_t, std::string_view) {
        changes_any = true;
        return false;
      });
  if (!changes_any) return;
  text.rewrite([this](auto& out) {
    const std::string_view source = out.source();
    if constexpr (!std::remove_reference_t<decltype(out)>::aligned) {
      each_change(
          source, [&](size_t begin, size_t end) { out.keep(begin, end); },
          [&](size_t, size_t, std::string_view replacement) {
            out.put(replacement, Span{});
            return true;
          });
    } else {
      std::vector<Change> changes;
      each_change(
          source,
          [&](size_t begin, size_t end) {
            while (begin < end)
              changes.push_back({next_code_point(source, begin), 0});
          },
          [&](size_t begin, size_t end, std::string_view replacement) {
            add_changes(source.substr(begin, end - begin), replacement, changes);
            if (changes.size() > most_bytes_of(source.size()))
              refuse_growth(most_bytes_of(source.size()));
            return true;
          });
      ChangeWriter writer(out, 0, source.size());
      for (const Change& change : changes)
        writer.put(change.c, change.change);
    }
  });
}

std::unique_ptr<Normalizer> Nmt::read(const JsonReader&, const StageContext&) {
  return std::make_unique<Nmt>();
}

void Nmt::normalize(NormalizedText& text) const {
  const auto is_dropped = [](char32_t c) {
    return (c >= 0x1 && c <= 0x8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F ||
           c == 0x8F || c == 0x9F;
  };
  const auto is_blank = [](char32_t c) {
    return c == '\t' || c == '\n' || c == '\f' || c == '\r' || c == 0x1680 ||
           (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
           c == 0xFEFF || c == 0xFFFD;
  };
  text.rewrite([&](auto& out) {
    const std::string_view source = out.source();
    for (size_t i = 0; i < source.size();) {
      const size_t at = i;
      const char32_t c = next_code_point(source, i);
      if (is_blank(c))
        out.put(' ', out.origin(at, i));
      else if (!is_dropped(c))
        out.put(source.substr(at, i - at), out.origin(at, i));
    }
  });
}

}  // namespace ferry::text
