#pragma once
// The decoders of models that are not byte-level, most of them parts of a Sequence. Each is small:
// what it does is at its reader.

#include <memory>

#include "src/text/registry.h"

namespace ferry::text {

using ReadDecoder = std::unique_ptr<Decoder>(const JsonReader&, const StageContext&);

/** One after the other. */
ReadDecoder read_decoder_sequence;

/** Runs of <0x..> tokens become the characters that their bytes are, or each U+FFFD. */
ReadDecoder read_byte_fallback_decoder;

/** All tokens become one. */
ReadDecoder read_fuse_decoder;

/** In each token, matches of a pattern become another text. */
ReadDecoder read_replace_decoder;

/** Each token loses a character at its ends, up to `start` and `stop` times. */
ReadDecoder read_strip_decoder;

/** Metaspace's character becomes a blank, and at the beginning nothing if it was put there. */
ReadDecoder read_metaspace_decoder;

/** A suffix that ends words becomes a blank, in the last token nothing. */
ReadDecoder read_suffix_decoder;

}  // namespace ferry::text
