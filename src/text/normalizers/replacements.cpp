#include "src/text/normalizers/replacements.h"

namespace ferry::text {

std::unique_ptr<Normalizer> Replace::read(const JsonReader& section, const StageContext&) {
  return std::make_unique<Replace>(read_pattern(section), section.text("content"));
}

void Replace::normalize(NormalizedText& text) const {
  if (pattern_.find_all(text.text(), [](size_t, size_t) { return false; })) return;
  text.rewrite([this](auto& out) {
    const std::string_view source = out.source();
    size_t done = 0;
    pattern_.find_all(source, [&](size_t begin, size_t end) {
      out.keep(done, begin);
      size_t last = end;  // the match's last character: where all of the content comes from
      previous_code_point(source, last);
      out.put(content_, out.origin(last, end));
      done = end;
      return true;
    });
    out.keep(done, source.size());
  });
}

std::unique_ptr<Normalizer> Prepend::read(const JsonReader& section, const StageContext&) {
  return std::make_unique<Prepend>(section.text("prepend"));
}

void Prepend::normalize(NormalizedText& text) const {
  if (text.text().empty() || text.continues()) return;
  text.rewrite([this](auto& out) {
    size_t first = 0;
    next_code_point(out.source(), first);
    out.put(prefix_, out.origin(0, first));
    out.keep(0, out.source().size());
  });
}

std::unique_ptr<Normalizer> Strip::read(const JsonReader& section, const StageContext& context) {
  return std::make_unique<Strip>(section.flag("strip_left"), section.flag("strip_right"),
                                 context.table);
}

void Strip::normalize(NormalizedText& text) const {
  const std::string_view whole = text.text();
  const auto is_space = [this](char32_t c) { return table_->flags(c) & CharTable::kSpace; };
  size_t begin = 0, end = whole.size();
  for (size_t next = 0; left_ && next < end && is_space(next_code_point(whole, next));)
    begin = next;
  for (size_t next = end; right_ && next > begin && is_space(previous_code_point(whole, next));)
    end = next;
  if (begin == 0 && end == whole.size()) return;
  text.rewrite([&](auto& out) { out.keep(begin, end); });
}

std::unique_ptr<Normalizer> Lowercase::read(const JsonReader&, const StageContext& context) {
  return std::make_unique<Lowercase>(context.table);
}

void Lowercase::normalize(NormalizedText& text) const {
  text.rewrite([this](auto& out) {
    const std::string_view source = out.source();
    for (size_t i = 0; i < source.size();) {
      const size_t at = i;
      const char32_t c = next_code_point(source, i);
      if (table_->flags(c) & CharTable::kHasLower)
        for (const char32_t lower : lower_case(c))
          out.put(lower, out.origin(at, i));
      else
        out.put(source.substr(at, i - at), out.origin(at, i));
    }
  });
}

std::unique_ptr<Normalizer> StripAccents::read(const JsonReader&, const StageContext&) {
  return std::make_unique<StripAccents>();
}

void StripAccents::normalize(NormalizedText& text) const {
  text.rewrite([](auto& out) {
    const std::string_view source = out.source();
    for (size_t i = 0; i < source.size();) {
      const size_t at = i;
      if (!is_mark(next_code_point(source, i)))
        out.put(source.substr(at, i - at), out.origin(at, i));
    }
  });
}

}  // namespace ferry::text
