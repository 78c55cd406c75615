#pragma once
// Models that people name as the hub does: their sizes, so that `ferry plan` answers without a
// file, and the packages that carry some of them. The table itself is known_models.json: `config`
// has config.json's keys that are not its family's defaults, `like` names the model whose keys hold
// besides. Private to src/config: models.h is the face.

#include <span>
#include <string>

namespace ferry::config {

struct KnownModel {
  /** "organisation/name"; without an organisation it is a shape alone, of which no hub has weights.
   */
  std::string id;
  std::string name;    ///< the last part of it
  std::string config;  ///< a config.json
  /** Not empty: a Python package carries it, so that it needs no hub. */
  std::string package_dir;  ///< below site-packages
  std::string pip_name;

  bool is_of_hub() const { return id.find('/') != std::string::npos; }
};
std::span<const KnownModel> known_models();

/** Families that people ask for by names of the hub, and that this version does not train. The
 * first that is in a name counts. */
struct OtherFamily {
  std::string in_name, model_type;
};
std::span<const OtherFamily> other_families();

}  // namespace ferry::config
