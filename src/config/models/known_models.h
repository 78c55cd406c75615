#pragma once
// Models that people name as the hub does: their sizes, so that `ferry plan` answers without a
// file, and the packages that carry some of them. Private to src/config: models.h is the face.

#include <span>
#include <string>
#include <string_view>

namespace ferry::config {

struct KnownModel {
  std::string_view name;  ///< last part of its id
  std::string_view organisation;
  std::string_view config;  ///< config.json's keys that are not its family's defaults
  /** Not empty: a Python package carries it, so that it needs no hub. */
  std::string_view package_dir = {};  ///< below site-packages
  std::string_view pip_name = {};

  std::string id() const { return std::string(organisation) + "/" + std::string(name); }
};
std::span<const KnownModel> known_models();

/** Families that people ask for by names of the hub, and that this version does not train. The
 * first that is in a name counts. */
struct OtherFamily {
  std::string_view in_name, model_type;
};
std::span<const OtherFamily> other_families();

}  // namespace ferry::config
