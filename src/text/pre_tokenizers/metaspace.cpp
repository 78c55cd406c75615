#include "src/text/pre_tokenizers/metaspace.h"

#include <fmt/format.h>

#include <utility>

namespace ferry::text {

MetaspaceOptions read_metaspace_options(const JsonReader& section) {
  MetaspaceOptions options;
  options.replacement = section.text("replacement");
  size_t end = 0;
  if (!options.replacement.empty()) next_code_point(options.replacement, end);
  if (end == 0 || end != options.replacement.size())
    section.at("replacement").fail("is no single character", kSaveAgain);
  const bool prefix = section.flag("add_prefix_space", true);
  const std::string scheme = section.text("prepend_scheme", prefix ? "always" : "never");
  if (scheme == "first")
    options.prepend = MetaspaceOptions::Prepend::first;
  else if (scheme == "never")
    options.prepend = MetaspaceOptions::Prepend::never;
  else if (scheme != "always")
    section.at("prepend_scheme")
        .fail(fmt::format("is {}, expected always, first or never", scheme), kSaveAgain);
  options.split = section.flag("split", true);
  return options;
}

Metaspace::Metaspace(MetaspaceOptions options)
    : options_(std::move(options)),
      words_(Pattern::literal(options_.replacement), Behavior::merged_with_next, false) {}

std::unique_ptr<PreTokenizer> Metaspace::read(const JsonReader& section, const StageContext&) {
  return std::make_unique<Metaspace>(read_metaspace_options(section));
}

void Metaspace::split(Pieces& pieces, size_t enough) const {
  using Prepend = MetaspaceOptions::Prepend;
  const NormalizedText& text = pieces.text;
  pieces.rewrite([&](auto& out, Span piece) {
    const std::string_view source = out.source().substr(0, piece.end);
    const bool begins_so =
        source[piece.begin] == ' ' || source.substr(piece.begin).starts_with(options_.replacement);
    bool prepend = options_.prepend == Prepend::always;
    if (options_.prepend == Prepend::first)
      prepend = text.origin(piece.begin, piece.begin + 1).begin == 0;
    if (prepend && !begins_so && !pieces.continues(piece)) {
      size_t first = piece.begin;
      next_code_point(source, first);
      out.put(options_.replacement, out.origin(piece.begin, first));
    }
    size_t done = piece.begin;
    while (done < piece.end) {
      const size_t blank = std::min(source.find(' ', done), source.size());
      out.keep(done, blank);
      if (blank < piece.end) out.put(options_.replacement, out.origin(blank, blank + 1));
      done = blank + 1;
    }
  });
  if (options_.split) words_.split(pieces, enough);
}

}  // namespace ferry::text
