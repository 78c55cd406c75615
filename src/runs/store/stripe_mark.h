#pragma once
// What a file of a store says of itself: the store that it is of, and its number among the store's
// files. The first file begins with the superblock of the store; each further one ends with a mark,
// a page behind its stripes. A file is written or removed only where this proves whose it is:
// run.json, which names the files, may come from somebody else.

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "offload/store/store_format.h"

namespace ferry::runs {

/** True where the name is taken, also by a link that leads nowhere. */
bool is_there(const std::filesystem::path& file);

/** What the file says, which may be in use; nothing where it is no store's, where its head or mark
 * is damaged, or where an older Ferry made it as a further file of a store. A link says nothing,
 * wherever it leads. Throws Error(machine) where the file cannot be read. */
std::optional<StripeIdentity> stripe_in(const std::filesystem::path& file);

/** True for the file of that number of the store. */
bool is_stripe_of(const std::string& uuid, size_t number, const std::filesystem::path& file);

}  // namespace ferry::runs
