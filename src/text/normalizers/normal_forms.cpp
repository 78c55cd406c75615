#include "src/text/normalizers/normal_forms.h"

#include <algorithm>
#include <string>

#include "src/text/normalizers/changes.h"

namespace ferry::text {

NormalForm::NormalForm(bool compatible, bool composes, std::shared_ptr<const CharTable> table)
    : compatible_(compatible), composes_(composes), table_(std::move(table)), unstable_(0x110000) {
  std::vector<Point> points;
  std::string bytes;
  for (char32_t c = 0x80; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    bytes.clear();
    append_utf8(bytes, c);
    points.clear();
    decompose(bytes, points);
    const bool combines = table_->flags(c) & CharTable::kCombines;
    if (composes_) compose(points);
    unstable_[c] = combines || points.size() != 1 || points[0].c != c;
  }
  if (composes_)
    for (const char32_t c : composing_seconds())
      unstable_[c] = true;
}

std::unique_ptr<Normalizer> NormalForm::read(const JsonReader& section,
                                             const StageContext& context) {
  const std::string type = section.text("type");
  return std::make_unique<NormalForm>(type.starts_with("NFK"), type.ends_with("C"), context.table);
}

void NormalForm::normalize(NormalizedText& text) const {
  // The parts that may change: from the stable character before the first one that may to the next.
  std::vector<Span> parts;
  const std::string_view whole = text.text();
  size_t last_stable = 0;
  bool open = false;
  for (size_t i = 0; i < whole.size();) {
    const size_t at = i;
    if (is_stable(next_code_point(whole, i))) {
      if (open) parts.back().end = static_cast<uint32_t>(at);
      open = false;
      last_stable = at;
    } else if (!open) {
      parts.push_back(span_of(last_stable, whole.size()));
      open = true;
    }
  }
  if (parts.empty()) return;

  std::vector<Point> points;
  text.rewrite([&](auto& out) {
    const std::string_view source = out.source();
    size_t done = 0;
    for (const Span part : parts) {
      out.keep(done, part.begin);
      done = part.end;
      points.clear();
      decompose(source.substr(part.begin, part.size()), points);
      if (composes_) compose(points);
      ChangeWriter writer(out, part.begin, part.end);
      for (const Point& point : points)
        writer.put(point.c, point.change);
    }
    out.keep(done, source.size());
  });
}

/** The decomposition of a part that begins with a starter, or with the text, in canonical order. */
void NormalForm::decompose(std::string_view part, std::vector<Point>& points) const {
  for (size_t i = 0; i < part.size();) {
    const char32_t c = next_code_point(part, i);
    int change = 0;
    if (compatible_) {
      const std::u32string mapping = compatibility_decomposition(c);
      for (const char32_t point : mapping.empty() ? std::u32string(1, c) : mapping)
        add(point, std::exchange(change, 1), points);
    } else if (table_->flags(c) & CharTable::kDecomposes) {
      for (const char32_t point : decomposition(c))
        add(point, std::exchange(change, 1), points);
    } else {
      add(c, change, points);
    }
  }
  for (auto begin = points.begin(); begin != points.end();) {
    const auto is_starter = [](const Point& point) { return point.combining_class == 0; };
    const auto end = std::find_if(begin, points.end(), is_starter);
    std::stable_sort(begin, end, [](const Point& a, const Point& b) {
      return a.combining_class < b.combining_class;
    });
    begin = std::find_if_not(end, points.end(), is_starter);
  }
}

void NormalForm::add(char32_t c, int change, std::vector<Point>& points) const {
  points.push_back({c, table_->flags(c) & CharTable::kCombines ? combining_class(c) : 0, change});
}

/** Composes a part in canonical order: each character joins the starter before it if no other one
 * between them blocks it. */
void NormalForm::compose(std::vector<Point>& points) {
  std::vector<Point> kept;
  size_t starter = SIZE_MAX;  // in kept
  int last_class = -1;        // of what was kept since the starter; -1: nothing
  for (const Point& point : points) {
    if (starter != SIZE_MAX &&
        last_class < std::max(point.combining_class, last_class < 0 ? 0 : 1)) {
      if (const char32_t composed = composition(kept[starter].c, point.c); composed != 0) {
        kept[starter].c = composed;
        kept[starter].change += point.change - 1;
        continue;
      }
    }
    kept.push_back(point);
    if (point.combining_class == 0) {
      starter = kept.size() - 1;
      last_class = -1;
    } else {
      last_class = point.combining_class;
    }
  }
  points.swap(kept);
}

std::unique_ptr<Normalizer> NormalizerSequence::read(const JsonReader& section,
                                                     const StageContext& context) {
  const JsonReader list = section.at("normalizers");
  std::vector<std::unique_ptr<Normalizer>> parts;
  for (size_t i = 0; i < list.size(); ++i)
    parts.push_back(read_normalizer(list.at(i), context));
  return std::make_unique<NormalizerSequence>(std::move(parts));
}

}  // namespace ferry::text
