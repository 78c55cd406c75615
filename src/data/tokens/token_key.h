#pragma once
// The way a dataset is read, as one number: part of the key by which its tokens are found again.

#include "src/data/content_hash.h"
#include "src/data/read/reader.h"

namespace ferry {

/** Adds all of a reader's settings, and the labels it knows, but not the content of its files. */
void add_reading(ContentHash& hash, const DatasetReader& reader);

}  // namespace ferry
